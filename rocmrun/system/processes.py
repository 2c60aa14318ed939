"""Processes of this host."""

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

from rocmrun.core.cgroups import container_id_in


def container_of(pid: int, root: Path = Path("/")) -> str | None:
    """Return the id of the container that process *pid* is in; None where it is in none, or nobody can tell."""
    try:
        text = (root / f"proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return container_id_in(text)


def threads_of(names: Collection[str], root: Path = Path("/")) -> tuple[int, ...]:
    """Return the numbers of all threads of the processes that have one of *names*, sorted."""
    return tuple(sorted(pid for process in _named(names, root) for pid in _threads(process)))


def _named(names: Collection[str], root: Path) -> Iterator[Path]:
    for process in (root / "proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "comm").read_text(errors="replace").rstrip("\n") in names:
                yield process


def _threads(process: Path) -> list[int]:
    try:
        return [int(path.name) for path in (process / "task").iterdir()]
    except OSError:
        return []
