"""Who is told what while a use-case runs: the console answers it, and tests listen."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rocmrun.core.report.model import ProbeEvent
from rocmrun.core.run import PullEvent

OnPull = Callable[[], AbstractContextManager[Callable[[PullEvent], object]]]
OnProbe = Callable[[], AbstractContextManager[Callable[[ProbeEvent], object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Where words go.

    Attributes:
        say: Messages.
        detail: Messages for those who asked for more.
        warn: Warnings.
        hint: What to look at next, after something that went wrong in others' words.
        result: A line of result, for stdout.
        on_pull: Opened when a pull begins and closed when it ends; gives what takes its events.
        on_probe: Opened when a probe begins and closed when it ends; gives what takes its checks, and
            what it says of those under way.
    """

    say: Callable[[str], None]
    detail: Callable[[str], None]
    warn: Callable[[str], None]
    hint: Callable[[str], None]
    result: Callable[[str], None]
    on_pull: OnPull
    on_probe: OnProbe
