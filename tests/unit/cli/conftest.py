"""What several commands are tested with."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody answers at the engine's address."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    yield
    # The SDK leaves the socket that it could not connect to the collector.
    gc.collect()
