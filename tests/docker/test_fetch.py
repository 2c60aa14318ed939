"""How a launch gets its image on a real engine: by digest, by id where the digest was lost, by a pull that is verified."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import docker
import pytest

from rocmrun.core.keep_tags import keep_tag
from rocmrun.core.lock import PinnedImage
from rocmrun.core.manifest import OCI_MANIFEST
from rocmrun.core.run import PullEvent
from rocmrun.errors import DigestMismatch, PlatformMismatch
from rocmrun.system.engine import DockerEngine
from rocmrun.usecases.images import ensure_image
from tests.docker.registry_content import Repository
from tests.workspace import Rocmrun, Workspace

FETCHING = "fetching the image, which is not on this machine"


@dataclass(kw_only=True)
class Shelf:
    """Images that only this test has, here and in its repository."""

    engine: docker.DockerClient
    base: str
    name: str

    def put(self, text: str, tag: str = "1") -> str:
        """Make an image that says *text* in a label, and return its id; its name is the repository's with *tag*."""
        container = self.engine.api.create_container(self.base, ["/bin/true"])["Id"]
        try:
            conf = {"Labels": {"says": text}}
            return str(self.engine.api.commit(container, self.name, tag, conf=conf)["Id"])
        finally:
            self.engine.api.remove_container(container)

    def push(self, tag: str = "1") -> str:
        """Push it and return the digest that it has there."""
        events = list(self.engine.api.push(self.name, tag, stream=True, decode=True))
        assert [event for event in events if "error" in event] == []
        (found,) = [event["aux"]["Digest"] for event in events if "aux" in event]
        return str(found)

    def forget(self, image_id: str) -> None:
        """Remove an image from the engine with all its names."""
        with contextlib.suppress(docker.errors.ImageNotFound):
            self.engine.images.remove(image_id, force=True, noprune=True)

    def tags(self, image_id: str) -> list[str]:
        """Return the names that the image has here."""
        return list(self.engine.images.get(image_id).tags)


@pytest.fixture
def shelf(engine: docker.DockerClient, repository: Repository, tiny_image: str) -> Iterator[Shelf]:
    shelf = Shelf(
        engine=engine, base=tiny_image, name=f"{repository.address}/{repository.name}-shelf"
    )
    yield shelf
    # The list alone: the SDK's own looks at each, and another test may have removed it by then.
    for image in engine.api.images(filters={"label": "says"}):
        if image["Labels"]["says"].endswith(repository.name):
            shelf.forget(image["Id"])


@pytest.fixture
def text(repository: Repository) -> str:
    """What marks the images of this test."""
    return repository.name


def profile(workspace: Workspace, ref: str) -> str:
    gpus = '[gpus]\nselect = ["none"]\n'
    return workspace.write(f'extends = "base"\naccelerator = "cpu"\n[image]\nref = "{ref}"\n{gpus}')


def job(name: str, *options: str) -> tuple[str, ...]:
    return ("launch", name, "--no-probe", *options, "--", "/bin/true")


def test_absent_then_pulled_then_here_then_loaded(
    rocmrun: Rocmrun, workspace: Workspace, shelf: Shelf, text: str
) -> None:
    """The whole way of an image, moved tag included: what starts is what is locked."""
    image_id = shelf.put(f"first {text}")
    digest = shelf.push()
    name = profile(workspace, f"{shelf.name}:1")
    rocmrun("lock", name, "--resolver", "registry", check=True)
    shelf.forget(image_id)
    shelf.put(f"second {text}")
    shelf.push()

    never = rocmrun(*job(name, "--pull", "never"))
    assert (never.returncode, "error[image-gone]" in never.stderr) == (125, True)

    pulled = rocmrun(*job(name), check=True)
    assert FETCHING in pulled.stderr
    assert "fetched" in pulled.stderr
    assert digest in pulled.stderr
    assert shelf.tags(image_id) == [keep_tag(digest)]

    here = rocmrun(*job(name, "--pull", "never"), check=True)
    assert FETCHING not in here.stderr
    archive = b"".join(shelf.engine.api.get_image(image_id))
    shelf.forget(image_id)
    shelf.engine.images.load(archive)
    loaded = rocmrun(*job(name, "--pull", "never"), check=True)
    assert "known by its id" in loaded.stderr
    assert shelf.tags(image_id) == [keep_tag(digest)]


