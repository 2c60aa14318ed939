"""Run one check function of the probe in this process, on paths that a test has made."""

from collections.abc import Callable
from typing import Any

from rocmrun.probe.parts.checks import Check, Reporter


class Recorder(Reporter):
    """Keeps what a child would send to its controller."""

    def __init__(self) -> None:
        super().__init__(-1)
        self.sent: list[dict[str, Any]] = []

    def send(self, **reply: Any) -> None:
        """Keep one reply."""
        self.sent.append(reply)


def examined(examine: Callable[..., Any], *given: Any, **named: Any) -> Check:
    """Return the check that *examine* was given first, when it is over."""
    with Recorder().check("group", "name") as check:
        examine(check, *given, **named)
    return check
