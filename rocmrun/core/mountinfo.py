"""Other names of one place: what a path is a bind mount of, by the kernel's own list of mounts. Text only."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FIELDS = 6
_ESCAPE = re.compile(r"\\([0-7]{3})")
# File systems that are one tree wherever they are mounted, with the place where everybody knows it.
_KNOWN_PLACES = {"proc": "/proc", "sysfs": "/sys", "devtmpfs": "/dev"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of /proc/self/mountinfo (proc(5)).

    Attributes:
        device: "major:minor" of the file system.
        root: Which directory of the file system is mounted here: for a bind mount not "/".
        point: Where.
        kind: The file system's type.
    """

    device: str
    root: str
    point: str
    kind: str


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Return the mounts of /proc/self/mountinfo, in its order; lines that are none are skipped."""
    found = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if dash and len(fields) >= _FIELDS:
            found.append(
                Mount(
                    device=fields[2], root=_plain(fields[3]), point=_plain(fields[4]), kind=kinds[0]
                )
            )
    return tuple(found)


def other_names(path: str, mounts: tuple[Mount, ...]) -> tuple[str, ...]:
    """Return the other paths of what stands at *path* (absolute, without symlinks), sorted."""
    here = _mount_at(path, mounts)
    if here is None:
        return ()
    place = _joined(here.root, path.removeprefix(here.point.rstrip("/")))
    names = {
        _joined(other.point, place.removeprefix(other.root.rstrip("/")))
        for other in mounts
        if other.device == here.device and _is_below(place, other.root)
    }
    if known := _KNOWN_PLACES.get(here.kind):
        names.add(_joined(known, place))
    return tuple(sorted(names - {path}))


def mounted_below(path: str, mounts: tuple[Mount, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every mount point below *path*, with its other names: a bind mount of *path* brings them along."""
    points = {
        mount.point for mount in mounts if mount.point != path and _is_below(mount.point, path)
    }
    for point in sorted(points):
        yield point, other_names(point, mounts)


def _mount_at(path: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """Return the mount that *path* is in: the deepest, and of several on one point the last."""
    inside = [mount for mount in mounts if _is_below(path, mount.point)]
    return max(reversed(inside), key=lambda mount: len(mount.point.rstrip("/")), default=None)


def _is_below(path: str, top: str) -> bool:
    """Whether *path* is *top* or below it; both are the kernel's own, with no spare slash in them."""
    return path == top or path.startswith(f"{top.rstrip('/')}/")


def _joined(top: str, rest: str) -> str:
    return f"{top.rstrip('/')}/{rest.strip('/')}".rstrip("/") or "/"


def _plain(text: str) -> str:
    """Undo the kernel's escapes: blank, tab, newline and backslash are octal."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
