"""Who is told what while a use-case runs: the console answers it, and tests listen."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rocmrun.core.report import ProbeCheck
from rocmrun.core.run import PullEvent

OnPull = Callable[[], AbstractContextManager[Callable[[PullEvent], object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Where words go.

    Attributes:
        say: Messages.
        detail: Messages for those who asked for more.
        warn: Warnings.
        result: A line of result, for stdout.
        on_pull: Opened when a pull begins and closed when it ends; gives what takes its events.
        on_check: Takes each check of a probe as it comes.
    """

    say: Callable[[str], None]
    detail: Callable[[str], None]
    warn: Callable[[str], None]
    result: Callable[[str], None]
    on_pull: OnPull
    on_check: Callable[[ProbeCheck], None]
