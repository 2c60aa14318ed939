"""What is shown of a probe while it runs, on stderr: a row a device on a terminal, else a line now and then."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rocmrun.console.output import detail, err, say, settings
from rocmrun.core.probing.progress import ProbeProgress
from rocmrun.core.report.model import ProbeCheck, ProbeEvent

if TYPE_CHECKING:
    from rich.table import Table

REFRESHES_PER_SECOND = 4
BEAT_SECONDS = 15.0


@contextlib.contextmanager
def shown_probe(
    *, beat_seconds: float = BEAT_SECONDS, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[ProbeEvent], None]]:
    """Show one probe; what is yielded takes its events.

    Off a terminal whoever waits is told every *beat_seconds* what is under way on which device: it
    is the place to look when nothing else comes.
    """
    shown = _ShownProbe(clock=clock)
    draws = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not settings.quiet
    with _drawn(shown) if draws else _told(shown, beat_seconds):
        yield shown.take


@dataclass(kw_only=True)
class _ShownProbe:
    """What is known; the display looks at it from a thread of its own."""

    clock: Callable[[], float]
    progress: ProbeProgress = field(default_factory=ProbeProgress)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _began: float = 0.0

    def __post_init__(self) -> None:
        self._began = self.clock()

    def take(self, event: ProbeEvent) -> None:
        with self._lock:
            self.progress.add(event, self.clock())
        if isinstance(event, ProbeCheck):
            _tell(event)

    def table(self) -> "Table":
        from rich.table import Table  # noqa: PLC0415  # only a terminal needs it

        with self._lock:
            rows = self.progress.rows(self.clock())
        table = Table.grid(padding=(0, 2))
        for row in rows:
            table.add_row(*row)
        return table

    def beat(self) -> None:
        with self._lock:
            under_way, done = self.progress.under_way(), self.progress.done
        seconds = self.clock() - self._began
        say(f"probe: {done} checks done after {seconds:.0f} s; under way: {under_way or 'nothing'}")


@contextlib.contextmanager
def _drawn(shown: _ShownProbe) -> Iterator[None]:
    from rich.live import Live  # noqa: PLC0415  # only a terminal needs it

    with Live(
        console=err(),
        get_renderable=shown.table,
        refresh_per_second=REFRESHES_PER_SECOND,
        transient=True,
    ):
        yield


@contextlib.contextmanager
def _told(shown: _ShownProbe, beat_seconds: float) -> Iterator[None]:
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(beat_seconds):
            shown.beat()

    thread = threading.Thread(target=beat, daemon=True, name="rocmrun-probe-beat")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tell(check: ProbeCheck) -> None:
    """Say what failed at once, everything else under --verbose."""
    line = f"probe: {check.label} {check.status}" + (f": {check.reason}" if check.reason else "")
    (say if check.status in {"fail", "degraded"} else detail)(line)
