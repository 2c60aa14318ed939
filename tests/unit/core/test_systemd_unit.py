"""The unit: what runs, when it starts again, and words that systemd reads as they were meant."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.profile.parse import parse_profile
from rocmrun.core.systemd_unit import UnitRequest, unit_text
from rocmrun.errors import UsageError

SYSTEMD_ANALYZE = shutil.which("systemd-analyze")
ODD = 'it\'s "so" 100% $HOME \\ ; \t\n é'


def request(profile: dict[str, Any] | None = None, **changes: Any) -> UnitRequest:
    values: dict[str, Any] = {
        "program": ("/usr/bin/env",),
        "name": "serve",
        "profile_path": "/srv/app/profiles/serve.toml",
        "profile": parse_profile({"image": {"ref": "example.com/x:1"}, **(profile or {})}),
        "lockfile": "/srv/app/rocmrun.lock",
        "directory": "/",
        "container": "rocmrun-serve",
    }
    return UnitRequest(**(values | changes))


def setting(text: str, name: str) -> str:
    """Return the value of the one line that sets *name*."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name}=")]
    return line.partition("=")[2]


def test_it_launches_in_the_foreground_and_says_when_it_is_up() -> None:
    text = unit_text(request(settings={"model_dir": "/srv/m"}, profile_directories=("/p",)))

    assert setting(text, "Type") == "notify"
    assert setting(text, "ExecStart") == (
        "/usr/bin/env launch /srv/app/profiles/serve.toml --name rocmrun-serve "
        "--lockfile /srv/app/rocmrun.lock --profile-dir /p --set model_dir=/srv/m"
    )
    assert setting(text, "ExecStop") == "-/usr/bin/env stop --missing-ok rocmrun-serve"
    assert setting(text, "ExecStartPre") == setting(text, "ExecStop")
    assert "After=docker.service" in text
    assert setting(text, "WantedBy") == "multi-user.target"


def test_times_leave_room_for_probe_health_and_stop() -> None:
    plain = unit_text(
        request({"probe": {"timeout_seconds": 900}, "container": {"stop_timeout": 120}})
    )
    healthy = unit_text(
        request(
            {"container": {"health": {"command": ["true"], "interval": 10, "start_period": 300}}}
        )
    )

    assert setting(plain, "TimeoutStartSec") == str(900 + 600)
    assert setting(plain, "TimeoutStopSec") == str(120 + 30)
    assert setting(healthy, "TimeoutStartSec") == str(600 + 600 + 300 + (10 + 5) * 4)


def test_a_users_own_unit_asks_for_nothing_of_the_system() -> None:
    text = unit_text(request(user=True))

    assert "docker.service" not in text
    assert "CapabilityBoundingSet" not in text
    assert setting(text, "WantedBy") == "default.target"
    assert "loginctl enable-linger" in text


def test_it_sees_the_files_that_the_engine_sees() -> None:
    """Mount sources are judged by rocmrun: a file system view of its own would make them others."""
    words = ("Protect", "PrivateTmp", "ReadOnlyPaths", "InaccessiblePaths", "BindPaths", "Root")

    assert not [line for line in unit_text(request()).splitlines() if line.startswith(words)]


def test_variables_of_the_caller_come_from_a_file() -> None:
    profile = {
        "container": {"env_from": ["HF_TOKEN"]},
        "secrets": [{"name": "key", "source": "env:API_KEY"}, {"name": "f", "source": "file:/s/f"}],
    }
    text = unit_text(request(profile))

    assert setting(text, "EnvironmentFile") == "/etc/rocmrun/serve.env"
    assert "HF_TOKEN=…, API_KEY=…" in text
    user = unit_text(request(profile, user=True))
    assert setting(user, "EnvironmentFile") == "%h/.config/rocmrun/serve.env"
    assert "EnvironmentFile" not in unit_text(request())


def test_an_engine_elsewhere_is_named() -> None:
    text = unit_text(request(docker_host="unix:///run/user/1000/docker.sock"))

    assert setting(text, "Environment") == "DOCKER_HOST=unix:///run/user/1000/docker.sock"


def test_a_description_is_one_line() -> None:
    text = unit_text(request({"description": "Serve\n100 %\tof it"}))

    assert setting(text, "Description") == "Serve 100 %% of it"


def test_odd_words_are_quoted_and_neither_expanded_nor_split() -> None:
    text = unit_text(request(settings={"x": ODD}))

    word = r'"x=it' + "'" + r's \"so\" 100%% $$HOME \\ ; \x09\x0a é"'
    assert setting(text, "ExecStart").endswith(f"--set {word}")


@pytest.mark.skipif(SYSTEMD_ANALYZE is None, reason="systemd is not installed here")
@pytest.mark.parametrize("user", [False, True])
def test_systemd_finds_no_fault(tmp_path: Path, *, user: bool) -> None:
    made = request(
        {"container": {"env_from": ["HF_TOKEN"]}, "description": "100 % 'quoted'"},
        settings={"x": ODD},
        user=user,
        directory=str(tmp_path),
    )
    unit = tmp_path / made.unit_name
    unit.write_text(unit_text(made))

    mode = "--user" if user else "--system"
    command = [str(SYSTEMD_ANALYZE), mode, "--man=no", "verify", str(unit)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"XDG_RUNTIME_DIR": str(tmp_path)}, check=False
    )

    assert [line for line in done.stderr.splitlines() if made.unit_name in line] == []
    assert done.returncode == 0, done.stderr


def test_a_line_cannot_become_another() -> None:
    """systemd joins a line that ends in a backslash with the next, and has no quotes for paths and comments."""
    text = unit_text(request({"description": "mine \x1b[2J \\ \\"}))

    assert setting(text, "Description") == "mine"
    assert setting(text, "Wants") == "docker.service network-online.target"
    for name in ("a\nExecStart=/x", "-a", ""):
        with pytest.raises(UsageError, match="no name for a container"):
            unit_text(request(container=name))
    for directory in ("/a\nExecStart=/x", "/a\\"):
        with pytest.raises(UsageError, match="working directory"):
            unit_text(request(directory=directory))
