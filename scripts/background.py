"""Processes that outlive the set-up and are stopped by it alone.

A record names a process by its pid, the machine's boot and its start time, so that another
process which got the same pid later is never taken for ours.
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.commands import SetupError, find

POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """One process that we started."""

    pid: int
    born: str
    name: str


def start(argv: Sequence[str], *, log: Path, record: Path) -> Background:
    """Start *argv* in a session of its own, its output in *log*, and write *record*.

    Raises:
        SetupError: there is no such program.
    """
    record.parent.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    program = find(argv[0])
    if program is None:
        msg = f"{argv[0]} is not installed"
        raise SetupError(msg)
    # Not subprocess.Popen, which warns about a child that is left running on purpose.
    pid = os.posix_spawn(
        program,
        list(argv),
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGPIPE],  # Python ignores it, and that would be inherited
    )
    ours = Background(pid=pid, born=_born(pid) or "", name=Path(program).name)
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


def boot_id() -> str:
    """Return what tells this start of the machine from every other."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


def _born(pid: int) -> str | None:
    """Return boot and start time of a live process: field 22 of proc_pid_stat(5)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    if state in {"Z", "X"}:
        return None
    return f"{boot_id()}:{fields[18]}"
