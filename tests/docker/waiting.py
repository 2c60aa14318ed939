"""Start a command and wait for what it is about to do. Nothing here concludes anything from how long it took."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

import docker
from docker.errors import NotFound

from tests.workspace import Rocmrun

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.05


@contextlib.contextmanager
def started(rocmrun: Rocmrun, *args: str, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start rocmrun; a test that fails in the block leaves no process behind."""
    process = rocmrun.start(*args, **streams)
    try:
        yield process
    finally:
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        if process.poll() is None:
            process.kill()
        process.wait()


def until(look: Callable[[], T | None], what: str) -> T:
    """Return the first result of *look* that is true; fail with *what* did not happen."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"in {PATIENCE_SECONDS:.0f} s: not {what}"
        time.sleep(PAUSE_SECONDS)


def until_running(engine: docker.DockerClient, name: str) -> None:
    """Wait until the container of that name runs."""

    def running() -> bool:
        try:
            return bool(engine.api.inspect_container(name)["State"]["Running"])
        except NotFound:
            return False

    until(running, f"container {name} running")


def exists(engine: docker.DockerClient, name: str) -> bool:
    """Return whether the engine has a container of that name, running or not."""
    try:
        engine.api.inspect_container(name)
    except NotFound:
        return False
    return True


def read_until(stream: IO[bytes] | None, word: bytes) -> bytes:
    """Return what comes from *stream* up to and with *word*; fail when it ends before."""
    assert stream is not None
    data = b""
    while word not in data:
        chunk = os.read(stream.fileno(), 4096)
        assert chunk, f"the output ended before {word!r}: {data!r}"
        data += chunk
    return data


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Wait for the end; return the code and the rest of both streams."""
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, (out or b"").decode(), (err or b"").decode()
