"""Who is told what while a use-case runs: the console answers it, and tests listen."""

from collections.abc import Callable
from dataclasses import dataclass

from rocmrun.core.report import ProbeCheck
from rocmrun.core.run import PullEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Where words go.

    Attributes:
        say: Messages.
        detail: Messages for those who asked for more.
        warn: Warnings.
        result: A line of result, for stdout.
        on_pull: Called when a pull begins; returns what takes its events.
        on_check: Takes each check of a probe as it comes.
    """

    say: Callable[[str], None]
    detail: Callable[[str], None]
    warn: Callable[[str], None]
    result: Callable[[str], None]
    on_pull: Callable[[], Callable[[PullEvent], None]]
    on_check: Callable[[ProbeCheck], None]
