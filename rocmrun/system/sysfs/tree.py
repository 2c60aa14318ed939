"""A root directory whose files may be missing, forbidden, binary or huge. Nothing here raises."""

import errno
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

from rocmrun.core.host import DeviceNode
from rocmrun.core.os_text import number
from rocmrun.core.text import printable

ReadBytes = Callable[[str], bytes]

# sysfs prints at most a page, and the /proc files that are read here one or two.
_READ_LIMIT = 64 * 1024
_LINE_LIMIT = 4096  # a kernel command line, a CPU list of a large machine
_PROBLEM_LIMIT = 40
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
# No such file, or a driver that has no such value: absence, not a problem.
_ABSENT = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENODATA, errno.EINVAL, errno.EOPNOTSUPP}
)


def read_file(path: str) -> bytes:
    """Return at most 64 KiB of *path*; never waits, so that a fifo in a copied tree cannot hold us up."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _READ_LIMIT)
    finally:
        os.close(descriptor)


class Tree:
    """Reads below *root*; paths are written as on the host itself ("/sys/…").

    Attributes:
        root: The directory, absolute.
        live: Whether it is this machine's own "/".
        refused: Paths whose read gave EPERM: in KFD's topology, the device cgroup's answer.
    """

    def __init__(self, root: Path, read: ReadBytes = read_file) -> None:
        self.root = str(root.absolute())
        self.live = self.root == "/"
        self.refused: set[str] = set()
        self._root = "" if self.live else self.root
        self._read = read
        self._problems: dict[str, None] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be read, one sentence each, without repeats."""
        more = len(self._problems) - _PROBLEM_LIMIT
        shown = tuple(self._problems)[:_PROBLEM_LIMIT]
        return (*shown, f"and {more} more reads that failed") if more > 0 else shown

    def note(self, problem: str) -> None:
        """Remember *problem*."""
        self._problems[printable(problem, 300)] = None

    def real(self, path: str) -> str:
        """Return *path* as the kernel that we run on knows it."""
        return self._root + path

    def text(self, path: str) -> str | None:
        """Return the text of a file, None when it cannot be read."""
        data = self.data(path)
        return None if data is None else data.decode("utf-8", "replace")

    def data(self, path: str) -> bytes | None:
        """Return the bytes of a file, None when it cannot be read."""
        try:
            return self._read(self._root + path)
        except OSError as error:
            self._failed(path, error)
        except ValueError:  # a null byte in the name
            self.note(f"cannot read {path!r}: not a file name")
        return None

    def line(self, path: str) -> str | None:
        """Return a file's first line without blanks and control characters; None when empty or unreadable."""
        text = self.text(path)
        return printable(text.partition("\n")[0], _LINE_LIMIT).strip() or None if text else None

    def number(self, path: str) -> int | None:
        """Return the plain decimal number that a file holds."""
        return number(self.line(path))

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none when it cannot be listed."""
        return sorted(self._names(path))

    def numbers(self, path: str, prefix: str = "") -> list[int]:
        """Return N of every entry "<prefix>N" of a directory, in numeric order."""
        start = len(prefix)
        return sorted(
            int(name[start:])
            for name in self._names(path)
            if name.startswith(prefix) and _NUMBER.fullmatch(name, start)
        )

    def has(self, path: str) -> bool:
        """Return whether *path* exists."""
        return os.path.lexists(self._root + path)

    def link_name(self, path: str) -> str | None:
        """Return the last part of what a symlink points to; None when it is no symlink."""
        try:
            return Path(self._root + path).readlink().name
        except OSError:
            return None

    def device(self, path: str) -> DeviceNode | None:
        """Return owner and mode of a node; None when there is none."""
        real = self._root + path
        try:
            facts = Path(real).stat()
        except OSError as error:
            self._failed(path, error)
            return None
        is_device = stat.S_ISCHR(facts.st_mode) or stat.S_ISBLK(facts.st_mode)
        return DeviceNode(
            path=path,
            host_path=real,
            mode=facts.st_mode & 0o777,
            uid=facts.st_uid,
            gid=facts.st_gid,
            major=os.major(facts.st_rdev) if is_device else None,
            minor=os.minor(facts.st_rdev) if is_device else None,
            block=stat.S_ISBLK(facts.st_mode),
            acl=has_acl(real),
        )

    def _names(self, path: str) -> list[str]:
        try:
            return os.listdir(self._root + path)  # noqa: PTH208  # thousands of names, no Path each
        except OSError as error:
            self._failed(path, error)
            return []

    def _failed(self, path: str, error: OSError) -> None:
        if error.errno == errno.EPERM:
            # Below /sys a driver's answer (device cgroup, GPU in reset), which has its own meaning.
            self.refused.add(path)
        if error.errno not in _ABSENT and not (path in self.refused and path.startswith("/sys/")):
            self.note(f"cannot read {path}: {error.strerror or error}")


def has_acl(path: str) -> bool:
    """Whether a POSIX ACL adds rights to a path, after symlinks, that its mode does not show."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except OSError:
        return False
