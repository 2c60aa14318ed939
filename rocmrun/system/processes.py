"""Processes of this host."""

from pathlib import Path

from rocmrun.core.cgroups import container_id_in


def container_of(pid: int, root: Path = Path("/")) -> str | None:
    """Return the id of the container that process *pid* is in; None where it is in none, or nobody can tell."""
    try:
        text = (root / f"proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return container_id_in(text)
