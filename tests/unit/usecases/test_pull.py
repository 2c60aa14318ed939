"""Locked images are fetched before they are needed, by digest, and kept."""

from dataclasses import replace
from pathlib import Path

import pytest

from rocmrun.errors import LockMissing
from rocmrun.system.profile_search import default_search
from rocmrun.usecases.locks import LockPlaces
from rocmrun.usecases.pull import HeldImage, pull
from tests.builders import DIGEST, IMAGE
from tests.fakes import FakeEngine
from tests.unit.usecases.stage import PULLED, REF, Stage


def pulled(stage: Stage, engine: FakeEngine, *names: str) -> tuple[HeldImage, ...]:
    """Pull in the stage's folder."""
    search = default_search(
        environ={}, working_directory=stage.path, system_directory=stage.path / "none"
    )
    places = LockPlaces.of(lockfile=None, environment={}, directory=stage.path, shipped=Path("/no"))
    return pull(
        names, engine=engine, search=search, settings={}, places=places, voice=stage.heard.voice
    )


@pytest.mark.parametrize("names", [(), ("job",)])
def test_an_absent_image_is_fetched_by_digest_and_kept(
    stage: Stage, names: tuple[str, ...]
) -> None:
    """One without names, the project's own profiles."""
    engine = FakeEngine(images={}, registry={PULLED: IMAGE})

    (held,) = pulled(stage, engine, *names)

    assert (held.ref, held.digest, held.profiles, held.fetched) == (REF, DIGEST, ("job",), True)
    assert stage.heard.pulls != []
    assert [tag for _, tag, _ in engine.tags] == ["rocmrun/locked"]


def test_an_image_that_is_here_is_not_fetched_again(stage: Stage) -> None:
    """It is kept all the same."""
    engine = FakeEngine(images={PULLED: IMAGE, IMAGE.image_id: IMAGE})

    (held,) = pulled(stage, engine)

    assert not held.fetched
    assert "pull" not in engine.calls
    assert len(engine.tags) == 1


def test_nothing_is_fetched_while_one_is_not_locked(stage: Stage) -> None:
    """All locks are read first."""
    (stage.path / "profiles/zz.toml").write_text('[image]\nref = "example.com/other:1"\n')
    engine = FakeEngine(images={}, registry={PULLED: replace(IMAGE)})

    with pytest.raises(LockMissing, match=r"example\.com/other:1"):
        pulled(stage, engine)
    assert "pull" not in engine.calls
