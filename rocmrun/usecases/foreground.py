"""Run a created container in the foreground: streams, signals, terminal size, exit code."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from rocmrun.errors import EngineFailed
from rocmrun.system import terminal
from rocmrun.system.signals import SignalQueue
from rocmrun.usecases.engine_protocol import Attachment, Engine

STDOUT = 1
BROKEN_PIPE = 141
RESIZE_TRIES = 20
RESIZE_PAUSE_SECONDS = 0.05
CHUNK = 65536


@dataclass(slots=True)
class Foreground:
    """One attached run. Bytes pass through unchanged in both directions."""

    engine: Engine
    container_id: str
    attachment: Attachment
    stdin: bool
    tty: bool
    say: Callable[[str], None]
    on_started: Callable[[], None]
    _wake: int = field(init=False, default=-1)
    _code: int | Exception | None = field(init=False, default=None)
    _broken: bool = field(init=False, default=False)
    _interrupts: int = field(init=False, default=0)

    def run(self, stop_timeout_seconds: int) -> int:
        """Start the container, relay until it ends and return its exit code.

        Returns 141 when nobody reads our stdout any more: the container is then stopped.
        """
        woken, self._wake = os.pipe()
        queue = SignalQueue(window_size=self.tty)
        output = threading.Thread(target=self._copy_output, daemon=True)
        with contextlib.ExitStack() as stack:
            stack.callback(queue.close)
            if self.tty and terminal.is_terminal(0):
                stack.enter_context(terminal.raw(0))
            output.start()
            self.engine.start(self.container_id)
            self.on_started()
            threading.Thread(target=self._wait, daemon=True).start()
            if self.tty:
                self._resize_until_it_takes()
            if self.stdin:
                threading.Thread(target=self._copy_input, daemon=True).start()
            while self._code is None and not self._broken:
                for number in queue.wait(woken):
                    self._handle(number)
            if self._broken:
                self.engine.stop(self.container_id, stop_timeout_seconds)
                return BROKEN_PIPE
            output.join()
            return self._result()

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

    def _handle(self, number: signal.Signals) -> None:
        if number == signal.SIGWINCH:
            self.engine.resize(self.container_id, *terminal.size())
            return
        if number == signal.SIGINT:
            self._interrupts += 1
            if self._interrupts > 1:
                self.say("killing the container")
                self.engine.kill(self.container_id, "SIGKILL")
                return
            self.say("sent SIGINT to the container; press Ctrl-C again to kill it")
        self.engine.kill(self.container_id, number.name)

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
        try:
            for stream, data in self.attachment.frames():
                _write_all(1 if stream == STDOUT else 2, data)
        except BrokenPipeError:
            self._broken = True
            os.write(self._wake, b".")

    def _copy_input(self) -> None:
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ else 0
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(descriptor, CHUNK):
                self.attachment.send(data)
            self.attachment.end_input()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
