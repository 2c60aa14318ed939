"""The directories that containers get as HOME: private, owned by the container's user, never followed through links."""

import contextlib
import os
import stat
from pathlib import Path

from rocmrun.errors import HostNotReady

PRIVATE = 0o700
ENTERABLE = 0o755


def make_cache_directory(path: str, root: str, uid: int, gid: int) -> None:
    """Make *path* below *root*, mode 0700 and owned by *uid*:*gid*, if it is not there yet.

    Raises:
        HostNotReady: it cannot be made, belongs to somebody else, or is a symbolic link on the way.
    """
    relative = Path(path).relative_to(root)
    try:
        Path(root).mkdir(mode=ENTERABLE, parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            for index, part in enumerate(relative.parts):
                last = index == len(relative.parts) - 1
                descriptor = _enter(descriptor, part, PRIVATE if last else ENTERABLE)
                stack.callback(os.close, descriptor)
            _own(descriptor, path, uid, gid)
    except OSError as error:
        msg = f"cannot make the cache directory {path}: {error.strerror}"
        raise HostNotReady(
            msg, hint='set [cache] mode = "tmpfs", or XDG_CACHE_HOME to a directory of yours'
        ) from error


def _enter(parent: int, name: str, mode: int) -> int:
    """Open, and make if needed, one directory below *parent*."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=parent)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)


def _own(descriptor: int, path: str, uid: int, gid: int) -> None:
    found = os.fstat(descriptor)
    if found.st_uid == uid:
        if stat.S_IMODE(found.st_mode) & ~PRIVATE:
            os.fchmod(descriptor, PRIVATE)
        return
    # A new directory belongs to us; only root may give it to the container's user.
    if found.st_uid == os.getuid() == 0:
        os.fchown(descriptor, uid, gid)
        return
    msg = f"the cache directory {path} belongs to uid {found.st_uid}, the container runs as {uid}"
    raise HostNotReady(msg, hint='set [cache] mode = "tmpfs", or leave out [container] user')
