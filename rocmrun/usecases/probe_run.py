"""One run of the probe in its container, which may print what it likes for as long as it likes: bounded in both."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rocmrun.core.report.model import ProbeEvent, ProbeReport
from rocmrun.core.report.parser import KEPT_TAIL_LINES, MAX_TOTAL_BYTES, ReportParser
from rocmrun.core.text import MIB
from rocmrun.core.voice import Voice
from rocmrun.errors import RocmrunError
from rocmrun.usecases.engine_protocol import Attachment, Engine

STDOUT = 1
MOST_STDERR_LINE = 4000
MOST_RELAYED_LINES = 5000
KILL_SECONDS = 30
WARNING = "probe: warning: "  # how the probe's own begin, as that two boards may hang the host
MOST_WARNINGS = 5


@dataclass(slots=True)
class ProbeRun:
    """One attached run of the probe.

    What can no longer become a report is ended at once: nobody waits for the rest of a flood.
    """

    engine: Engine
    container_id: str
    voice: Voice
    parser: ReportParser = field(default_factory=ReportParser)
    _tail: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_TAIL_LINES))
    _partial: bytes = b""
    _chatter: int = 0
    _relayed: int = 0
    _warned: int = 0
    _timed_out: bool = False
    _given_up: bool = False

    def run(self, data: bytes, timeout_seconds: int) -> ProbeReport:
        """Start the container, feed it *data* and return what it reports."""
        attachment = self.engine.attach(self.container_id, stdin=True, tty=False)
        watchdog = threading.Timer(timeout_seconds, self._time_out)
        watchdog.daemon = True
        try:
            self.engine.start(self.container_id)
            watchdog.start()
            self._send(attachment, data)
            with self.voice.on_probe() as show:
                self._listen(attachment, show)
            code = self.engine.wait(self.container_id)
        finally:
            watchdog.cancel()
            attachment.close()
        report = self.parser.finish(exit_code=code, stderr_tail=tuple(self._tail))
        return self._judged(report, timeout_seconds)

    def _listen(self, attachment: Attachment, show: Callable[[ProbeEvent], object]) -> None:
        killer = None
        for stream, chunk in attachment.frames():
            if self._given_up:
                continue  # what was on its way when it was killed
            if stream == STDOUT:
                for event in self.parser.feed(chunk):
                    show(event)
            else:
                self._hear(chunk)
            if self.parser.broken:
                self._given_up = True
                # Docker 20.10 sees no end of a container while an attached client reads nothing.
                killer = threading.Thread(target=self._kill, daemon=True, name="rocmrun-kill")
                killer.start()
        if killer is not None:
            killer.join(KILL_SECONDS)
        if self._partial:
            # What a dying process says last has often no line end.
            self._tell(self._partial)

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
        self._kill()

    def _kill(self) -> None:
        # It may have ended by itself; one that cannot be killed is ended by its removal.
        with contextlib.suppress(RocmrunError):
            self.engine.kill(self.container_id, "SIGKILL")

    def _hear(self, chunk: bytes) -> None:
        self._chatter += len(chunk)
        if self._chatter > MAX_TOTAL_BYTES:
            self.parser.give_up(f"more than {MAX_TOTAL_BYTES // MIB} MiB on standard error")
        *lines, rest = (self._partial + chunk).split(b"\n")
        self._partial = rest[-MOST_STDERR_LINE:]
        for line in lines:
            self._tell(line)

    def _tell(self, line: bytes) -> None:
        text = line[:MOST_STDERR_LINE].decode(errors="replace").rstrip("\r")
        self._tail.append(text)
        self._relayed += 1
        if text.startswith(WARNING) and self._warned < MOST_WARNINGS:
            self._warned += 1
            self.voice.warn(f"the probe: {text.removeprefix(WARNING)}")
            return
        if self._relayed <= MOST_RELAYED_LINES:
            self.voice.detail(text)
        elif self._relayed == MOST_RELAYED_LINES + 1:
            self.voice.detail(f"the probe has said {MOST_RELAYED_LINES} lines: no more are shown")

    def _judged(self, report: ProbeReport, timeout_seconds: int) -> ProbeReport:
        if self._timed_out:
            reason = f"the probe did not end within {timeout_seconds} s and was killed"
            return report.model_copy(update={"status": "fail", "reason": reason})
        killed = report.status == "broken" and not self._given_up
        if killed and self.engine.state(self.container_id).oom_killed:
            reason = "the kernel killed the probe: the container's memory limit is too low"
            return report.model_copy(update={"reason": reason})
        return report
