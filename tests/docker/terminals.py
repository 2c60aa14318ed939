"""A terminal for rocmrun: a pty, as a shell's user has one."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.docker.waiting import PATIENCE_SECONDS
from tests.workspace import Rocmrun


@dataclass(kw_only=True)
class Terminal:
    """The user's side of it: keys go in, what is shown comes out; *before* is how it was before anything started."""

    keyboard: int
    screen: int
    before: list[object]
    process: subprocess.Popen[bytes]
    shown: bytes = field(default=b"")

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.keyboard, keys)

    def until(self, words: bytes) -> bytes:
        """Read on until *words* are shown; return what was shown since the last call, up to them."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while words not in self.shown:
            assert time.monotonic() < deadline, f"not shown: {words!r} in {self.shown!r}"
            if select.select([self.keyboard], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):  # EIO: nobody has the other side open any more
                    self.shown += os.read(self.keyboard, 65536)
        before, _, self.shown = self.shown.partition(words)
        return before + words

    def resize(self, rows: int, columns: int) -> None:
        """Drag the window's corner."""
        set_size(self.screen, rows, columns)
        self.process.send_signal(signal.SIGWINCH)

    def attributes(self) -> list[object]:
        """How the terminal treats keys: raw or line by line, echo or not."""
        return termios.tcgetattr(self.screen)


def set_size(descriptor: int, rows: int, columns: int) -> None:
    """Set the size of a terminal."""
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextlib.contextmanager
def terminal(rocmrun: Rocmrun, *args: str, rows: int = 24, columns: int = 80) -> Iterator[Terminal]:
    """Start rocmrun on a terminal of that size."""
    keyboard, screen = pty.openpty()
    set_size(screen, rows, columns)
    before = termios.tcgetattr(screen)
    process = rocmrun.start(*args, stdin=screen, stdout=screen, stderr=screen)
    try:
        yield Terminal(keyboard=keyboard, screen=screen, before=before, process=process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(keyboard)
        os.close(screen)
