"""ROCm's own tools as child processes: a time limit, bounded output, and no word of theirs decides."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from typing import Sequence

from rocmrun.probe.parts.machine import signal_name

TOOL_SECONDS = 60.0
END_SECONDS = 2.0  # for a tool that was killed, or that has closed its output
MOST_OUTPUT = 8 << 20  # bytes; 64 partitions make some megabytes of JSON
MOST_REASON = 400
READ_SIZE = 65536


class ToolRun:
    """What a tool printed, and how it ended: "" is by itself."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self.ended = ""
        self.code: int | None = None
        self.seconds = 0.0
        self._output: dict[str, list[bytes]] = {"out": [], "err": []}

    def add(self, name: str, data: bytes) -> None:
        """Keep a piece of output; too much of it ends the tool."""
        self._output[name].append(data)
        if sum(len(piece) for pieces in self._output.values() for piece in pieces) > MOST_OUTPUT:
            self.ended = f"it printed more than {MOST_OUTPUT >> 20} MiB"

    @property
    def out(self) -> str:
        """Standard output."""
        return b"".join(self._output["out"]).decode(errors="replace")

    @property
    def err(self) -> str:
        """Standard error."""
        return b"".join(self._output["err"]).decode(errors="replace")

    @property
    def reason(self) -> str:
        """Return why it failed, in its own last words where it has any."""
        said = self.err if len(self.out) > MOST_REASON else f"{self.out} {self.err}"
        words = " ".join(plain(said).split())[-MOST_REASON:]
        how = self.ended
        if not how and self.code:
            how = signal_name(-self.code) if self.code < 0 else f"exit code {self.code}"
        return ": ".join(part for part in (how, words) if part) or "it printed nothing"

    def evidence(self) -> dict[str, object]:
        """Return command, end and time."""
        seconds = round(self.seconds, 3)
        return {"command": " ".join(self.command), "exit_code": self.code, "seconds": seconds}


def find_tool(name: str) -> str | None:
    """Return the path of a ROCm tool: on PATH, or where ROCm installs it."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/opt/rocm/bin")


class ToolBudget:
    """The time that all tools have together, so that one that hangs leaves the others theirs."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def seconds(self) -> float:
        """What the next tool may take."""
        return max(1.0, min(TOOL_SECONDS, self._end - time.monotonic()))


def run_tool(command: Sequence[str], seconds: float = TOOL_SECONDS) -> ToolRun:
    """Run a tool to its end, its time limit or its output limit, whatever comes first."""
    run = ToolRun([os.path.basename(command[0]), *command[1:]])  # noqa: PTH119
    begin = time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb", "COLUMNS": "200"},
            start_new_session=True,
        )
    except OSError as error:
        run.ended = f"it cannot be started: {error.strerror}"
        return run
    read_output(run, process, seconds)
    # Never waited for without a limit: a tool can be stuck in the driver, where no signal ends it.
    for _ in range(2):
        if run.ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
            break
        run.ended = run.ended or "it closed its output and did not end"
    run.code = process.returncode
    run.seconds = time.monotonic() - begin
    return run


def read_output(run: ToolRun, process: subprocess.Popen[bytes], seconds: float) -> None:
    """Keep what a tool prints until it closes its output or passes a limit."""
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for name, stream in (("out", process.stdout), ("err", process.stderr)):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, name)
        while selector.get_map() and not run.ended:
            left = end - time.monotonic()
            if left <= 0:
                run.ended = f"it did not end within {seconds:.3g} s"
            for key, _ in selector.select(max(0.0, min(left, 0.5))):
                data = os.read(key.fd, READ_SIZE)
                if data:
                    run.add(key.data, data)
                else:
                    selector.unregister(key.fileobj)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def plain(text: str) -> str:
    """Return text without colour codes, and without other control characters but line ends."""
    kept, rest = [], text
    while rest:
        before, escape, rest = rest.partition("\x1b[")
        kept.append(before)
        if escape:
            rest = rest.lstrip("0123456789;")[1:]
    return "".join(c for c in "".join(kept) if c.isprintable() or c in "\n\t")
