"""Where the engine is, as it is told to people."""

import gc
import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from rocmrun.errors import Interrupted
from rocmrun.system.engine import DockerEngine, engine_address
from rocmrun.system.signals import as_exceptions


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", "unix:///var/run/docker.sock"),
        ("unix:///run/user/1000/docker.sock", "unix:///run/user/1000/docker.sock"),
        ("tcp://user:secret@10.0.0.1:2376", "tcp://user:***@10.0.0.1:2376"),
        ("ssh://me@host", "ssh://me@host"),
        ("user:p@ss@host", "user:p@ss@host"),
    ],
)
def test_a_password_is_not_shown(value: str, shown: str) -> None:
    """A user without a password is part of an ssh address; what is no URL is shown as it is."""
    assert engine_address({"DOCKER_HOST": value}) == shown


def interrupted_by() -> int:
    """Look for the engine, and return the signal that ended this.

    The SDK's connection hangs on the exception, so that it must be gone before the test is.
    """
    try:
        DockerEngine.connect()
    except Interrupted as error:
        return error.signal_number
    return 0


@pytest.mark.enable_socket
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_engine_is_asked_is_no_fault_of_the_engine(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK wraps whatever is raised while it asks for the version."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/silent.sock")
    with socket.socket(socket.AF_UNIX) as silent, as_exceptions():
        silent.bind(f"{tmp_path}/silent.sock")
        silent.listen()
        connections: list[socket.socket] = []

        def interrupt() -> None:
            connections.append(silent.accept()[0])
            os.kill(os.getpid(), number)

        asked = threading.Thread(target=interrupt)
        asked.start()
        ended_by = interrupted_by()
        asked.join()
        connections[0].close()
    gc.collect()

    assert ended_by == number
