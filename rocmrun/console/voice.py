"""What a launch says while it runs, on stderr."""

import sys
import time
from collections.abc import Callable

from rocmrun.console.output import detail, emit, say, settings, warn
from rocmrun.core.report import ProbeCheck
from rocmrun.core.run import PullEvent
from rocmrun.core.text import human_size, printable
from rocmrun.core.voice import Voice

REDRAW_SECONDS = 0.25


def voice() -> Voice:
    """Return the voice of this terminal."""
    return Voice(
        say=say, detail=detail, warn=warn, result=emit, on_pull=_begin_pull, on_check=_check
    )


def _check(check: ProbeCheck) -> None:
    """Failures are told at once, everything else under --verbose."""
    line = f"probe: {check.label} {check.status}" + (f": {check.reason}" if check.reason else "")
    (say if check.status in {"fail", "degraded"} else detail)(line)


def _begin_pull() -> Callable[[PullEvent], None]:
    say("fetching the image, which is not on this machine")
    return _PullProgress()


class _PullProgress:
    """One line that is drawn again on a terminal; without one, a line at the end of each layer."""

    def __init__(self) -> None:
        self._layers: dict[str, tuple[int, int]] = {}
        self._drawn = 0.0
        self._live = sys.stderr.isatty() and not settings.quiet

    def __call__(self, event: PullEvent) -> None:
        if event.total:
            self._layers[event.layer] = (event.current or 0, event.total)
        elif event.status in {"Pull complete", "Already exists"} and event.layer:
            size = self._layers.get(event.layer, (0, 0))[1]
            self._layers[event.layer] = (size, size)
        if event.status.startswith(("Digest:", "Status:")):
            if self._live:
                sys.stderr.write("\r\x1b[K")
            detail(printable(event.status))
            return
        now = time.monotonic()
        if self._live and now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            done = sum(current for current, _ in self._layers.values())
            total = sum(size for _, size in self._layers.values())
            text = (
                f"rocmrun: {printable(event.status, 40)}: {human_size(done)} of {human_size(total)}"
            )
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
