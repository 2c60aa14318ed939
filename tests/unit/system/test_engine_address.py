"""Where the engine is, as it is told to people."""

import pytest

from rocmrun.system.engine import engine_address


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
