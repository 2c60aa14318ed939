"""`rocmrun clean --images` on a real engine: only what rocmrun named, and only what no lock uses."""

import contextlib
import json
from pathlib import Path

import docker
import pytest

from rocmrun.core.keep_tags import NamedImage, keep_tag
from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.system.engine import DockerEngine
from rocmrun.usecases.clean_images import clean_images
from rocmrun.usecases.images import ensure_image
from rocmrun.usecases.locks import LockPlaces
from tests.docker.registry_content import Repository
from tests.workspace import Rocmrun


class OwnImages(DockerEngine):
    """The engine, with the images of one test alone: others run beside it."""

    own: frozenset[str] = frozenset()

    def named_images(self, repository: str) -> tuple[NamedImage, ...]:
        """Return those of this test."""
        return tuple(
            image for image in super().named_images(repository) if image.image_id in self.own
        )


@pytest.fixture
def places(tmp_path: Path) -> LockPlaces:
    names = ("project", "user", "system", "shipped")
    return LockPlaces(option=None, **{name: tmp_path / f"{name}.lock" for name in names})


@pytest.fixture
def pin(repository: Repository) -> PinnedImage:
    pushed = repository.index("1")
    return PinnedImage(ref=pushed.ref, digest=pushed.digest)


def names_of(engine: docker.DockerClient, image_id: str) -> list[str]:
    try:
        image = engine.images.get(image_id)
    except docker.errors.ImageNotFound:
        return []
    return sorted([*image.tags, *image.attrs["RepoDigests"]])


def test_a_pulled_image_goes_when_no_lock_uses_it(
    engine: docker.DockerClient, pin: PinnedImage, places: LockPlaces
) -> None:
    """Not while a lock holds it, nor while a container uses it; another name keeps the image, not our tag."""
    ours, digest = OwnImages(engine.api), pin.digest or ""
    found = ensure_image(
        ours, pin, pull=True, on_pull=lambda: contextlib.nullcontext(lambda _event: None)
    )
    ours.own = frozenset({found.image_id})
    kept, other = keep_tag(digest), f"{keep_tag(digest).replace('locked', 'of-a-test')}-x"

    def clean() -> list[str]:
        clean_images(ours, places=places, lockfiles=[], dry_run=False)
        return names_of(engine, found.image_id)

    try:
        places.project.write_text(Lock.of([pin]).text())
        assert clean() == sorted([kept, pin.pull_reference])
        places.project.unlink()

        container = engine.api.create_container(found.image_id, ["/x"])["Id"]
        assert clean() == sorted([kept, pin.pull_reference])
        engine.api.remove_container(container)

        ours.tag(found.image_id, *other.split(":"))
        assert clean() == sorted([other, pin.pull_reference])
        engine.api.remove_image(other, noprune=True)

        ours.tag(found.image_id, *kept.split(":"))
        assert clean() == []
    finally:
        for name in names_of(engine, found.image_id):
            engine.api.remove_image(name, noprune=True)


def test_the_command_says_what_would_go(
    rocmrun: Rocmrun, engine: docker.DockerClient, pin: PinnedImage
) -> None:
    """And leaves it there; a lock that is named keeps what it holds."""
    found = ensure_image(
        DockerEngine(engine.api),
        pin,
        pull=True,
        on_pull=lambda: contextlib.nullcontext(lambda _event: None),
    )
    lock = rocmrun.path / "other.lock"
    lock.write_text(Lock.of([pin]).text())
    command = ("clean", "--images", "--dry-run", "--json")
    try:
        told = json.loads(rocmrun(*command, check=True).stdout)
        kept = json.loads(rocmrun(*command, "--lockfile", str(lock), check=True).stdout)
        names = names_of(engine, found.image_id)
    finally:
        for name in names_of(engine, found.image_id):
            engine.api.remove_image(name, noprune=True)

    tag = keep_tag(pin.digest or "")
    (mine,) = [image for image in told["images"] if image["image_id"] == found.image_id]
    assert (mine["removed"], mine["image_removed"]) == ([tag, pin.pull_reference], True)
    assert found.image_id not in {image["image_id"] for image in kept["images"]}
    assert str(lock) in kept["locks"]
    assert names == sorted([tag, pin.pull_reference])
