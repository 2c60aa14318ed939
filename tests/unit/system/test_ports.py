"""Ports that somebody has: found by taking them, with real sockets on loopback."""

import socket

import pytest

from rocmrun.system.ports import is_taken

pytestmark = pytest.mark.enable_socket


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_port_is_taken_while_somebody_listens(family: int, address: str) -> None:
    """Also for whoever wants it at every address; not for another address or protocol."""
    try:
        listener = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {address}")
    with listener:
        port = listener.getsockname()[1]
        everywhere = "::" if ":" in address else "0.0.0.0"
        assert is_taken(address, port, "tcp")
        assert is_taken(everywhere, port, "tcp")
        assert not is_taken(address, port, "udp")
    assert not is_taken(address, port, "tcp")


def test_a_datagram_port_is_one_of_its_own() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        assert is_taken("127.0.0.1", port, "udp")


def test_connections_that_are_closing_hold_nothing() -> None:
    """A server that was stopped just now may be started again at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served, _ = listener.accept()
        # Who closes first keeps the port in TIME_WAIT.
        served.close()
        client.close()

    assert not is_taken("127.0.0.1", port, "tcp")


def test_what_cannot_be_told_is_not_taken() -> None:
    """An address of another machine (RFC 5737) is the engine's to refuse."""
    assert not is_taken("192.0.2.1", 8000, "tcp")
