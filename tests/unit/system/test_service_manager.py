"""What a service manager hears of us, and that nobody else speaks in our name."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocmrun.system.service_manager import notifier

pytestmark = pytest.mark.enable_socket


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A socket such as systemd has."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(10)
        yield listening


def test_it_hears_every_word(manager: socket.socket, tmp_path: Path) -> None:
    notify = notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})

    notify("STATUS=planning")
    notify("READY=1\nSTATUS=runs")

    assert [manager.recv(100), manager.recv(100)] == [b"STATUS=planning", b"READY=1\nSTATUS=runs"]


def test_an_abstract_socket_is_written_with_an_at_sign() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0rocmrun-test-notify")
        listening.settimeout(10)

        notifier({"NOTIFY_SOCKET": "@rocmrun-test-notify"})("READY=1")

        assert listening.recv(100) == b"READY=1"


def test_the_variable_is_gone_for_whoever_we_start(tmp_path: Path) -> None:
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "HOME": "/root"}

    notifier(environment)

    assert environment == {"HOME": "/root"}


@pytest.mark.parametrize("address", [None, "", "relative", "/nowhere/notify", f"/{'x' * 300}"])
def test_nobody_who_listens_is_no_failure(address: str | None) -> None:
    notifier({} if address is None else {"NOTIFY_SOCKET": address})("READY=1")
