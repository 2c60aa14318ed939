"""Run a created container in the foreground: streams, signals, terminal size, exit code."""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rocmrun.errors import EngineFailed, OutputUnwritable
from rocmrun.system import terminal
from rocmrun.system.signals import SignalQueue
from rocmrun.usecases.engine_protocol import Attachment, Engine

STDOUT = 1
BROKEN_PIPE = 141
RESIZE_TRIES = 20
RESIZE_PAUSE_SECONDS = 0.05
CHUNK = 65536
LAST_BYTES = 16384
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})


@dataclass(slots=True)
class Foreground:
    """One attached run. Bytes pass through unchanged in both directions.

    Attributes:
        killed: Whether we killed the container, asked to or after its stop timeout.
        asked_to_end: Whether a signal that ends programs was sent on to the workload.
        last_output: The end of what the workload printed; nothing of a terminal.
    """

    engine: Engine
    container_id: str
    attachment: Attachment
    stdin: bool
    tty: bool
    say: Callable[[str], None]
    on_started: Callable[[], None]
    killed: bool = field(init=False, default=False)
    asked_to_end: bool = field(init=False, default=False)
    last_output: bytes = field(init=False, default=b"")
    _stop_timeout_seconds: int = field(init=False, default=0)
    _deadline: float | None = field(init=False, default=None)
    _wake: int = field(init=False, default=-1)
    _code: int | Exception | None = field(init=False, default=None)
    _lost: OSError | None = field(init=False, default=None)
    _all_written: bool = field(init=False, default=False)
    _interrupts: int = field(init=False, default=0)

    def run(self, stop_timeout_seconds: int) -> int:
        """Start the container, relay until it ends and return its exit code.

        After SIGTERM it has *stop_timeout_seconds* until it is killed, as `docker stop` does it.
        Returns 141 when nobody reads our stdout any more: the container is then stopped.

        Raises:
            OutputUnwritable: our stdout or stderr takes no more; the container was stopped.
        """
        self._stop_timeout_seconds = stop_timeout_seconds
        woken, self._wake = os.pipe()
        os.set_blocking(woken, False)
        queue = SignalQueue(window_size=self.tty)
        output = threading.Thread(target=self._copy_output, daemon=True)
        with contextlib.ExitStack() as stack:
            stack.callback(queue.close)
            # Raw keys reach the workload through its stdin; without one, Ctrl-C must stay a signal of ours.
            if self.tty and self.stdin and terminal.is_terminal(0):
                stack.enter_context(terminal.raw(0))
            output.start()
            self.engine.start(self.container_id)
            self.on_started()
            threading.Thread(target=self._wait, daemon=True).start()
            if self.tty:
                self._resize_until_it_takes()
            if self.stdin:
                threading.Thread(target=self._copy_input, daemon=True).start()
            while not self._finished():
                for number in queue.wait(woken, self._seconds_left()):
                    self._handle(number)
                self._kill_when_overdue()
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, CHUNK)
            return self._result() if self._lost is None else self._stop()

    def _finished(self) -> bool:
        return self._lost is not None or (self._code is not None and self._all_written)

    def _stop(self) -> int:
        """End a workload that talks to nobody."""
        # Docker 20.10 sees no end of a container while an attached client reads nothing.
        self.attachment.close()
        self.engine.stop(self.container_id, self._stop_timeout_seconds)
        if isinstance(self._lost, BrokenPipeError):
            return BROKEN_PIPE
        reason = self._lost.strerror if self._lost else ""
        msg = f"the workload was stopped, because its output cannot be written: {reason}"
        raise OutputUnwritable(msg)

    def _result(self) -> int:
        if isinstance(self._code, int):
            return self._code
        raise self._code or EngineFailed("the container ended without an exit code")

    def _wait(self) -> None:
        """Wait apart: a container may close its output long before it ends."""
        try:
            self._code = self.engine.wait(self.container_id)
        except Exception as error:  # noqa: BLE001  # raised again in the main thread
            self._code = error
        os.write(self._wake, b".")

    def _seconds_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def _kill_when_overdue(self) -> None:
        if self._finished() or self._seconds_left() != 0.0:
            return
        self._deadline = None
        if self._code is not None:
            # It has ended, and whoever reads its output takes too long for whoever stops it.
            self._all_written = True
            return
        self.say(f"it still runs {self._stop_timeout_seconds} s after SIGTERM")
        self._kill()

    def _handle(self, number: signal.Signals) -> None:
        if number == signal.SIGWINCH:
            self.engine.resize(self.container_id, *terminal.size())
            return
        if self._code is not None and number in ENDING:
            # The workload has ended, and whoever reads its output takes too long for the user.
            self._all_written = True
            return
        if number == signal.SIGINT:
            self._interrupts += 1
            if self._interrupts > 1:
                self._kill()
                return
            self.say("sent SIGINT to the container; press Ctrl-C again to kill it")
        self.asked_to_end = self.asked_to_end or number in ENDING
        if number == signal.SIGTERM and self._deadline is None:
            self._deadline = time.monotonic() + self._stop_timeout_seconds
        self.engine.kill(self.container_id, number.name)

    def _kill(self) -> None:
        self.killed = True
        self.say("killing the container")
        if not _takes_output():
            # Docker 20.10 sees no end of a container while an attached client reads nothing.
            self.attachment.close()
            self._all_written = True
        self.engine.kill(self.container_id, "SIGKILL")

    def _resize_until_it_takes(self) -> None:
        """The engine ignores the size at creation and refuses one before the terminal exists."""
        pause = threading.Event()
        for _ in range(RESIZE_TRIES):
            try:
                self.engine.resize(self.container_id, *terminal.size())
            except Exception:  # noqa: BLE001  # a wrong size is not worth a failed run
                pause.wait(RESIZE_PAUSE_SECONDS)
            else:
                return

    def _copy_output(self) -> None:
        for stream, data in self.attachment.frames():
            try:
                write_all(1 if stream == STDOUT else 2, data)
            except OSError as error:
                self._lost = error
                break
            if not self.tty:
                self.last_output = (self.last_output + data)[-LAST_BYTES:]
        self._all_written = True
        os.write(self._wake, b".")

    def _copy_input(self) -> None:
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ else 0
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(descriptor, CHUNK):
                self.attachment.send(data)
            self.attachment.end_input()


def _takes_output() -> bool:
    """Return whether a write to stdout or stderr would not wait for its reader."""
    return select.select([], [1, 2], [], 0)[1] == [1, 2]


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of *data*, however little a call takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
