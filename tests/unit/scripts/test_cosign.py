"""Which cosign the tests use: the machine's own, else the one that was unpacked, else none."""

from pathlib import Path

import pytest

from scripts import cosign


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_machines_own_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert cosign.path(tmp_path) is None
    unpacked = program(tmp_path / "cosign/usr/bin/cosign")
    assert cosign.path(tmp_path) == unpacked
    installed = program(tmp_path / "bin/cosign")
    assert cosign.path(tmp_path) == installed


def test_one_that_is_there_is_not_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(tmp_path / "cosign/usr/bin/cosign")

    cosign.ensure(build=tmp_path, log=tmp_path / "log")

    assert (capsys.readouterr().out, (tmp_path / "log").exists()) == ("", False)


def test_a_package_that_cannot_be_fetched_is_said_and_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests that need it then say so themselves."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("apt-get", "dpkg-deb"):
        program(tmp_path / "bin" / name).write_text("#!/bin/sh\necho no network >&2\nexit 100\n")

    cosign.ensure(build=tmp_path / "build", log=tmp_path / "log")

    told = capsys.readouterr().out
    assert "apt-get" in told
    assert "failed with 100" in told
    assert "no network" in told
    assert cosign.path(tmp_path / "build") is None
