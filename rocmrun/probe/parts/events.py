"""The event stream: JSON Lines for programs, lines on standard error for people."""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
import time
from typing import Any

from rocmrun.probe.parts.settings import PROTOCOL_VERSION

STATUSES = ("pass", "degraded", "fail", "skipped")


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of *data*, however little the kernel takes at a time."""
    while data:
        data = data[os.write(descriptor, data) :]


def json_line(value: Any) -> bytes:
    """Return *value* as one line of standard JSON: numbers that are not finite become strings."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(finite_only(value), separators=(",", ":"))
    return text.encode() + b"\n"


def finite_only(value: Any) -> Any:
    """Return *value* with "nan" and "inf" written as strings, which JSON has no numbers for."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): finite_only(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_only(item) for item in value]
    return value


def say(text: str) -> None:
    """Write one line for people."""
    with contextlib.suppress(OSError):
        write_all(2, f"probe: {text}\n".encode(errors="replace"))


class Events:
    """The event stream, and the verdict that follows from it."""

    def __init__(self) -> None:
        # Libraries print on file descriptor 1 whatever Python is told, so the events keep a copy of
        # it for themselves and everybody else gets standard error.
        self._descriptor = os.dup(1)
        os.dup2(2, 1)
        self._lock = threading.RLock()  # a signal handler may emit while its own thread does
        self._begin = time.monotonic()
        self._proven = False
        self.runtime = "torch"  # what must compute for a proof
        self.diagnosis = ""  # what several checks together say
        self.ended = False
        self.counts = dict.fromkeys(STATUSES, 0)
        self.told: list[dict[str, Any]] = []

    def emit(self, event: str, **fields: Any) -> None:
        """Write one event."""
        with self._lock:
            write_all(
                self._descriptor, json_line({"v": PROTOCOL_VERSION, "event": event, **fields})
            )

    def check(self, check: dict[str, Any]) -> None:
        """Write one check, count it, and show it to people."""
        with self._lock:
            if self.ended:  # by a signal, while other threads still report
                return
            self.counts[check["status"]] += 1
            self._proven = self._proven or proves(check, self.runtime)
            self.told.append(check)
            self.emit("check", **check)
        where = check["group"] if check["device"] is None else f"device {check['device']}"
        reason = f": {check['reason']}" if check.get("reason") else ""
        say(f"[{where}] {check['name']} {check['status']} {check['seconds']:.2f}s{reason}")

    def doing(self, group: str, name: str, device: Any) -> None:
        """Say what is under way, for those who watch."""
        if not self.ended:
            self.emit("doing", group=group[:100], name=name[:100], device=device)

    def fail(self, group: str, name: str, reason: str, **fields: Any) -> None:
        """Write a failed check that no child could report itself."""
        self.check(made_check(group, name, "fail", reason=reason, **fields))

    def end(self, reason: str = "") -> str:
        """Write the last event and return the verdict. No device is never a pass."""
        with self._lock:
            if self.ended:
                return "fail"
            self.ended = True
            status = "degraded" if self.counts["degraded"] else "pass"
            if reason or self.counts["fail"]:
                status = "fail"
            elif not self._proven:
                status, reason = "fail", "no device was exercised"
            seconds = round(time.monotonic() - self._begin, 3)
            told = {"diagnosis": self.diagnosis} if self.diagnosis and status == "fail" else {}
            self.emit(
                "end", status=status, counts=self.counts, seconds=seconds, reason=reason, **told
            )
        counted = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        say(f"{status} ({counted or 'no check'})" + (f": {reason}" if reason else ""))
        return status


def proves(check: dict[str, Any], runtime: str) -> bool:
    """Whether a check proves that a device computes."""
    if runtime == "torch":
        return bool(check["status"] == "pass" and check["name"].startswith("matmul"))
    # Without hipRTC the check that would compile is degraded, and copies and memset must do.
    kernel = check["status"] == "pass" and check["name"].startswith("kernel_")
    return check["group"] == "hip" and (
        kernel or (check["name"], check["status"]) == ("compile", "degraded")
    )


def made_check(
    group: str,
    name: str,
    status: str,
    *,
    reason: str = "",
    device: Any = None,
    seconds: float = 0.0,
    evidence: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a check as a value."""
    check = {"group": group, "name": name, "device": device, "status": status}
    check.update(seconds=round(seconds, 4), evidence=evidence or {})
    if reason:
        check["reason"] = reason
    return check
