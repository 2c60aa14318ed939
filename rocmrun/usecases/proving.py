"""Prove the GPUs in a container with exactly a plan's rights: create, inspect, feed the probe, read its report."""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rocmrun.core.create_request import create_request
from rocmrun.core.plan import Plan
from rocmrun.core.probe_protocol import bootstrap_command, probe_input
from rocmrun.core.report import ProbeReport
from rocmrun.core.report_claims import believed
from rocmrun.core.report_parser import KEPT_TAIL_LINES, ReportParser
from rocmrun.core.voice import Voice
from rocmrun.errors import CommandNotExecutable, CommandNotFound, ProbeFailed, UsageError
from rocmrun.system.probe_source import read_probe_source
from rocmrun.usecases.containers import check_command, check_groups, created
from rocmrun.usecases.engine_protocol import Attachment, Engine

STDOUT = 1
MOST_STDERR_LINE = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the probe said, and the engine's record of the container that it ran in."""

    report: ProbeReport
    record: Mapping[str, Any]


def prove(
    engine: Engine,
    plan: Plan,
    *,
    level: str,
    name: str,
    labels: Mapping[str, str],
    voice: Voice,
) -> Proof:
    """Run the probe at *level* in a container of its own and return what it found.

    Raises:
        ProbeFailed: the image has no interpreter to run the probe with.
        UsageError: the profile asks for a probe that this version does not have.
    """
    if plan.probe.image or plan.probe.runtime != "torch":
        msg = f'profile {plan.profile}: [probe] image and runtime = "hip" are not available in this version'
        raise UsageError(msg, hint="start without a proof: --no-probe")
    command = bootstrap_command(plan.probe.python)
    request = create_request(plan, role="probe", command=command, labels=labels)
    with created(engine, plan, request, name=name, on_warning=voice.warn) as container:
        check_groups(engine, container, plan)
        try:
            check_command(engine, container, plan)
        except (CommandNotFound, CommandNotExecutable) as error:
            msg = f"the probe needs Python, and {error.message}"
            raise ProbeFailed(
                msg,
                hint="name the interpreter in [probe] python, or start without a proof: --no-probe",
            ) from error
        run = _Run(engine=engine, container_id=container.container_id, voice=voice)
        data = probe_input(plan, read_probe_source(), level=level)
        report = believed(run.run(data, plan.probe.timeout_seconds), plan, level)
        return Proof(report=report, record=container.record)


@dataclass(slots=True)
class _Run:
    """One attached run of the probe, bounded in time and in output."""

    engine: Engine
    container_id: str
    voice: Voice
    parser: ReportParser = field(default_factory=ReportParser)
    _tail: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_TAIL_LINES))
    _partial: bytes = b""
    _timed_out: bool = False

    def run(self, data: bytes, timeout_seconds: int) -> ProbeReport:
        attachment = self.engine.attach(self.container_id, stdin=True, tty=False)
        watchdog = threading.Timer(timeout_seconds, self._time_out)
        watchdog.daemon = True
        try:
            self.engine.start(self.container_id)
            watchdog.start()
            self._send(attachment, data)
            for stream, chunk in attachment.frames():
                if stream == STDOUT:
                    for check in self.parser.feed(chunk):
                        self.voice.on_check(check)
                else:
                    self._hear(chunk)
            if self._partial:
                # What a dying process says last has often no line end.
                self._tell(self._partial)
            code = self.engine.wait(self.container_id)
        finally:
            watchdog.cancel()
            attachment.close()
        report = self.parser.finish(exit_code=code, stderr_tail=tuple(self._tail))
        return self._judged(report, timeout_seconds)

    @staticmethod
    def _send(attachment: Attachment, data: bytes) -> None:
        """Feed the probe; one that dies before it has read everything is the report's business."""
        try:
            attachment.send(data)
        except OSError:
            return
        attachment.end_input()

    def _time_out(self) -> None:
        self._timed_out = True
        self.engine.kill(self.container_id, "SIGKILL")

    def _hear(self, chunk: bytes) -> None:
        *lines, rest = (self._partial + chunk).split(b"\n")
        self._partial = rest[-MOST_STDERR_LINE:]
        for line in lines:
            self._tell(line)

    def _tell(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        self._tail.append(text)
        self.voice.detail(text)

    def _judged(self, report: ProbeReport, timeout_seconds: int) -> ProbeReport:
        if self._timed_out:
            reason = f"the probe did not end within {timeout_seconds} s and was killed"
            return report.model_copy(update={"status": "fail", "reason": reason})
        if report.status == "broken" and self.engine.state(self.container_id).oom_killed:
            reason = "the kernel killed the probe: the container's memory limit is too low"
            return report.model_copy(update={"reason": reason})
        return report
