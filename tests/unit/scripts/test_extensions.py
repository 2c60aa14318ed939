"""The extension that the tests mount: fetched once, and missed without a failure of the set-up."""

from pathlib import Path

import pytest

from scripts import extensions


def test_one_that_is_there_is_not_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "extensions" / "bitsandbytes-0.50.2").mkdir(parents=True)

    extensions.ensure(build=tmp_path, log=tmp_path / "log")

    assert (capsys.readouterr().out, (tmp_path / "log").exists()) == ("", False)


def test_one_that_cannot_be_fetched_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test that needs it then says so itself."""
    for name in ("PIP_NO_INDEX", "PIP_DISABLE_PIP_VERSION_CHECK"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    extensions.ensure(build=tmp_path, log=tmp_path / "log")

    assert "No matching distribution found for bitsandbytes" in capsys.readouterr().out
    assert extensions.path(tmp_path) is None
