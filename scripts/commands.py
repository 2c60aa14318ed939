"""Run the programs that the set-up needs: quiet when they work, their last words when they do not."""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

LAST_LINES = 15
# root's PATH under sudo, cron and CI often lacks the directories where the daemons are.
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


class SetupError(Exception):
    """The set-up cannot go on; the hint is the next command, where there is one."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def say(text: str) -> None:
    """Print one step of the set-up."""
    print(f"==> {text}", flush=True)


def find(program: str) -> str | None:
    """Return the path of *program*, also where only root's own PATH has it."""
    return shutil.which(program) or shutil.which(program, path=SYSTEM_PATH)


def run(
    argv: Sequence[str],
    *,
    log: Path,
    stdin: IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run *argv* with its output in *log*.

    Raises:
        SetupError: it cannot be started or fails; the message ends with the last lines of the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        sink.write(f"$ {' '.join(argv)}\n".encode())
        sink.flush()
        begin = sink.tell()
        started = time.monotonic()
        try:
            done = subprocess.run(
                argv,
                stdin=stdin or subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                check=False,
            )
        except OSError as error:
            msg = f"cannot start {argv[0]}: {error.strerror}"
            raise SetupError(msg) from error
        sink.write(f"({time.monotonic() - started:.1f} s)\n".encode())
    if done.returncode != 0:
        msg = f"{argv[0]} failed with {done.returncode}:\n{last_lines(log, begin)}\n(all of it: {log})"
        raise SetupError(msg)


def output(argv: Sequence[str], *, timeout_seconds: float | None = None) -> str:
    """Return what *argv* prints, stripped.

    Raises:
        SetupError: it cannot be started, fails or takes too long; the message ends with its stderr.
    """
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"{' '.join(argv[:3])} did not end within {timeout_seconds} s"
        raise SetupError(msg) from error
    except OSError as error:
        msg = f"cannot start {argv[0]}: {error.strerror}"
        raise SetupError(msg) from error
    if done.returncode != 0:
        msg = f"{' '.join(argv[:3])} failed with {done.returncode}: {done.stderr.strip()}"
        raise SetupError(msg)
    return done.stdout.strip()


def last_lines(log: Path, begin: int = 0) -> str:
    """Return the last lines that *log* has after byte *begin*, indented."""
    lines = log.read_bytes()[begin:].decode(errors="replace").splitlines()
    return "\n".join(f"    {line[:400]}" for line in lines[-LAST_LINES:])
