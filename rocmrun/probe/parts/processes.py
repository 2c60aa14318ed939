"""Child processes, seen from the controller."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from typing import Any, Callable

from rocmrun.probe.parts.events import json_line, write_all
from rocmrun.probe.parts.machine import is_visibility, oom_kills, signal_name
from rocmrun.probe.parts.program import Program, spawn

GRACE_SECONDS = 3  # between a child's own watchdog and the kill, so that its traceback arrives
KEPT_LINES = 40
KEPT_LINE_LENGTH = 400


class Outcome:
    """How one job of a child ended: "done", or why it never was."""

    def __init__(self) -> None:
        self.ended = ""  # "done", "timeout", "stopped", "died"
        self.reason = ""
        self.doing: tuple[str, str] | None = None  # group and name of the check that was under way
        self.checks: list[dict[str, Any]] = []
        self.seconds = 0.0
        self.evidence: dict[str, Any] = {}

    @property
    def passed(self) -> bool:
        """Whether the job was finished and nothing in it failed."""
        return self.ended == "done" and all(check["status"] != "fail" for check in self.checks)


class Child:
    """A process of this same program, with jobs going in and results coming out by private pipes.

    It leads its own process group: whatever it started dies with it.
    """

    def __init__(self, label: str, program: Program, environment: dict[str, str]) -> None:
        self.label = label
        self._tail: deque[str] = deque(maxlen=KEPT_LINES)
        self._pending = {"results": b"", "output": b""}
        self._job: dict[str, Any] = {}
        self.on_doing: Callable[[str, str], None] = lambda _group, _name: None
        self.on_line: Callable[[str], None] = lambda _line: None
        self._begin = self._deadline = time.monotonic()
        self._oom_kills = oom_kills()
        self._process, self._jobs, results = spawn(program, environment)
        assert self._process.stdout is not None
        self._selector = selectors.DefaultSelector()
        for name, descriptor in (("results", results), ("output", self._process.stdout.fileno())):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, name)
        self._results = results

    def begin(self, job: dict[str, Any], timeout: float) -> None:
        """Hand over a job and return at once; `wait` collects what comes of it."""
        self._job = {**job, "timeout": timeout}
        self._begin = time.monotonic()
        self._deadline = self._begin + timeout + GRACE_SECONDS
        with contextlib.suppress(BrokenPipeError):  # it is dead: `wait` finds out of what
            write_all(self._jobs, json_line(self._job))

    def wait(
        self, report: Callable[[dict[str, Any]], None], stop: threading.Event | None = None
    ) -> Outcome:
        """Collect the job's checks until it is done, dead or out of time.

        *stop* is set when a sibling failed and this one would only wait for it.
        """
        outcome = Outcome()
        while not outcome.ended:
            if stop is not None and stop.is_set():
                self._deadline = min(self._deadline, time.monotonic() + GRACE_SECONDS)
            left = self._deadline - time.monotonic()
            ready = self._selector.select(max(0.0, min(left, 0.5)))
            for key, _ in ready:
                self._read(key.data, key.fd, outcome, report)
            if ready:
                continue
            if self._process.poll() is not None:  # a descendant may still hold its pipes open
                self._bury(outcome)
            elif left <= 0:
                self._give_up(outcome, stopped=stop is not None and stop.is_set())
        outcome.seconds = time.monotonic() - self._begin
        if outcome.ended != "done":
            outcome.evidence["last_lines"] = list(self._tail)
        return outcome

    def run(
        self,
        job: dict[str, Any],
        timeout: float,
        report: Callable[[dict[str, Any]], None],
        stop: threading.Event | None = None,
    ) -> Outcome:
        """Hand over a job and wait for it."""
        self.begin(job, timeout)
        return self.wait(report, stop)

    def kill(self) -> None:
        """End the child and everything that it started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def dismiss(self) -> None:
        """Tell the child that there is no more to do: it ends by itself."""
        if self._jobs >= 0:
            os.close(self._jobs)
            self._jobs = -1

    def close(self) -> None:
        """Let the child end by itself, and make it when it does not."""
        self.dismiss()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process stuck in the kernel stays
            self._process.wait(GRACE_SECONDS)
        self._selector.close()
        os.close(self._results)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self, name: str, descriptor: int, outcome: Outcome, report: Any) -> None:
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(descriptor)
            if name == "results":
                self._bury(outcome)
            return
        *lines, rest = (self._pending[name] + data).split(b"\n")
        if name == "output":
            self._pending[name] = rest[-KEPT_LINE_LENGTH:]
            self._hear(lines)
            return
        self._pending[name] = rest
        for line in lines:
            with contextlib.suppress(
                ValueError
            ):  # a library that writes to every descriptor it finds
                self._take(json.loads(line), outcome, report)

    def _take(self, reply: dict[str, Any], outcome: Outcome, report: Any) -> None:
        if "doing" in reply:
            outcome.doing = (reply["group"], reply["doing"])
            self.on_doing(*outcome.doing)
        elif "check" in reply:
            outcome.doing = None
            outcome.checks.append(reply["check"])
            report(reply["check"])
        elif "done" in reply:
            outcome.ended = "done"

    def _give_up(self, outcome: Outcome, *, stopped: bool) -> None:
        self.kill()
        self._drain()
        if stopped:
            outcome.ended, outcome.reason = "stopped", "waited for another rank that had failed"
        else:
            outcome.ended = "timeout"
            outcome.reason = f"not finished after {self._job['timeout']:g} s"

    def _bury(self, outcome: Outcome) -> None:
        """Say how a child ended that closed its result pipe before the job was done."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        self.kill()
        self._drain()
        code = self._process.poll()
        outcome.ended = "died"
        if time.monotonic() - self._begin >= self._job["timeout"]:
            outcome.ended = "timeout"
            outcome.reason = f"not finished after {self._job['timeout']:g} s"
        elif code is None:
            outcome.reason = "the process closed its results and cannot be ended"
        elif code < 0:
            outcome.reason = f"the process was killed by {signal_name(-code)}"
            outcome.evidence["signal"] = signal_name(-code)
            if -code == signal.SIGKILL and oom_kills() > self._oom_kills:
                outcome.reason += ": the container's memory limit was reached"
        else:
            outcome.reason = f"the process ended with exit code {code} and no result"
            if code and self._tail:
                outcome.reason += f": {self._tail[-1]}"
            outcome.evidence["exit_code"] = code

    def _drain(self) -> None:
        """Take the last output of a dead child; a descendant that still holds the pipe is not waited for."""
        assert self._process.stdout is not None
        end = time.monotonic() + 0.5
        descriptor = self._process.stdout.fileno()
        pending = self._pending["output"]
        while time.monotonic() < end:
            try:
                data = os.read(descriptor, 65536)
            except BlockingIOError:
                time.sleep(0.02)
                continue
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            pending = pending[-KEPT_LINE_LENGTH:]
            self._hear(lines)
        self._hear([pending])

    def _hear(self, lines: list[bytes]) -> None:
        for line in lines:
            if line.strip():
                self._tail.append(shown_line(line))
                self.on_line(self._tail[-1])


def shown_line(line: bytes) -> str:
    """Return a line of a child's output as it is kept for evidence."""
    return line.rstrip()[:KEPT_LINE_LENGTH].decode(errors="replace")


