"""`rocmrun profiles unit`: what is printed is absolute, and what could not be launched is refused."""

from pathlib import Path

import pytest

from rocmrun.__main__ import run
from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.core.reference import parse_reference
from tests.builders import DIGEST

JOB = (
    '[parameters]\nport = { help = "a port" }\n[image]\nref = "example.com/demo:1"\n'
    '[container]\nenv = { PORT = "${port}" }\n'
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one profile and its lock."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "DOCKER_HOST", "ROCMRUN_LOCKFILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/job.toml").write_text(JOB)
    pin = PinnedImage(ref=parse_reference("example.com/demo:1").canonical, digest=DIGEST)
    (tmp_path / "rocmrun.lock").write_text(Lock.of([pin]).text())
    return tmp_path


def test_every_path_is_absolute(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A unit is started from anywhere."""
    assert run(["profiles", "unit", "job", "--set", "port=8000", "--profile-dir", "profiles"]) == 0

    text = capsys.readouterr().out
    assert f"WorkingDirectory={project}\n" in text
    assert (
        f" launch {project}/profiles/job.toml --name rocmrun-job --lockfile {project}/rocmrun.lock "
        f"--profile-dir {project}/profiles --set port=8000\n"
    ) in text
    assert "WantedBy=multi-user.target" in text


def test_unit_and_container_may_have_another_name(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["profiles", "unit", "job", "--user", "--name", "second", "--set", "port=1"]
    assert run(words) == 0

    text = capsys.readouterr().out
    assert "~/.config/systemd/user/second.service" in text
    assert "--name second " in text
    assert "stop --missing-ok second\n" in text


@pytest.mark.parametrize(
    ("words", "code", "slug"),
    [
        (["job"], 2, "parameter-missing"),
        (["jobb"], 2, "profile-not-found"),
        (["job", "--set", "port=1", "--lockfile", "none.lock"], 3, "lock-missing"),
    ],
)
def test_what_could_not_be_launched_gets_no_unit(
    words: list[str], code: int, slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profiles", "unit", *words]) == code

    said = capsys.readouterr()
    assert said.out == ""
    assert f"error[{slug}]" in said.err
