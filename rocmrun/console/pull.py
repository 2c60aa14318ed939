"""What is shown of a pull, on stderr: one line that is drawn again on a terminal, else a line at the start and at the end."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rocmrun.console.output import detail, say, settings, warn
from rocmrun.core.pull_progress import PullProgress
from rocmrun.core.run import PullEvent
from rocmrun.core.text import human_size, printable

REDRAW_SECONDS = 0.25
STALL_SECONDS = 60.0
# The engine's last events: "Digest: sha256:…" and "Status: Downloaded newer image for …".
_LAST = ("Digest:", "Status:")


@contextlib.contextmanager
def shown_pull(
    *,
    stall_seconds: float = STALL_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[PullEvent], None]]:
    """Show one pull; what is yielded takes its events.

    The engine's call has no time limit of its own, since a large layer may take hours. So whoever
    waits is told when nothing has come for *stall_seconds*, and every *stall_seconds* from then on.
    """
    say("fetching the image, which is not on this machine")
    began = clock()
    shown = _ShownPull(live=sys.stderr.isatty() and not settings.quiet, clock=clock)
    with watched(stall_seconds, shown.say_stalled, clock=clock) as heard:

        def take(event: PullEvent) -> None:
            heard()
            shown.take(event)

        try:
            yield take
        finally:
            shown.clear()
    size = shown.progress.download.bytes_total
    fetched = f"fetched {human_size(size)}" if size else "fetched"
    say(f"{fetched} in {clock() - began:.0f} s")


@dataclass(kw_only=True)
class _ShownPull:
    """The line and what it says. The watch speaks from a thread of its own, so the line is one writer's at a time."""

    live: bool
    clock: Callable[[], float]
    progress: PullProgress = field(default_factory=PullProgress)
    _drawn: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, event: PullEvent) -> None:
        if event.warning:
            self.clear()
            warn(event.warning)
        self.progress.add(event)
        if event.status.startswith(_LAST):
            self.clear()
            detail(printable(event.status))
        elif self.live and self.progress.begun and self.clock() - self._drawn >= REDRAW_SECONDS:
            self._drawn = self.clock()
            self._write(f"rocmrun: {self.progress}")

    def say_stalled(self, seconds: float) -> None:
        self.clear()
        say(
            f"nothing has come from the engine for {seconds:.0f} s ({self.progress}); still waiting. "
            "Ctrl-C gives up; the engine's log may say why (journalctl -u docker)"
        )

    def clear(self) -> None:
        if self.live:
            self._write("")

    def _write(self, text: str) -> None:
        with self._lock, contextlib.suppress(OSError):
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


@contextlib.contextmanager
def watched(
    seconds: float, notice: Callable[[float], None], *, clock: Callable[[], float]
) -> Iterator[Callable[[], None]]:
    """Call *notice*, from another thread, whenever what is yielded has not been called for another *seconds*.

    *notice* is told for how long it has been silent.
    """
    watch = _Watch(seconds=seconds, notice=notice, clock=clock)
    thread = threading.Thread(target=watch.run, daemon=True, name="rocmrun-stall")
    thread.start()
    try:
        yield watch.hear
    finally:
        watch.ended.set()
        thread.join()


@dataclass(kw_only=True)
class _Watch:
    seconds: float
    notice: Callable[[float], None]
    clock: Callable[[], float]
    ended: threading.Event = field(default_factory=threading.Event)
    _heard: float = 0.0
    _noticed: int = 0

    def __post_init__(self) -> None:
        self._heard = self.clock()

    def hear(self) -> None:
        self._heard, self._noticed = self.clock(), 0

    def run(self) -> None:
        while not self.ended.wait(self.check()):
            pass

    def check(self) -> float:
        """Give a notice if one is due, and return after how many seconds to look again."""
        silent = self.clock() - self._heard
        if silent >= self.seconds * (self._noticed + 1):
            self._noticed += 1
            self.notice(silent)
        return max(self._heard + self.seconds * (self._noticed + 1) - self.clock(), 0.01)
