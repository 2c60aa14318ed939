"""Read the probe's JSON Lines. Container output is untrusted: all of it is bounded and cleaned.

Nothing raises: whatever arrives, the result is a report that says what it was.
"""

import contextlib
import json
import math
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from rocmrun.core.probing.protocol import PROTOCOL_VERSION
from rocmrun.core.report.model import Doing, ProbeCheck, ProbeEvent, ProbeReport, ReportStatus
from rocmrun.core.text import KIB, MIB, printable

MAX_LINE_BYTES = MIB
MAX_TOTAL_BYTES = 64 * MIB
MAX_LINES = 200_000
MAX_CHECKS = 20_000
KEPT_NOISE_LINES = 10
KEPT_TAIL_LINES = 40
MAX_STAGES = 20
MAX_DEPTH = 12
MAX_TEXT = 4000
MAX_NAME = 200

_SLICE_BYTES = 64 * KIB
_SEVERITY = ("pass", "degraded", "fail")


class ReportParser:
    """Takes the probe's standard output as it comes, and makes a report of it at the end."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._total = 0
        self._lines = 0
        self._start: dict[str, Any] = {}
        self._end: dict[str, Any] | None = None
        self._checks: list[ProbeCheck] = []
        self._live: list[ProbeEvent] = []
        self._noise: list[str] = []
        self._noise_lines = 0
        self._broken = ""

    @property
    def broken(self) -> str:
        """Why this will be no report, whatever else comes; "" while it may become one."""
        return self._broken

    def give_up(self, reason: str) -> None:
        """Make it no report, for what the stream itself does not show."""
        self._break(reason)

    def feed(self, data: bytes) -> tuple[ProbeEvent, ...]:
        """Take the next bytes; return the checks that they complete and what is under way, for live progress.

        Past a limit everything is dropped, so that an endless stream costs no memory.
        """
        self._live.clear()
        for offset in range(0, len(data), _SLICE_BYTES):
            self._feed(data[offset : offset + _SLICE_BYTES])
        return tuple(self._live)

    def finish(
        self, *, exit_code: int | None = None, stderr_tail: Sequence[str] = ()
    ) -> ProbeReport:
        """Return the report. *exit_code* and *stderr_tail* are the probe process's, where known."""
        self._take(bytes(self._line))
        self._line.clear()
        status, reason = self._verdict(exit_code)
        start = self._start
        return ProbeReport(
            status=status,
            reason=reason,
            probe_version=_text(start.get("probe_version")),
            level=_text(start.get("level")),
            accelerator=_text(start.get("accelerator")),
            runtime=self._runtime,
            stages=tuple(_text(stage) for stage in _list(start.get("stages"))[:MAX_STAGES]),
            python=_text(start.get("python")),
            seconds=_seconds((self._end or {}).get("seconds")),
            checks=tuple(self._checks),
            noise_lines=self._noise_lines,
            noise=tuple(self._noise),
            exit_code=exit_code,
            stderr_tail=tuple(_text(line, 400) for line in stderr_tail[-KEPT_TAIL_LINES:]),
        )

    def _feed(self, data: bytes) -> None:
        self._total += len(data)
        self._lines += data.count(b"\n")
        if self._total > MAX_TOTAL_BYTES:
            self._break(f"more than {MAX_TOTAL_BYTES // MIB} MiB")
        elif self._lines > MAX_LINES:
            self._break(f"more than {MAX_LINES} lines")
        if self._total > MAX_TOTAL_BYTES or self._lines > MAX_LINES:
            self._line.clear()
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._line += line
            self._take(bytes(self._line))
            self._line.clear()
        self._line += rest
        if len(self._line) > MAX_LINE_BYTES:
            self._break(f"a line longer than {MAX_LINE_BYTES // MIB} MiB")
            self._line.clear()

    def _break(self, reason: str) -> None:
        """Remember the first thing that makes the report unbelievable."""
        self._broken = self._broken or reason

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        event = _decoded(line)
        if event is None:
            self._noise_lines += 1
            if len(self._noise) < KEPT_NOISE_LINES:
                self._noise.append(_text(line.decode(errors="replace"), 400))
        elif event["v"] != PROTOCOL_VERSION:
            version = _text(event["v"], 40)
            self._break(f"protocol version {version}; this rocmrun reads {PROTOCOL_VERSION}")
        else:
            self._event(event)

    def _event(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if self._end is not None or (kind == "start" and self._start):
            self._break("more than one report in one stream")
        elif kind == "start":
            self._start = event
        elif not self._start:
            self._break(f"a {_text(kind, 40)} event before the start")
        elif kind == "end":
            self._end = event
        elif kind == "check":
            self._check(event)
        elif kind == "doing":
            self._doing(event)

    def _check(self, event: dict[str, Any]) -> None:
        if len(self._checks) >= MAX_CHECKS:
            self._break(f"more than {MAX_CHECKS} checks")
            return
        try:
            check = ProbeCheck.model_validate(_named(_cleaned(event)))
        except (ValidationError, TypeError):
            self._break("a check without the fields that one has")
            return
        self._checks.append(check)
        self._live.append(check)

    def _doing(self, event: dict[str, Any]) -> None:
        """Pass on what is under way; words that make no sense are no reason to doubt the checks."""
        with contextlib.suppress(ValidationError, TypeError):
            self._live.append(Doing.model_validate(_named(_cleaned(event))))

    def _verdict(self, exit_code: int | None) -> tuple[ReportStatus, str]:
        """Return the worst of what the checks, the end event and the exit code say."""
        ended = "" if exit_code is None else f" (exit code {exit_code})"
        if self._broken:
            return "broken", f"the probe's output is not a report: {self._broken}"
        if not self._start:
            return "broken", f"the probe reported nothing{ended}"
        if self._end is None:
            return "broken", f"the report stops before its end{ended}"
        said = self._end.get("status")
        if said not in _SEVERITY:
            return "broken", "the report's end has no verdict"
        seen = [check.status for check in self._checks if check.status != "skipped"]
        status = max([said, *seen], key=_SEVERITY.index)
        if status != "fail" and exit_code not in {None, 0}:
            return "broken", f"the probe reported {said} and then ended badly{ended}"
        if status != "fail" and not any(
            check.group == ("hip" if self._runtime == "hip" else "device")
            and check.device is not None
            and check.status == "pass"
            for check in self._checks
        ):
            return "fail", "no device was exercised"
        return status, self._reason(status)

    @property
    def _runtime(self) -> str:
        return _text(self._start.get("runtime")) or "torch"

    def _reason(self, status: str) -> str:
        """Return the reasons of the checks that decided, the first in full and the rest counted."""
        if status == "pass":
            return ""
        deciding = [check for check in self._checks if check.status == status]
        if not deciding:
            return _text((self._end or {}).get("reason"))
        first = f"{deciding[0].label}: {deciding[0].reason}"
        others = len(deciding) - 1
        counted = first if not others else f"{first} (and {others} more)"
        diagnosis = _text((self._end or {}).get("diagnosis"))  # what the checks say together
        return f"{counted}; {diagnosis}" if diagnosis else counted


def _decoded(line: bytes) -> dict[str, Any] | None:
    """Return the event in *line*, None when it is none."""
    try:
        value = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "v" in value and "event" in value else None


def _named(event: dict[str, Any]) -> dict[str, Any]:
    """Return *event* with names that fit a table."""
    names = {
        key: _text(event[key], MAX_NAME)
        for key in ("group", "name")
        if isinstance(event.get(key), str)
    }
    return {**event, **names}


def _cleaned(value: Any, depth: int = 0) -> Any:
    """Return *value* without control characters, endless numbers or deep nesting."""
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {_text(key, 200): _cleaned(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    return value


def _text(value: Any, limit: int = MAX_TEXT) -> str:
    """Return a string that a terminal, a log and a JSON file can hold; anything else is empty."""
    if isinstance(value, int):
        value = str(value)
    if not isinstance(value, str):
        return ""
    whole = value.encode(errors="replace").decode()  # a lone surrogate cannot be written anywhere
    return printable(whole.replace("\n", " ").replace("\t", " "), limit)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _seconds(value: Any) -> float:
    try:
        seconds = float(value) if isinstance(value, (int, float)) else 0.0
    except OverflowError:  # an integer of hundreds of digits
        return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0
