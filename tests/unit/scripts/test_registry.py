"""The registry's port: who has it."""

import os
import socket
import threading
from pathlib import Path

import pytest

from scripts import registry
from scripts.commands import SetupError

pytestmark = pytest.mark.allow_hosts([registry.HOST])


def test_the_holder_of_a_port_is_named() -> None:
    """Someone who listens there is told by name and pid; a free port has no holder."""
    with socket.create_server((registry.HOST, 0)) as server:
        port = server.getsockname()[1]

        holder = registry.holder_of(port)

    assert holder is not None
    assert holder.endswith(f"(pid {os.getpid()})")
    assert registry.holder_of(port) is None


def test_a_port_taken_by_something_else_is_a_clear_error(tmp_path: Path) -> None:
    """What listens there and is no registry is named, and nothing is started beside it."""
    with socket.create_server((registry.HOST, 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=greet_like_ssh, args=(server,), daemon=True).start()
        with pytest.raises(SetupError, match=rf"{registry.HOST}:{port}.*pid {os.getpid()}"):
            registry.ensure(state=tmp_path, logs=tmp_path, storage=tmp_path, port=port)

    assert list(tmp_path.iterdir()) == []


def greet_like_ssh(server: socket.socket) -> None:
    """Answer one caller with something that is no HTTP."""
    caller, _ = server.accept()
    with caller:
        caller.sendall(b"SSH-2.0-none\r\n")
