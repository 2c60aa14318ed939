"""A stage of its own for every test, and nothing of the caller's environment."""

from pathlib import Path

import pytest

from tests.unit.usecases.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A folder with a profile, a lock and a host; caches, records and secrets go below it too."""
    for name in ("CI", "SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    return Stage(path=tmp_path)
