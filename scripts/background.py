"""Processes that outlive the set-up and are stopped by it alone.

A record names a process by its pid, the machine's boot and its start time, so that another
process which got the same pid later is never taken for ours.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """One process that we started."""

    pid: int
    born: str
    name: str


def start(argv: Sequence[str], *, log: Path, record: Path) -> Background:
    """Start *argv* in a session of its own, its output in *log*, and write *record*."""
    record.parent.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as sink:
        process = subprocess.Popen(  # left running on purpose
            argv,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )
    ours = Background(pid=process.pid, born=_born(process.pid) or "", name=Path(argv[0]).name)
    record.write_text(json.dumps(asdict(ours)) + "\n", encoding="utf-8")
    return ours


def running(record: Path) -> Background | None:
    """Return the process that *record* names while it lives."""
    try:
        ours = Background(**json.loads(record.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    return ours if ours.born and ours.born == _born(ours.pid) else None


def stop(record: Path, *, timeout_seconds: float) -> Background | None:
    """Stop the process that *record* names, forget it, and return it if it was alive."""
    ours = running(record)
    if ours is not None:
        os.kill(ours.pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout_seconds
        while running(record) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if running(record):
            os.kill(ours.pid, signal.SIGKILL)
    record.unlink(missing_ok=True)
    return ours


def _born(pid: int) -> str | None:
    """Return boot and start time of a live process: field 22 of proc_pid_stat(5)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    if state in {"Z", "X"}:
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return f"{boot}:{fields[18]}"
