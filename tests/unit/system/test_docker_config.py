"""Logins from Docker's configuration: each registry once, what is broken warned about and then anonymous."""

import base64
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.credentials import Credentials
from rocmrun.system.docker_config import DockerLogins, docker_config_path, podman_auth_path

Answer = Callable[[list[str], str], subprocess.CompletedProcess[str]]


def logins(
    tmp_path: Path, config: Any, run: Answer | None = None
) -> tuple[DockerLogins, list[str]]:
    path = tmp_path / "config.json"
    if config is not None:
        path.write_text(config if isinstance(config, str) else json.dumps(config))
    warnings: list[str] = []
    return DockerLogins(path, warn=warnings.append, run=run), warnings


def says(code: int, stdout: str = "", stderr: str = "") -> Answer:
    return lambda command, _input: subprocess.CompletedProcess(command, code, stdout, stderr)


AUTHS = {"auths": {"a.io": {"auth": base64.b64encode(b"me:pw").decode()}}}
ME = Credentials(username="me", password="pw")


def test_where_docker_keeps_it(tmp_path: Path) -> None:
    """DOCKER_CONFIG is a directory."""
    assert Path("/x/config.json") == docker_config_path({"DOCKER_CONFIG": "/x"}, tmp_path)
    assert tmp_path / ".docker" / "config.json" == docker_config_path({}, tmp_path)


def test_no_configuration_is_anonymous_and_no_warning(tmp_path: Path) -> None:
    """Most machines have none."""
    login, warnings = logins(tmp_path, None)

    assert (login("a.io"), warnings) == (None, [])


def test_a_stored_login(tmp_path: Path) -> None:
    """Without any helper."""
    login, warnings = logins(tmp_path, AUTHS)

    assert (login("a.io"), login("b.io"), warnings) == (ME, None, [])


def test_where_podman_keeps_it() -> None:
    """One place for each login session; a user without one has none."""
    session = {"XDG_RUNTIME_DIR": "/run/user/1000"}

    assert podman_auth_path(session) == Path("/run/user/1000/containers/auth.json")
    assert podman_auth_path(session | {"REGISTRY_AUTH_FILE": "/x.json"}) == Path("/x.json")
    assert podman_auth_path({}) is None


def test_podmans_logins_count_where_docker_has_none(tmp_path: Path) -> None:
    """Podman calls Docker Hub "docker.io"; Docker's own login goes first."""
    other = base64.b64encode(b"other:pw").decode()
    auths = {name: {"auth": other} for name in ("a.io", "b.io", "docker.io")}
    (tmp_path / "config.json").write_text(json.dumps(AUTHS))
    (tmp_path / "auth.json").write_text(json.dumps({"auths": auths}))
    warnings: list[str] = []

    login = DockerLogins(
        tmp_path / "config.json", warn=warnings.append, other=tmp_path / "auth.json"
    )

    found = Credentials(username="other", password="pw")
    assert [login(name) for name in ("a.io", "b.io", "docker.io", "c.io")] == [
        ME,
        found,
        found,
        None,
    ]
    assert warnings == []


@pytest.mark.parametrize("text", ["{", "\x00"])
def test_a_broken_configuration_is_warned_about_once(tmp_path: Path, text: str) -> None:
    """The SDK is silently anonymous then; people wonder why their login is ignored."""
    login, warnings = logins(tmp_path, text)

    assert (login("a.io"), login("b.io")) == (None, None)
    assert len(warnings) == 1
    assert "without a login" in warnings[0]


def test_a_helper_is_asked_once_a_registry(tmp_path: Path) -> None:
    """It gets the server's key on stdin, and may take its time to unlock a keychain only once."""
    asked: list[tuple[list[str], str]] = []

    def run(command: list[str], text: str) -> subprocess.CompletedProcess[str]:
        asked.append((command, text))
        return subprocess.CompletedProcess(command, 0, '{"Username":"me","Secret":"pw"}', "")

    login, _ = logins(tmp_path, {"credsStore": "pass"}, run)

    assert [login("docker.io"), login("docker.io"), login("a.io")] == [ME, ME, ME]
    assert asked == [
        (["docker-credential-pass", "get"], "https://index.docker.io/v1/"),
        (["docker-credential-pass", "get"], "a.io"),
    ]


def missing(command: list[str], _text: str) -> subprocess.CompletedProcess[str]:
    raise FileNotFoundError(command[0])


def hangs(command: list[str], _text: str) -> subprocess.CompletedProcess[str]:
    raise subprocess.TimeoutExpired(command, 1)


@pytest.mark.parametrize(
    ("run", "warning"),
    [
        (missing, "docker-credential-desktop is not installed: b.io is asked without a login"),
        (hangs, "docker-credential-desktop failed (TimeoutExpired): b.io is asked"),
        (says(1, "exec: no pinentry"), "failed (exec: no pinentry): b.io"),
        (says(0, "garbage"), "not JSON"),
        (says(0, "[]"), "something that is not JSON"),
    ],
)
def test_a_broken_helper_means_anonymous_with_a_warning(
    tmp_path: Path, run: Answer, warning: str
) -> None:
    """The SDK fails even for public images here."""
    login, warnings = logins(tmp_path, {"credsStore": "desktop"}, run)

    assert (login("b.io"), login("b.io")) == (None, None)
    assert len(warnings) == 1
    assert warning in warnings[0]


def test_a_helper_that_has_none_is_no_warning(tmp_path: Path) -> None:
    """Its protocol says so with an error; a login in the file counts then."""
    run = says(1, "credentials not found in native keychain\n")
    login, warnings = logins(tmp_path, {"credsStore": "x", **AUTHS}, run)

    assert (login("a.io"), login("b.io"), warnings) == (ME, None, [])


def test_a_real_helper_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program on PATH, asked as Docker asks it."""
    helper = tmp_path / "docker-credential-test"
    helper.write_text(
        '#!/bin/sh\n[ "$1" = get ] || exit 1\nread -r key\n'
        'printf \'{"ServerURL":"%s","Username":"%s","Secret":"pw"}\' "$key" "$key"\n'
    )
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    login, warnings = logins(tmp_path, {"credsStore": "test"})

    assert login("a.io:5") == Credentials(username="a.io:5", password="pw")
    assert warnings == []
