"""This program as its children run it: compiled once, with its text for whoever asks for a line of it."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import linecache
import marshal
import os
import subprocess
import sys
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from rocmrun.probe.parts.events import write_all

PIPE_BYTES = 1 << 20
F_SETPIPE_SZ = 1031  # fcntl has the name only since Python 3.10
CHILD_BOOTSTRAP = (
    "import sys\n"
    "sys.path[:]=[p for p in sys.path if p]\n"
    "PROBE_SOURCE=sys.stdin.buffer.read()\n"
    "exec(compile(PROBE_SOURCE,'gpu_probe.py','exec'))"
)


class Program(NamedTuple):
    """The program's text, and the same as a file that Python runs without compiling it again."""

    source: bytes
    compiled: bytes


def program_of(source: bytes, code: CodeType) -> Program:
    """Return the program that *source* is and *code* was compiled from.

    To compile it takes longer than all else that a child does before its first job. A .pyc file is
    magic number, flags, time and size, and the code; Python looks at the first alone where it is
    told to run the file.
    """
    return Program(source, importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))


class ProgramText:
    """What `linecache` asks for the text, as it asks the loader of a module."""

    def __init__(self, descriptor: int) -> None:
        self._path = f"/proc/self/fd/{descriptor}"

    def get_source(self, _name: str) -> str:
        """Return the text."""
        return Path(self._path).read_text(encoding="utf-8")


def show_text(descriptor: int, code: CodeType) -> None:
    """Let tracebacks and `inspect.getsource` find the text of *code*, which is read when one asks."""
    scope = {"__name__": "__main__", "__loader__": ProgramText(descriptor)}
    linecache.lazycache(code.co_filename, scope)


def spawn(
    program: Program, environment: dict[str, str]
) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start a child; return it, where its jobs go in and where its results come out.

    The program travels as a memfd; where that is refused, its text goes to standard input.
    """
    jobs, jobs_in = os.pipe()
    results, results_in = os.pipe()
    with contextlib.suppress(OSError):  # roomier pipes: nobody reads while a sibling is waited for
        fcntl.fcntl(results, F_SETPIPE_SZ, PIPE_BYTES)
    files: list[int] = []
    python = [sys.executable, *(["-s"] if sys.flags.no_user_site else [])]
    command = [*python, "-c", CHILD_BOOTSTRAP, "--child", str(jobs), str(results_in)]
    with contextlib.suppress(OSError, AttributeError):
        files += [memory_file(content) for content in program]
        text, compiled = map(str, files)
        words = ["--child", str(jobs), str(results_in), text]
        command = [*python, f"/proc/self/fd/{compiled}", *words]
    kept = [jobs, results_in, *files]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if files else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        pass_fds=kept,
        start_new_session=True,
    )
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        fcntl.fcntl(process.stdout.fileno(), F_SETPIPE_SZ, PIPE_BYTES)
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(process.stdin.fileno(), F_SETPIPE_SZ, PIPE_BYTES)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(program.source)
            process.stdin.close()
    for descriptor in kept:
        os.close(descriptor)
    return process, jobs_in, results


def memory_file(content: bytes) -> int:
    """Return the descriptor of a file without a place that holds *content*."""
    descriptor = os.memfd_create("gpu_probe.py")
    write_all(descriptor, content)
    return descriptor