def device_environment(accelerator: str, index: int, concurrent: int) -> dict[str, str]:
    """Return the environment of a child that may see device *index* only.

    An index counts within what the environment already lets this process see: it names the
    index-th entry of a list that somebody set, and counts within ROCR_VISIBLE_DEVICES, which
    filters below HIP and belongs to the scheduler that set it.
    """
    variable = "HIP_VISIBLE_DEVICES" if accelerator == "rocm" else "CUDA_VISIBLE_DEVICES"
    environment = {key: value for key, value in os.environ.items() if not is_visibility(key)}
    if accelerator == "rocm" and "ROCR_VISIBLE_DEVICES" in os.environ:
        environment["ROCR_VISIBLE_DEVICES"] = os.environ["ROCR_VISIBLE_DEVICES"]
    already = os.environ.get(variable) or os.environ.get("CUDA_VISIBLE_DEVICES") or ""
    tokens = [token.strip() for token in already.split(",") if token.strip()]
    environment[variable] = tokens[index] if index < len(tokens) else str(index)
    threads = max(1, len(os.sched_getaffinity(0)) // concurrent)
    for key, value in (
        ("OMP_NUM_THREADS", str(threads)),  # siblings compute their references at the same time
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),  # what cuBLAS needs to repeat itself bit for bit
        ("NCCL_SOCKET_IFNAME", "lo"),
        ("GLOO_SOCKET_IFNAME", "lo"),
        ("NCCL_DEBUG", "WARN"),
    ):
        environment.setdefault(key, value)
    return environment
