"""Files that people keep: read with clear errors, written whole or not at all."""

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rocmrun.errors import LockBusy, RocmrunError

READ_LIMIT_BYTES = 16 * 1024 * 1024
_POLL_SECONDS = 0.05


def read_text(path: Path, error: type[RocmrunError]) -> str | None:
    """Return the UTF-8 text of *path*, or None when there is no such file.

    Raises:
        error: it is there and cannot be read: a directory, no permission, a symlink loop, no text.
    """
    try:
        body = _read_regular(path, READ_LIMIT_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as failure:
        msg = f"cannot read {path}: {failure.strerror}"
        raise error(msg) from failure
    except ValueError as failure:
        # A name from a file that somebody edited: with a zero byte, or what no file system can hold.
        msg = f"cannot read {str(path)!r}: no file has such a name"
        raise error(msg) from failure
    if len(body) > READ_LIMIT_BYTES:
        msg = f"{path} is larger than {READ_LIMIT_BYTES >> 20} MiB"
        raise error(msg)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as failure:
        msg = f"{path} is not UTF-8 text (byte {failure.start})"
        raise error(msg) from failure


def _read_regular(path: Path, limit: int) -> bytes:
    """Return the content of a regular file, at most *limit* bytes of it; a symlink is followed.

    Raises:
        OSError: it cannot be read, or is a pipe, socket or device: reading one could wait for ever.
    """
    # Without O_NONBLOCK the open of a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read(limit)


def write_atomic(
    path: Path,
    data: str | bytes,
    *,
    error: type[RocmrunError],
    before_replace: Callable[[], None] = lambda: None,
    private: bool = False,
) -> bool:
    """Write *data* to *path* so that every reader sees the old content or the new, whatever happens meanwhile.

    A symlink is followed, mode and owner are kept, and a file that already holds *data* is not touched.

    Args:
        path: The file; its directory must exist.
        data: The whole content.
        error: What to raise when it cannot be written.
        before_replace: Called when the new content is safe on disk and the old still in place.
        private: Give it mode 0600, whatever it had.

    Returns:
        Whether anything was written.
    """
    body = data.encode() if isinstance(data, str) else data
    try:
        target = _real_path(path)
        if target.exists() and not target.is_file():
            # A device or a fifo takes the bytes; replacing it would destroy it.
            _write_into(target, body)
            return True
        if _holds(target, body) and not private:
            return False
        _replace(target, body, before_replace, private=private)
    except OSError as failure:
        msg = f"cannot write {path}: {failure.strerror}"
        raise error(msg) from failure
    return True


@contextlib.contextmanager
def guarded(path: Path, *, timeout_seconds: float, error: type[RocmrunError]) -> Iterator[None]:
    """Keep every other rocmrun from writing *path* meanwhile.

    The guard is a flock on a file beside the real one, so that it works across users and is dropped by the kernel
    when its holder dies. It is removed afterwards: nothing is left for version control to trip over.

    Raises:
        LockBusy: another process held it for all of *timeout_seconds*.
        error: the guard cannot be made.
    """
    target = _real_path(path)
    guard = target.with_name(f".{target.name}.guard")
    try:
        descriptor = _acquire(guard, timeout_seconds)
    except OSError as failure:
        msg = f"cannot write in {target.parent}: {failure.strerror}"
        raise error(msg) from failure
    if descriptor is None:
        msg = f"another process has been writing {path} for {timeout_seconds:g} seconds"
        raise LockBusy(msg, hint="run the same command again")
    try:
        _remove_leftovers(target)
        yield
    finally:
        guard.unlink(missing_ok=True)
        os.close(descriptor)


def make_directory(path: Path, *, error: type[RocmrunError]) -> None:
    """Make the directory *path* and its parents where they are missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        msg = f"cannot make the directory {path}: {failure.strerror}"
        raise error(msg) from failure


def _real_path(path: Path) -> Path:
    # Not Path.resolve: a symlink to a file that is yet to come is followed too, and a loop is left to open().
    return Path(os.path.realpath(path))


def _write_into(target: Path, body: bytes) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_NONBLOCK)
    try:
        while body:
            body = body[os.write(descriptor, body) :]
    finally:
        os.close(descriptor)


def _holds(path: Path, body: bytes) -> bool:
    try:
        return path.stat().st_size == len(body) and path.read_bytes() == body
    except FileNotFoundError:
        return False


def _replace(
    target: Path, body: bytes, before_replace: Callable[[], None], *, private: bool
) -> None:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    # 0666 and the caller's umask for a new file; an old one's mode and owner are put back.
    mode = 0o600 if private else 0o666
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            if not private:
                _keep_owner_and_mode(target, file.fileno())
            file.flush()
            os.fsync(file.fileno())
        before_replace()
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def _keep_owner_and_mode(target: Path, descriptor: int) -> None:
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    new = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some network file systems cannot; the content itself is safe by then.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _acquire(guard: Path, timeout_seconds: float) -> int | None:
    deadline = time.monotonic() + timeout_seconds
    while True:
        descriptor = os.open(guard, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have removed the file between our open and our flock.
            if _is_the_file_at(guard, descriptor):
                return descriptor
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(_POLL_SECONDS)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_the_file_at(path: Path, descriptor: int) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of writers that were killed: whoever holds the guard is the only writer."""
    for leftover in target.parent.iterdir():
        if leftover.name.startswith(f".{target.name}.") and leftover.suffix == ".tmp":
            with contextlib.suppress(OSError):
                leftover.unlink()
