"""`rocmrun clean --images`: what no lock uses goes, and what any lock holds stays."""

from pathlib import Path

import pytest

from rocmrun.core.keep_tags import CleanedImages, NamedImage, keep_tag
from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.errors import LockMissing, LockUnreadable
from rocmrun.usecases.clean_images import clean_images
from rocmrun.usecases.locks import LockPlaces
from tests.fakes import FakeEngine
from tests.registries import digest

LETTERS = "abcdef"


@pytest.fixture
def places(tmp_path: Path) -> LockPlaces:
    names = ("project", "user", "system", "shipped")
    return LockPlaces(option=None, **{name: tmp_path / f"{name}.lock" for name in names})


def write(path: Path, letter: str) -> Path:
    path.write_text(Lock.of([PinnedImage(ref="docker.io/team/x:1", digest=digest(letter))]).text())
    return path


def an_engine(**options: object) -> FakeEngine:
    """Return an engine with a pulled image for each letter."""
    named = [
        NamedImage(
            image_id=f"sha256:{number:064x}",
            tags=(keep_tag(digest(letter)),),
            digests=(f"docker.io/team/x@{digest(letter)}",),
        )
        for number, letter in enumerate(LETTERS)
    ]
    return FakeEngine(named=named, **options)  # type: ignore[arg-type]  # whatever the fake takes


def letters(cleaned: CleanedImages) -> str:
    return "".join(tag[-1] for image in cleaned.images for tag in image.tags)


def test_every_lock_that_is_known_counts(places: LockPlaces, tmp_path: Path) -> None:
    """The project's, the user's, the system's, the shipped one, and each that is named."""
    for path, letter in zip(
        (places.project, places.user, places.system, places.shipped), "abcd", strict=True
    ):
        write(path, letter)
    other = write(tmp_path / "other.lock", "e")
    engine = an_engine()

    cleaned = clean_images(engine, places=places, lockfiles=[other], dry_run=False)

    assert letters(cleaned) == "f"
    assert [image.tags[0][-1] for image in engine.named.values()] == list("abcde")
    assert sorted(cleaned.locks) == sorted(map(str, tmp_path.glob("*.lock")))


def test_a_dry_run_removes_nothing(places: LockPlaces) -> None:
    write(places.project, "a")
    engine = an_engine()

    cleaned = clean_images(engine, places=places, lockfiles=[], dry_run=True)

    assert letters(cleaned) == "bcdef"
    assert engine.calls == []


def test_an_image_in_use_keeps_all_its_names(places: LockPlaces) -> None:
    """Also where its container has ended."""
    ended = {"Id": "x", "Labels": {}, "State": "exited", "ImageID": f"sha256:{0:064x}"}
    engine = an_engine(others=[ended])

    clean_images(engine, places=places, lockfiles=[], dry_run=False)

    assert [image.tags for image in engine.named.values()] == [(keep_tag(digest("a")),)]


def test_a_lock_that_is_not_there_or_cannot_be_read_stops_everything(
    places: LockPlaces, tmp_path: Path
) -> None:
    """What it holds is not known, so nothing is known to be unused."""
    engine, absent = an_engine(), tmp_path / "absent.lock"

    with pytest.raises(LockMissing, match="there is no"):
        clean_images(engine, places=places, lockfiles=[absent], dry_run=False)
    places.user.write_text("<<<<<<< HEAD")
    with pytest.raises(LockUnreadable):
        clean_images(engine, places=places, lockfiles=[], dry_run=False)

    assert engine.calls == []


def test_pins_of_local_images_keep_no_tag(places: LockPlaces) -> None:
    """They have none to keep."""
    pin = PinnedImage(ref="docker.io/team/x:1", image_id=digest("a"), source="local")
    places.project.write_text(Lock.of([pin]).text())

    cleaned = clean_images(an_engine(), places=places, lockfiles=[], dry_run=True)

    assert letters(cleaned) == LETTERS