def test_a_local_image_is_compared_by_its_id(
    rocmrun: Rocmrun, workspace: Workspace, shelf: Shelf, text: str
) -> None:
    """Built anew under the same name it is another image: the locked one starts, and when it is gone, none."""
    first = shelf.put(f"first {text}")
    name = profile(workspace, f"{shelf.name}:1")
    rocmrun("lock", name, "--resolver", "engine", check=True)
    second = shelf.put(f"second {text}")

    started = rocmrun(*job(name, "--report", "report.json"), check=True)
    shelf.forget(first)
    gone = rocmrun(*job(name))
    rocmrun("lock", name, "--upgrade", "--resolver", "engine", check=True)
    upgraded = rocmrun(*job(name), check=True)

    assert first in started.stderr
    assert (gone.returncode, "was locked as a local image" in gone.stderr) == (125, True)
    assert second in upgraded.stderr


def test_one_platform_of_an_index_stands_in_the_way_of_another(
    engine: docker.DockerClient, repository: Repository
) -> None:
    """An engine with the classic store keeps one; the SDK's own pull hides that and returns the wrong image."""
    pushed = repository.index("1")
    ours, name = DockerEngine(engine.api), f"{repository.address}/{repository.name}@{pushed.digest}"
    try:
        list(ours.pull(name, "linux/amd64"))

        with pytest.raises(PlatformMismatch, match="another platform of") as caught:
            list(ours.pull(name, "linux/arm64"))
        assert f"docker image rm {name}" in (caught.value.hint or "")
        pin = PinnedImage(ref=pushed.ref, digest=pushed.digest, platform="linux/arm64")
        with pytest.raises(PlatformMismatch, match="is linux/amd64 here"):
            ensure_image(ours, pin, pull=True, on_pull=no_words)
    finally:
        engine.images.remove(name, noprune=True)


def test_a_single_image_for_another_platform_arrives_and_is_refused(
    engine: docker.DockerClient, repository: Repository
) -> None:
    """An engine pulls a manifest whatever platform is asked for."""
    pushed = repository.manifest("1", OCI_MANIFEST, platform="linux/arm64")
    pin = PinnedImage(ref=pushed.ref, digest=pushed.digest)
    try:
        with pytest.raises(PlatformMismatch, match="is linux/arm64 here"):
            ensure_image(DockerEngine(engine.api), pin, pull=True, on_pull=no_words)
    finally:
        engine.images.remove(pin.pull_reference, noprune=True)


def test_a_digest_that_another_content_has_is_refused(
    engine: docker.DockerClient, repository: Repository
) -> None:
    """The locked digest is not what the registry has under that name: nothing arrives as it."""
    first, second = repository.manifest("1"), repository.manifest("2")
    name = f"{repository.address}/{repository.name}"

    class Other(DockerEngine):
        def pull(self, name: str, platform: str) -> Iterator[PullEvent]:
            return super().pull(name.replace(first.digest, second.digest), platform)

    try:
        with pytest.raises(DigestMismatch, match="nothing under that digest"):
            ensure_image(
                Other(engine.api),
                PinnedImage(ref=first.ref, digest=first.digest),
                pull=True,
                on_pull=no_words,
            )
    finally:
        engine.images.remove(f"{name}@{second.digest}", noprune=True)


def no_words() -> contextlib.nullcontext[Callable[[PullEvent], None]]:
    return contextlib.nullcontext(lambda _event: None)
