"""The kernel's trace: an instance of our own, which nobody else's tracing sees, and which goes when we do.

Nothing is mounted where others see it, and nothing outside the instance is changed: neither the kernel's main buffer
nor other instances.
"""

import contextlib
import ctypes
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MOUNTED = Path("/sys/kernel/tracing")
PREFIX = "rocmrun-"
TOTAL_KIB, LEAST_KIB = 64 * 1024, 512
READ_BYTES, MOST_READS = 1 << 16, 256
MOST_TRIES, TRY_SECONDS = 20, 0.05
# The same on every architecture: include/uapi/asm-generic/unistd.h, include/uapi/linux/mount.h.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CREATE, _CLOEXEC = 6, 1
# include/linux/proc_ns.h, PROC_PID_INIT_INO.
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_LOSSES = ("overrun", "commit overrun", "dropped events")


class TraceUnavailable(Exception):
    """This kernel or this user has no trace; the message says which of the two, and why."""


@contextlib.contextmanager
def tracefs(root: Path | None = None, *, uid: int | None = None) -> Iterator[Path]:
    """Yield the directory of the kernel's tracing files.

    Args:
        root: In place of the kernel's own.
        uid: In place of ours.

    Raises:
        TraceUnavailable: there is none for us.
    """
    if (os.geteuid() if uid is None else uid) != 0:
        msg = "the kernel lets only root trace"
        raise TraceUnavailable(msg)
    if root is not None or (MOUNTED / "instances").is_dir():
        found = root or MOUNTED
        if not (found / "instances").is_dir():
            msg = f"{found} has no trace instances: this kernel has no tracefs"
            raise TraceUnavailable(msg)
        yield found
        return
    descriptor = _mounted_nowhere()
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def process_numbers_are_the_kernels() -> bool:
    """Whether processes have here the numbers that the kernel's trace has: in a container they have others."""
    try:
        return str(Path("/proc/self/ns/pid").readlink()) == _FIRST_PID_NAMESPACE
    except OSError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A trace of our own."""

    directory: Path
    _pipe: int

    def has(self, event: str) -> bool:
        """Whether this kernel has *event*, "raw_syscalls/sys_enter"."""
        return (self.directory / "events" / event).is_dir()

    def follow(self, pids: Iterable[int]) -> None:
        """Trace these threads, and all that they start from now on."""
        self._write("set_event_pid", " ".join(str(pid) for pid in pids))

    def enable(self, event: str, only: str = "0") -> None:
        """Trace *event* where the filter *only* holds; "0" is none."""
        self.filter(event, only)
        self._write(f"events/{event}/enable", "1")

    def filter(self, event: str, only: str) -> None:
        """Change the filter of *event*."""
        self._write(f"events/{event}/filter", only)

    def end(self) -> None:
        """Trace no more; what was traced can still be read."""
        self._write("tracing_on", "0")

    def read(self) -> bytes:
        """Return what has come since the last time, as far as one read should go; b"" when that is nothing."""
        found: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while len(found) < MOST_READS:
                found.append(os.read(self._pipe, READ_BYTES))
        return b"".join(found)

    def lost(self) -> int:
        """Return how many events found no room."""
        lines = [
            line
            for path in (self.directory / "per_cpu").glob("cpu*/stats")
            for line in path.read_text().splitlines()
        ]
        pairs = (line.partition(": ") for line in lines)
        return sum(int(number) for name, _, number in pairs if name in _LOSSES)

    def _write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)


def _to_nobody(_why: str) -> None:
    """Tell nobody."""


@contextlib.contextmanager
def instance(
    root: Path,
    owner: str,
    *,
    buffer_kib: int | None = None,
    postponed: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    on_left: Callable[[str], None] = _to_nobody,
) -> Iterator[Instance]:
    """Make an instance, yield it, and remove it at the end.

    Args:
        root: The kernel's tracing files.
        owner: Who makes it, as `leftovers` will ask for; no slash.
        buffer_kib: Room for each CPU; None for an equal part of 64 MiB.
        postponed: Keeps signals away while a step must not be cut in half.
        on_left: Told why the instance stays, where somebody else keeps it from going.

    Raises:
        TraceUnavailable: the kernel refuses it.
    """
    directory = root / "instances" / f"{PREFIX}{owner}"
    with contextlib.ExitStack() as stack:
        try:
            with postponed():
                directory.mkdir()
                stack.callback(_remove, root, owner, postponed, on_left)
            made = _prepared(directory, stack, buffer_kib or _share())
        except OSError as error:
            msg = f"the kernel refuses a trace of our own: {error.strerror}"
            raise TraceUnavailable(msg) from error
        yield made


def _prepared(directory: Path, stack: contextlib.ExitStack, buffer_kib: int) -> Instance:
    # What comes first is kept when there is no more room: a container's start is what cannot be seen again.
    options = {"event-fork": "1", "overwrite": "0", "irq-info": "0"}
    for option, value in options.items():
        (directory / "options" / option).write_text(value)
    (directory / "buffer_size_kb").write_text(str(buffer_kib))
    pipe = os.open(directory / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    stack.callback(os.close, pipe)
    return Instance(directory=directory, _pipe=pipe)


def _share() -> int:
    return max(LEAST_KIB, TOTAL_KIB // (os.cpu_count() or 1))


def _remove(
    root: Path,
    owner: str,
    postponed: Callable[[], contextlib.AbstractContextManager[None]],
    on_left: Callable[[str], None],
) -> None:
    """Remove an instance; another tracer that looks into it, as they do into all of them, keeps it for a moment."""
    tries = 0
    with postponed():
        while (why := remove_instance(root, owner)) and (tries := tries + 1) < MOST_TRIES:
            time.sleep(TRY_SECONDS)
    if why:
        on_left(why)


def owners(root: Path) -> tuple[str, ...]:
    """Return who made the instances of ours that there are."""
    names = (path.name for path in (root / "instances").iterdir())
    return tuple(sorted(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)))


def remove_instance(root: Path, owner: str) -> str:
    """Remove an instance that was left behind; return what kept it, or ""."""
    try:
        (root / "instances" / f"{PREFIX}{owner}").rmdir()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _mounted_nowhere() -> int:
    """Return a descriptor of a tracefs that is in nobody's tree of mounts: it is gone with the descriptor."""
    library = ctypes.CDLL(None, use_errno=True)
    context = _called(library, _FSOPEN, b"tracefs", _CLOEXEC)
    try:
        _called(library, _FSCONFIG, context, _CREATE, None, None, 0)
        return _called(library, _FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)


def _called(library: ctypes.CDLL, number: int, *arguments: int | bytes | None) -> int:
    result = int(library.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        why = os.strerror(ctypes.get_errno())
        msg = f"{MOUNTED} is not mounted, and the kernel gives no tracefs: {why}"
        raise TraceUnavailable(msg)
    return result
