"""The directories that containers get as HOME: private, owned by the container's user, never followed through links."""

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rocmrun.errors import HostNotReady

PRIVATE = 0o700
ENTERABLE = 0o755
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# In the directory of a profile's caches, which no container sees: whose they are.
OWNER_FILE = ".profile"
DEPTH = 4  # profile, digest, architectures, uid
_DIGEST = re.compile(r"[0-9a-f]{1,12}|unlocked")
ELSEWHERE = 'set [cache] mode = "tmpfs", or XDG_CACHE_HOME to a directory of yours'


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class CacheDirectory:
    """A cache that is on disk.

    Attributes:
        name: The directory of its profile's caches.
        profile: The profile's file; "" where nobody wrote it down.
        digest: First 12 hex digits of the image's digest or id, or "unlocked".
    """

    path: Path
    name: str
    digest: str
    profile: str = ""


def make_cache_directory(path: str, root: str, uid: int, gid: int, *, profile: str = "") -> None:
    """Make *path* below *root*, mode 0700 and owned by *uid*:*gid*, if it is not there yet.

    *profile* is written down beside it: the file of the profile whose cache it is.

    Raises:
        HostNotReady: it cannot be made, belongs to somebody else, is a symbolic link on the way, or lies
            below a directory in which somebody else could exchange it.
    """
    relative = Path(path).relative_to(root)
    owners = {0, os.getuid(), uid}
    try:
        _make_way(Path(root))
        _check_way(Path(root), owners)
        with contextlib.ExitStack() as stack:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            for index, part in enumerate(relative.parts):
                last = index == len(relative.parts) - 1
                descriptor = _enter(descriptor, part, PRIVATE if last else ENTERABLE)
                stack.callback(os.close, descriptor)
                if not last:
                    _check(Path(root, *relative.parts[: index + 1]), os.fstat(descriptor), owners)
                if index == 0 and profile and not last:
                    _write_down(descriptor, profile)
            _own(descriptor, path, uid, gid)
    except OSError as error:
        msg = f"cannot make the cache directory {path}: {error.strerror}"
        raise HostNotReady(msg, hint=ELSEWHERE) from error


def cache_directories(root: Path) -> tuple[CacheDirectory, ...]:
    """Return every cache below *root*. What has not its form is none, and no link is followed to one."""
    pattern = "/".join("*" * DEPTH)
    found = []
    for path in root.glob(pattern):
        name, digest, _, uid = path.relative_to(root).parts
        way = (path, *(root / parent for parent in path.relative_to(root).parents))
        if any(each.is_symlink() for each in way[:DEPTH]) or not path.is_dir():
            continue
        if not _DIGEST.fullmatch(digest) or not uid.isdigit():
            continue
        found.append(
            CacheDirectory(path=path, name=name, digest=digest, profile=_written_down(root / name))
        )
    return tuple(sorted(found))


def size_of(path: Path) -> int:
    """Return what *path* takes on disk, in bytes, as far as it can be read."""
    total = 0
    for directory, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(Path(directory, name)).st_blocks * 512
    return total


def remove_cache_directory(cache: CacheDirectory, root: Path) -> str | None:
    """Remove *cache*, and the directories above it that are empty then; return why it could not be removed."""
    if not shutil.rmtree.avoids_symlink_attacks:
        return "this system cannot remove a directory safely that others may write to"
    try:
        # Whoever owns a directory on the way could lead this elsewhere, and under sudo -E with root's rights.
        owners = {0, os.getuid()}
        _check_way(root, owners)
        for parent in cache.path.relative_to(root).parents:
            _check(root / parent, (root / parent).stat(), owners)
    except (OSError, HostNotReady) as error:
        return str(error)
    problems: list[str] = []

    def note(_function: object, name: str, failure: tuple[object, BaseException, object]) -> None:
        problems.append(f"{name}: {getattr(failure[1], 'strerror', None) or failure[1]}")

    # A workload leaves directories read-only now and then (Go's modules).
    for directory, _, _ in os.walk(cache.path):
        with contextlib.suppress(OSError):
            Path(directory).chmod(PRIVATE)
    shutil.rmtree(cache.path, onerror=note)
    for parent in cache.path.relative_to(root).parents:
        if parent == Path():
            break
        with contextlib.suppress(OSError):
            if {found.name for found in (root / parent).iterdir()} <= {OWNER_FILE}:
                (root / parent / OWNER_FILE).unlink(missing_ok=True)
                (root / parent).rmdir()
    return problems[0] if problems else None


def _make_way(root: Path) -> None:
    for directory in (*reversed(root.parents), root):
        if not directory.is_dir():
            directory.mkdir(mode=ENTERABLE)


def _check_way(root: Path, owners: Iterable[int]) -> None:
    """Refuse what sshd's StrictModes refuses: a directory on the way in which others could put another cache."""
    literal = Path(os.path.abspath(root))  # noqa: PTH100  # resolve() follows links, and where they stand counts too
    for path in dict.fromkeys((literal, literal.resolve())):
        for directory in (*reversed(path.parents), path):
            _check(directory, directory.stat(), owners)


def _check(directory: Path, found: os.stat_result, owners: Iterable[int]) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in owners:
        reason = f"belongs to uid {found.st_uid}"
    elif mode & OTHERS_WRITE and not mode & stat.S_ISVTX and not _is_private_group(found):
        reason = f"may be written by others ({mode:04o})"
    else:
        return
    msg = f"{directory}, above the cache, {reason}: compiled code could be exchanged there"
    raise HostNotReady(msg, hint=f"chmod go-w {directory} if it is yours; or {ELSEWHERE}")


def _is_private_group(found: os.stat_result) -> bool:
    """Whether only a group may write that distributions make for one user: its number is the user's."""
    return not found.st_mode & stat.S_IWOTH and found.st_gid == found.st_uid


def _write_down(directory: int, profile: str) -> None:
    """Say whose caches these are. `clean` keeps what it knows nothing of, so a failure is none."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with contextlib.suppress(OSError):
        descriptor = os.open(OWNER_FILE, flags, 0o644, dir_fd=directory)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(profile)


def _written_down(directory: Path) -> str:
    try:
        descriptor = os.open(directory / OWNER_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(4096)
    except OSError:
        return ""


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
