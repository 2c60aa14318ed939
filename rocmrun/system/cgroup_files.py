"""The files of a container's control group, as the kernel of this machine shows them."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from rocmrun.core.cgroups import group_paths
from rocmrun.core.running.cgroup import (
    V1_FILES,
    V2_FILES,
    CgroupUse,
    use_v1,
    use_v2,
)

_MOUNT = "sys/fs/cgroup"
# Groups that a container makes inside its own: more than these are not walked.
_MOST_GROUPS = 1000


class Cgroup:
    """The control group of a process, found once and read many times.

    Attributes:
        problem: Why it cannot be read; "" where it can.
    """

    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self.problem = ""
        self._places: dict[str, Path] = {}
        try:
            text = (root / f"proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            self.problem = f"/proc/{pid}/cgroup cannot be read: {error.strerror}"
            return
        self._places = _places(group_paths(text), root)
        if not self._places:
            self.problem = "its control group is not below /sys/fs/cgroup here"

    def use(self) -> CgroupUse:
        """Return limits and counters now; the container may have ended meanwhile."""
        if self.problem:
            return CgroupUse(problem=self.problem)
        if "" in self._places:
            return use_v2(_texts(self._places[""], V2_FILES))
        found = {
            name: text
            for controller, names in V1_FILES.items()
            if controller in self._places
            for name, text in _texts(self._places[controller], names).items()
        }
        return use_v1(found)

    def pids(self) -> tuple[int, ...]:
        """Return the processes in it and in the groups below it, in numeric order."""
        if not self._places:
            return ()
        top = self._places.get("", next(iter(self._places.values())))
        found: set[int] = set()
        for directory in itertools.islice(_directories(top), _MOST_GROUPS):
            text = _text(directory / "cgroup.procs") or ""
            found.update(int(word) for word in text.split() if word.isdecimal() and word != "0")
        return tuple(sorted(found))


def _places(paths: dict[str, str], root: Path) -> dict[str, Path]:
    """Return controller → directory, of those that matter here; "" alone is version 2."""
    mount = root / _MOUNT
    unified = mount / paths.get("", "").lstrip("/")
    if (mount / "cgroup.controllers").exists():
        return {"": unified} if "" in paths and (unified / "cgroup.procs").exists() else {}
    found = {}
    for controller in V1_FILES:
        for name in (controller, "cpu,cpuacct", "cpuacct,cpu"):
            directory = mount / name / paths.get(controller, "").lstrip("/")
            # Without a path of its own it would be everybody's group.
            if paths.get(controller, "/") != "/" and (directory / V1_FILES[controller][0]).exists():
                found[controller] = directory
                break
    return found


def _directories(top: Path) -> Iterator[Path]:
    """Yield *top* and what is below it, one after the other: groups come and go meanwhile, and may be many and deep."""
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        yield directory
        with contextlib.suppress(OSError):
            below = (path for path in directory.iterdir() if path.is_dir())
            waiting += sorted(below, reverse=True)


def _texts(directory: Path, names: Iterable[str]) -> dict[str, str]:
    return {name: text for name in names if (text := _text(directory / name)) is not None}


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
