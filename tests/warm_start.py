"""The installed command without the half second that its imports take: a process that has made them is forked.

Each call is a process of its own, with the caller's words, directory, environment and streams, and runs the
program's entry point to its end. This file is also the program that is forked; it imports nothing of the tests.
"""

import atexit
import functools
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, NoReturn

# What the interpreter itself reads when it starts: a caller who sets one of these wants a start of its own.
READ_AT_START = ("PYTHON", "LC_", "LANG")
# So much fits into a pipe that nobody reads yet.
MOST_INPUT = 65536


def run(
    words: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes | None,
    timeout: float,
    on_start: Callable[[str], None],
) -> tuple[int, bytes, bytes]:
    """Run rocmrun to its end; return its code, as subprocess has it, and both outputs.

    Args:
        words: The program and its arguments.
        cwd: Where.
        env: All variables that it gets.
        stdin: What it can read; None for nothing.
        timeout: Seconds, after which it is killed.
        on_start: Hears of its process, as "PID:START".
    """
    asked = json.dumps({"words": list(words), "cwd": str(cwd), "env": dict(env)}).encode()
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, ours.makefile() as told, TemporaryFile() as out, TemporaryFile() as err:
        with theirs, _stdin(stdin) as given, TemporaryFile() as request:
            request.write(asked)
            request.seek(0)
            descriptors = [each.fileno() for each in (given, out, err, theirs, request)]
            socket.send_fds(_forked(), [b"run"], descriptors)
        process = told.readline().strip()
        on_start(process)
        ours.settimeout(timeout)
        try:
            code = int(told.readline())
        except BaseException as error:
            _kill(int(process.partition(":")[0]), ours)
            if isinstance(error, TimeoutError):
                raise subprocess.TimeoutExpired(list(words), timeout) from error
            raise
        return code, _whole(out), _whole(err)


def _kill(pid: int, told: socket.socket) -> None:
    """Kill a run and wait until it is gone: then its code is told, too late for whoever asked."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    told.settimeout(None)
    told.recv(64)


def process_of(pid: int) -> str:
    """Return "PID:START" as rocmrun writes it on its containers: a number alone is given away again."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return f"{pid}:{stat.rpartition(')')[2].split()[19]}"


def _stdin(data: bytes | None) -> BinaryIO:
    """Return a pipe that holds *data* and its end."""
    if data is None:
        return Path(os.devnull).open("rb")
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return os.fdopen(reading, "rb")


def _whole(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


@functools.cache
def _forked() -> socket.socket:
    """Start the process that is forked; it ends when our end of the socket is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _serve(asked: socket.socket) -> None:
    """Fork for each request, until nobody can ask any more."""
    _import_all()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for who waits for a run
    gc.freeze()
    while True:
        _, descriptors, _, _ = socket.recv_fds(asked, 16, 5)
        if not descriptors:
            return
        if os.fork() == 0:
            asked.close()
            _wait_for_a_run(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _import_all() -> None:
    """Import what any command may need."""
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # as the entry point has it
    import rocmrun

    for module in pkgutil.walk_packages(rocmrun.__path__, "rocmrun."):
        if not module.name.startswith("rocmrun.probe"):
            __import__(module.name)
    for name in ("docker", "rich.console", "rich.progress", "rich.table"):
        __import__(name)


def _wait_for_a_run(stdin: int, out: int, err: int, channel: int, request: int) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        _run(stdin, out, err, request)
    for descriptor in (stdin, out, err, request):
        os.close(descriptor)
    os.write(channel, f"{process_of(pid)}\n".encode())
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        os.write(channel, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _run(stdin: int, out: int, err: int, request: int) -> NoReturn:
    """Be rocmrun."""
    with os.fdopen(request) as file:
        asked = json.load(file)
    for number, descriptor in enumerate((stdin, out, err)):
        os.dup2(descriptor, number)
    os.closerange(3, 64)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.argv = asked["words"]
    from rocmrun.__main__ import main

    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001  # as an interpreter ends
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as end_of_tests:
        _serve(end_of_tests)
