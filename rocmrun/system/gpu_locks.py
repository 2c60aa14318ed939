"""One lock file a render node, held while a launch starts: two launches cannot take the same GPU at once."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from rocmrun.errors import GpuBusy, HostNotReady

DIRECTORY = Path("/run/lock/rocmrun")
PAUSE_SECONDS = 0.2
SHARED_DIRECTORY = 0o1777
SHARED_FILE = 0o666


@contextlib.contextmanager
def held(
    minors: Iterable[int], *, wait_seconds: float, directory: Path = DIRECTORY
) -> Iterator[None]:
    """Hold the locks of *minors* while the block runs.

    Raises:
        GpuBusy: another launch holds one for longer than *wait_seconds*.
        HostNotReady: there can be no lock file.
    """
    deadline = time.monotonic() + wait_seconds
    with contextlib.ExitStack() as stack:
        # Always in the same order, so that two launches cannot wait for each other.
        for minor in sorted(minors):
            descriptor = _open(directory, minor)
            stack.callback(os.close, descriptor)
            while not _try(descriptor):
                if time.monotonic() >= deadline:
                    msg = f"another launch is starting on /dev/dri/renderD{minor}"
                    raise GpuBusy(
                        msg, hint="try again in a moment, or wait for it with --wait SECONDS"
                    )
                time.sleep(PAUSE_SECONDS)
        yield


def pause() -> None:
    """Wait a moment before the GPUs are looked at again."""
    time.sleep(PAUSE_SECONDS)


def now() -> float:
    """Return a clock that only ever goes forward, in seconds."""
    return time.monotonic()


def _open(directory: Path, minor: int) -> int:
    path = directory / f"renderD{minor}.lock"
    try:
        with contextlib.suppress(FileExistsError):
            directory.mkdir(parents=True)
            directory.chmod(SHARED_DIRECTORY)
        return _existing(path) if path.exists() else _new(path)
    except OSError as error:
        msg = f"cannot make the lock file {path}: {error.strerror}"
        raise HostNotReady(
            msg, hint="start without keeping the GPUs to this run: --share"
        ) from error


def _existing(path: Path) -> int:
    # Without O_CREAT, which fs.protected_regular refuses for another user's file in a sticky directory.
    return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)


def _new(path: Path) -> int:
    try:
        descriptor = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, SHARED_FILE
        )
    except FileExistsError:
        return _existing(path)
    # The umask of whoever came first must not lock others out.
    os.fchmod(descriptor, SHARED_FILE)
    return descriptor


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
