"""One check under way, and how a child reports it."""

from __future__ import annotations

import time
import traceback
from typing import Any

from rocmrun.probe.parts.events import json_line, made_check, write_all
from rocmrun.probe.parts.processes import KEPT_LINE_LENGTH

LONGEST_TEXT = 1000


class CheckFailed(Exception):
    """What a check found wrong, in words for people."""


class Reporter:
    """The child's end of the result pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, **reply: Any) -> None:
        """Send one reply to the controller."""
        write_all(self._descriptor, json_line(reply))

    def check(self, group: str, name: str, *, quiet: bool = False) -> Check:
        """Return a check to run as a `with` block; a *quiet* one is told only when it does not pass."""
        return Check(self, group, name, quiet=quiet)


class Check:
    """One check under way: what is raised inside its block makes it fail, and the next one runs."""

    def __init__(self, reporter: Reporter, group: str, name: str, *, quiet: bool) -> None:
        self._reporter = reporter
        self._quiet = quiet
        self._group = group
        self.name = name
        self.status = "pass"
        self.reason = ""
        self.evidence: dict[str, Any] = {}
        self.threshold: float | None = None
        self.threshold_source = ""
        self._begin = 0.0

    def __enter__(self) -> Check:
        self._reporter.send(doing=self.name, group=self._group)
        self._begin = time.monotonic()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False
        if error is not None:
            self.status, self.reason = "fail", described(error)
            if not isinstance(error, CheckFailed):
                lines = "".join(traceback.format_exception(kind, error, trace)).splitlines()
                self.evidence["traceback"] = [line[:KEPT_LINE_LENGTH] for line in lines[-12:]]
        seconds = time.monotonic() - self._begin
        check = made_check(
            self._group,
            self.name,
            self.status,
            reason=self.reason,
            seconds=seconds,
            evidence=self.evidence,
        )
        if self.threshold is not None:
            check.update(threshold=self.threshold, threshold_source=self.threshold_source)
        if not self._quiet or self.status != "pass":
            self._reporter.send(check=check)
        return True

    def degrade(self, reason: str) -> None:
        """It works, and something about it is not as it should be."""
        self.status, self.reason = "degraded", reason

    def skip(self, reason: str) -> None:
        """It was not tried."""
        self.status, self.reason = "skipped", reason

    def require(self, what: str, seen: Any, expected: Any) -> None:
        """Fail unless *seen* is *expected*; where nothing is expected, anything is right."""
        if expected is not None and seen != expected:
            msg = f"{what} is {seen}, not {expected} as planned"
            raise CheckFailed(msg)


def described(error: BaseException) -> str:
    """Return an error in one bounded line, with what it was raised from: that is what can be mended."""
    text = " ".join(str(error).split())[:LONGEST_TEXT]
    if isinstance(error, CheckFailed):
        return text
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if error.__cause__ is not None:
        told += f" (because of {described(error.__cause__)})"
    return told[: 2 * LONGEST_TEXT]
