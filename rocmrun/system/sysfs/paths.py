"""A path step by step, as the kernel walks it."""

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from rocmrun.core.host_paths import SOCKET_FILES
from rocmrun.core.mountinfo import Mount, mounted_below, other_names, parse_mountinfo
from rocmrun.core.path_facts import PathFacts
from rocmrun.system.sysfs.tree import has_acl

Kind = Literal["directory", "file", "socket", "device", "other", "missing", "loop", "denied"]

# The kernel gives up with ELOOP after as many (MAXSYMLINKS).
_SYMLINK_LIMIT = 40
# So many entries of a mount source are compared with the engines' sockets.
_MOST_ENTRIES = 1 << 16
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})


def read_path(path: str) -> PathFacts:
    """Return what *path* is after symlinks, with owner and mode of every directory on the way.

    ".." is followed where symlinks lead, not cut from the text. A relative path starts at the
    working directory.
    """
    asked = str(Path.cwd() / path)
    walk = _Walk()
    try:
        kind = walk.to(asked)
    except ValueError:  # a null byte
        kind = "missing"
    except OSError as error:
        kind = "missing" if error.errno in _MISSING else "denied"
    resolved = kind not in ("missing", "loop", "denied")
    mounts = _mounts() if resolved else ()
    return PathFacts(
        path=asked,
        kind=kind,
        real_path=walk.here if resolved else None,
        components=tuple(walk.components),
        acl=resolved and has_acl(walk.here),
        other_names=_other_names(walk.here, kind, mounts),
        identity=walk.identity if resolved else None,
        through=_through(walk, mounts) if resolved else (),
        holds=(
            *mounted_below(walk.here, mounts),
            *(sockets_in(walk.here) if kind == "directory" else ()),
        ),
    )


def sockets_in(
    directory: str, sockets: tuple[str, ...] = SOCKET_FILES
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every entry right in *directory* that is a hard link of one of *sockets*, with that socket."""
    known = {}
    with contextlib.suppress(OSError):
        device = Path(directory).stat().st_dev
        for socket in sockets:
            with contextlib.suppress(OSError):
                facts = Path(socket).stat()
                if facts.st_dev == device:
                    known[facts.st_ino] = socket
        if known:  # a hard link never leaves its file system
            with os.scandir(directory) as entries:
                for entry in itertools.islice(entries, _MOST_ENTRIES):
                    if entry.inode() in known and entry.path != known[entry.inode()]:
                        yield entry.path, (known[entry.inode()],)


def _through(walk: "_Walk", mounts: tuple[Mount, ...]) -> tuple[str, ...]:
    """Return what the walk has left again: /proc/self/cwd is another place for whoever follows it next."""
    left = walk.visited - {place for place, *_ in walk.components}
    return tuple(sorted(left.union(*(other_names(place, mounts) for place in left))))


def _mounts() -> tuple[Mount, ...]:
    try:
        return parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="replace"))
    except OSError:
        return ()


def _other_names(path: str, kind: Kind, mounts: tuple[Mount, ...]) -> tuple[str, ...]:
    names = set(other_names(path, mounts))
    if kind == "socket":
        # A hard link is no mount: the inode tells.
        names |= {socket for socket in SOCKET_FILES if _is_same(path, socket)}
    return tuple(sorted(names - {path}))


def _is_same(path: str, other: str) -> bool:
    try:
        return Path(path).samefile(other)
    except OSError:
        return False


class _Walk:
    """The way so far: every directory from "/" on, none of them a symlink."""

    def __init__(self) -> None:
        self.components: list[tuple[str, int, int, int]] = []
        self.visited: set[str] = set()
        self.identity = (0, 0)

    @property
    def here(self) -> str:
        """Where the walk stands."""
        return self.components[-1][0]

    def to(self, path: str) -> Kind:
        """Walk to *path*, absolute, and return what it is; OSError where the way ends early."""
        self._enter("/")
        steps, links = path.split("/")[::-1], 0
        while steps:
            step = steps.pop()
            if step in ("", "."):
                continue
            if step == "..":
                del self.components[max(1, len(self.components) - 1) :]
                continue
            place = f"{self.here.rstrip('/')}/{step}"
            if not self._enter(place):
                links += 1
                if links > _SYMLINK_LIMIT:
                    return "loop"
                target = str(Path(place).readlink())
                if target.startswith("/"):
                    del self.components[1:]
                steps.extend(target.split("/")[::-1])
        facts = os.lstat(self.here)
        self.identity = (facts.st_dev, facts.st_ino)
        return _kind(facts.st_mode)

    def _enter(self, place: str) -> bool:
        """Add *place* to the way, unless it is a symlink."""
        facts = os.lstat(place)
        if stat.S_ISLNK(facts.st_mode):
            return False
        self.visited.add(place)
        self.components.append((place, stat.S_IMODE(facts.st_mode), facts.st_uid, facts.st_gid))
        return True


def _kind(mode: int) -> Kind:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "other"
