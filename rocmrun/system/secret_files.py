"""Files with secrets for containers: in a directory of this user's alone, in memory where the system has one."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from rocmrun.errors import HostNotReady, SecretMissing

PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o400
LARGEST_BYTES = 1 << 20
SYSTEM_DIRECTORY = Path("/run/rocmrun")
# Beside the secrets, whose names begin with no dot.
ENGINE_FILE = ".engine"


def secret_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the files go: below XDG_RUNTIME_DIR, for root below /run. Both are tmpfs on usual systems."""
    configured = environment.get("XDG_RUNTIME_DIR", "")
    if configured.startswith("/"):
        return Path(configured) / "rocmrun" / "secrets"
    if os.getuid() == 0:
        return SYSTEM_DIRECTORY / "secrets"
    return Path(f"/run/user/{os.getuid()}/rocmrun/secrets")


def read_secret(path: str) -> bytes:
    """Return the content of a file that holds a secret.

    Raises:
        SecretMissing: it is not there, is no file, cannot be read, or is too large.
    """
    try:
        # Without O_NONBLOCK the open of a pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            body = file.read(LARGEST_BYTES + 1) if regular else b""
    except OSError as error:
        msg = f"the secret's file {path} cannot be read: {error.strerror}"
        raise SecretMissing(
            msg, hint=f"write it, readable by you alone: chmod 0400 {path}"
        ) from error
    if not regular or len(body) > LARGEST_BYTES:
        msg = f"{path} is no file with a secret: {'it is no regular file' if not regular else 'it is larger than 1 MiB'}"
        raise SecretMissing(msg)
    return body


def make_secret_directory(directory: Path, uid: int) -> None:
    """Make the empty *directory* for secrets of user *uid*.

    Refused is a directory on the way that somebody else could exchange: the engine follows the path as root.

    Raises:
        HostNotReady: it cannot be made, or only root could give files to that user.
    """
    if os.geteuid() not in (0, uid):
        msg = f"secrets for uid {uid} can be written by that user or by root alone"
        raise HostNotReady(msg, hint="leave out [container] user, or run rocmrun with sudo")
    with _writing(directory):
        _make_private(directory.parent)
        directory.mkdir(mode=PRIVATE_DIRECTORY)


def write_secrets(
    directory: Path, files: Mapping[str, bytes], uid: int, gid: int, *, engine: str
) -> dict[str, str]:
    """Write a file of mode 0400 for each secret, owned by *uid*:*gid*, for a container of *engine*; return name → path.

    Raises:
        HostNotReady: they cannot be written.
    """
    with _writing(directory):
        _write(directory / ENGINE_FILE, engine.encode(), os.geteuid(), os.getegid())
        return {name: _write(directory / name, body, uid, gid) for name, body in files.items()}


def engine_of(directory: Path) -> str:
    """Return which engine has the container that secrets are for; "" where nobody wrote that down."""
    try:
        return (directory / ENGINE_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


@contextlib.contextmanager
def _writing(directory: Path) -> Iterator[None]:
    """Take *directory* away again where it cannot be made or filled, and say so."""
    try:
        yield
    except OSError as error:
        remove_secrets(directory)
        msg = f"cannot write secrets to {directory}: {error.strerror}"
        raise HostNotReady(
            msg, hint="XDG_RUNTIME_DIR must name a directory of yours that nobody else may enter"
        ) from error


def remove_secrets(directory: Path) -> None:
    """Remove a directory that `write_secrets` made; gone already is no error."""
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            path.unlink(missing_ok=True)
        directory.rmdir()


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Keep `is_held` true meanwhile; the kernel ends it when this process dies."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def is_held(directory: Path) -> bool:
    """Whether a process that wrote it still looks after it."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def secret_directories(root: Path) -> tuple[Path, ...]:
    """Return the directories below *root* that runs have left or still use."""
    try:
        return tuple(sorted(path for path in root.iterdir() if _has_files(path)))
    except OSError:
        return ()


def _has_files(directory: Path) -> bool:
    """Whether there is anything in it: what is empty was made this moment, or is being removed."""
    try:
        return any(directory.iterdir())
    except OSError:
        return False


def _make_private(directory: Path) -> None:
    """Make *directory* for this user alone; one that others own, may enter or could exchange is refused."""
    directory.parent.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=PRIVATE_DIRECTORY)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        msg = "it belongs to somebody else, or others may enter it"
        raise PermissionError(0, msg)
    # As written, and where links on the way lead: whoever owns a directory of either can put others there.
    for path in dict.fromkeys((directory, directory.resolve())):
        for above in path.parents:
            _check_above(above)


def _check_above(directory: Path) -> None:
    found = directory.stat()
    # A group of the user's own number is the user alone.
    others = stat.S_IWOTH if found.st_gid == found.st_uid else stat.S_IWGRP | stat.S_IWOTH
    may_write = found.st_mode & others and not found.st_mode & stat.S_ISVTX
    if found.st_uid not in {0, os.geteuid()} or may_write:
        msg = f"others could exchange what is in {directory}"
        raise PermissionError(0, msg)


def _write(path: Path, body: bytes, uid: int, gid: int) -> str:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(body)
        # Whatever the umask left of the mode is put back; only root may give the file away.
        os.fchmod(descriptor, PRIVATE_FILE)
        if os.geteuid() == 0:
            os.fchown(descriptor, uid, gid)
    return str(path)
