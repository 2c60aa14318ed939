"""Signals of this process: as exceptions before a workload runs, as a queue while one does."""

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from rocmrun.errors import Interrupted

# What `docker run` forwards and people send; SIGKILL and SIGSTOP cannot be caught.
FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGCONT,
)  # fmt: skip

AGAIN_SECONDS = 0.05
LOOK_SECONDS = 0.1

# What ends a run that has not reached its workload yet.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_with_care() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, as Python does, but never in the middle of an import."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not _sent_again(number, frame):
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)


@contextlib.contextmanager
def as_exceptions() -> Iterator[None]:
    """Raise Interrupted in the main thread for SIGINT, SIGTERM and SIGHUP; what is `postponed` is finished first."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _sent_again(number, frame):
            return
        msg = f"interrupted by {signal.Signals(number).name}; nothing is left running"
        raise Interrupted(msg, signal_number=number)

    saved = {number: signal.signal(number, interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)


def _sent_again(number: int, frame: FrameType | None) -> bool:
    """Return whether an import is in progress; the signal comes again a moment later then.

    An exception inside the import machinery can be swallowed, or leave its lock held: a thread that
    imports as well would wait for it for ever.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            timer = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number))
            timer.daemon = True
            timer.start()
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Let the block run to its end before SIGINT, SIGTERM or SIGHUP is acted on.

    For calls to the engine that must not be cut in half: a container that is made, but whose id never
    arrives, is one that nobody removes.
    """
    arrived: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)

    saved = {number: signal.signal(number, note) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


def wait_until(ended: Callable[[float], object]) -> None:
    """Call *ended* with a number of seconds until what it returns is true.

    Python acts on a signal between two of its instructions. One that arrives on the way into a wait
    without end is acted on when that wait is over: Ctrl-C would be lost.
    """
    while not ended(LOOK_SECONDS):
        pass


class SignalQueue:
    """Signals as values: handlers only write a byte, the owner reads them when it likes."""

    def __init__(self, *, window_size: bool) -> None:
        self._numbers = (*FORWARDED, *((signal.SIGWINCH,) if window_size else ()))
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._saved_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._saved = {number: signal.signal(number, _ignore) for number in self._numbers}

    def wait(self, other: int, timeout_seconds: float | None = None) -> list[signal.Signals]:
        """Block until a signal arrives, descriptor *other* is readable or time is up; return the signals, in order."""
        select.select([self._read, other], [], [], timeout_seconds)
        try:
            data = os.read(self._read, 4096)
        except BlockingIOError:
            return []
        return [signal.Signals(number) for number in data if number in self._numbers]

    def close(self) -> None:
        """Put the handlers back."""
        signal.set_wakeup_fd(self._saved_wakeup)
        for number, handler in self._saved.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the wake-up descriptor carries the number."""
