"""Checks of the profile's own: a command or a Python file, judged by how it ends and what it prints."""

from __future__ import annotations

import json
import math
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.machine import oom_kills, signal_name
from rocmrun.probe.parts.processes import KEPT_LINES, shown_line

OWN_LINE_BYTES = 64 << 10  # a longer line is judged by what stands at its beginning
OWN_OUTPUT_BYTES = 64 << 20
OWN_LINGER_SECONDS = 0.5  # for output of a program that has ended, which a descendant may hold open
OWN_TEXT = 400
LARGEST_METRIC = 1e300  # what is kept as a number


class OwnOutput:
    """What a check prints, taken line by line: bounded, whatever comes."""

    def __init__(self, pattern: str, names: list[str]) -> None:
        try:
            self._pattern = re.compile(pattern) if pattern else None
        except re.error as error:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            msg = f"expect_output is no regular expression for Python {version}: {error}"
            raise CheckFailed(msg) from error
        self._names = names
        self._pending = {"stdout": b"", "stderr": b""}
        self.bytes = 0
        self.matched = self._pattern is None
        self.metrics: dict[str, Any] = {}
        self.tail: deque[str] = deque(maxlen=KEPT_LINES)

    def take(self, stream: str, data: bytes) -> None:
        """Take the next bytes of one stream."""
        self.bytes += len(data)
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._line(stream, self._joined(stream, line))
            self._pending[stream] = b""
        self._pending[stream] = self._joined(stream, rest)

    def end(self) -> None:
        """Take what had no line end."""
        for stream, line in self._pending.items():
            self._line(stream, line)

    def _joined(self, stream: str, data: bytes) -> bytes:
        return (self._pending[stream] + data)[:OWN_LINE_BYTES]

    def _line(self, stream: str, line: bytes) -> None:
        if not line.strip():
            return
        self.tail.append(shown_line(line))
        if not self.matched and self._pattern is not None:
            self.matched = self._pattern.search(line.decode(errors="replace")) is not None
        if stream != "stdout" or not self._names or not line.lstrip().startswith(b"{"):
            return
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            return
        self.metrics.update({name: values[name] for name in self._names if name in values})


def stage_own(job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]) -> None:
    """Run one check of the profile's own."""
    own = job["own"]
    with reporter.check("own", own["name"]) as check:
        output = OwnOutput(own["expect_output"], sorted(own["metrics"]))
        try:
            if own["source"]:
                with tempfile.TemporaryDirectory(prefix="rocmrun-own-") as folder:
                    path = Path(folder) / "own_check.py"
                    path.write_text(own["source"], encoding="utf-8")
                    python = [sys.executable, *(["-s"] if sys.flags.no_user_site else [])]
                    code = run_own(check, [*python, str(path)], job["seconds"], output)
            else:
                code = run_own(check, own["command"], job["seconds"], output)
        finally:
            output.end()
            check.evidence["last_lines"] = list(output.tail)
            if output.metrics:
                check.evidence["metrics"] = {
                    name: shown_metric(value) for name, value in output.metrics.items()
                }
        judge_own(check, own, output, code)


def run_own(check: Check, command: list[str], seconds: float, output: OwnOutput) -> int:
    """Run *command* and return its exit code; negative is the signal that ended it.

    It stays in this process's group, which the controller ends when the check is over: whatever it
    left behind goes with it.
    """
    check.evidence["command"] = [word[:OWN_TEXT] for word in command[:20]]
    before = oom_kills()
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        msg = f"cannot start {command[0][:OWN_TEXT]}: {error.strerror}"
        raise CheckFailed(msg) from error
    with process:
        try:
            in_time = heard_out(process, time.monotonic() + seconds, output)
        finally:
            process.kill()
    check.evidence["exit_code"] = code = process.returncode
    if output.bytes > OWN_OUTPUT_BYTES:
        msg = f"it printed more than {OWN_OUTPUT_BYTES >> 20} MiB"
        raise CheckFailed(msg)
    if not in_time:
        msg = f"not finished after {seconds:g} s"
        raise CheckFailed(msg)
    if code == -signal.SIGKILL and oom_kills() > before:
        msg = "it was killed: the container's memory limit was reached"
        raise CheckFailed(msg)
    return code


def heard_out(process: subprocess.Popen[bytes], deadline: float, output: OwnOutput) -> bool:
    """Listen until the program ends; return whether it did so before *deadline*."""
    assert process.stdout is not None
    assert process.stderr is not None
    ended = False
    with selectors.DefaultSelector() as selector:
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            selector.register(stream, selectors.EVENT_READ, name)
        while output.bytes <= OWN_OUTPUT_BYTES:
            left = deadline - time.monotonic()
            ready = selector.select(max(0.0, min(left, 0.1))) if selector.get_map() else []
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                output.take(key.data, data)
                if not data:
                    selector.unregister(key.fileobj)
            if not ended and process.poll() is not None:
                ended, deadline = True, time.monotonic() + OWN_LINGER_SECONDS
            if ended and (not ready or not selector.get_map()):
                return True
            if left <= 0:
                return ended
            if not selector.get_map() and not ended:
                time.sleep(min(0.02, max(0.0, left)))
    return ended


def judge_own(check: Check, own: dict[str, Any], output: OwnOutput, code: int) -> None:
    """Compare how it ended and what it printed with what the profile expects."""
    if code < 0:
        msg = f"it was killed by {signal_name(-code)}"
        raise CheckFailed(msg)
    if code != own["expect_exit"]:
        last = f": {output.tail[-1]}" if output.tail else ""
        msg = f"it ended with exit code {code}, not {own['expect_exit']}{last}"
        raise CheckFailed(msg)
    if not output.matched:
        msg = f"no line of its output matches {own['expect_output']}"
        raise CheckFailed(msg)
    for name, bounds in sorted(own["metrics"].items()):
        value = output.metrics.get(name)
        if name not in output.metrics:
            msg = f"it printed no metric {name}: a JSON object in a line of its standard output"
            raise CheckFailed(msg)
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not math.isfinite(value)
        ):
            msg = f"its metric {name} is no number: {shown_metric(value)}"
            raise CheckFailed(msg)
        for word, bound in sorted(bounds.items()):
            check.threshold = float(bound)
            check.threshold_source = f"the profile: metrics.{name}.{word} of check {own['name']}"
            if (value < bound) if word == "min" else (value > bound):
                relation = "less than" if word == "min" else "more than"
                msg = f"its metric {name} is {value:g}, {relation} {bound:g}"
                raise CheckFailed(msg)


def shown_metric(value: Any) -> Any:
    """Return a metric as it is kept for evidence."""
    if isinstance(value, (int, float)) and abs(value) < LARGEST_METRIC:
        return value
    return str(value)[:100] if isinstance(value, (str, int, float)) else type(value).__name__
