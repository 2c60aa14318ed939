"""Exactly the locked image: found by digest, keep-tag or id, pulled and verified, or refused."""

from dataclasses import replace

import pytest

from rocmrun.core.keep_tags import keep_tag
from rocmrun.core.lock import PinnedImage
from rocmrun.errors import DigestMismatch, ImageGone, PlanRefused, PlatformMismatch
from rocmrun.usecases.images import (
    UnlockedImage,
    ensure_image,
    ensure_unlocked,
    find_image,
    how_known,
    ids_of_user,
    planned_image,
)
from tests.builders import DIGEST, IMAGE, IMAGE_ID
from tests.fakes import FakeEngine
from tests.unit.usecases.stage import PIN, PULLED, REF, Heard

KEEP = "rocmrun/locked:7f7f7f7f7f7f"
LOCAL = PinnedImage(ref="localhost/demo:1", image_id=IMAGE_ID, source="local")
UNLOCKED = UnlockedImage(ref=REF, platform="linux/amd64")
ARM = replace(IMAGE, architecture="arm64")


def ensure(engine: FakeEngine, pin: PinnedImage = PIN, *, pull: bool = True) -> Heard:
    """Ensure the image and return what was heard of the pull."""
    heard = Heard()
    ensure_image(engine, pin, pull=pull, on_pull=heard.voice.on_pull)
    return heard


def unlocked(engine: FakeEngine, *, pull: bool = True) -> str:
    return ensure_unlocked(engine, UNLOCKED, pull=pull, on_pull=Heard().voice.on_pull).image_id


def test_an_image_that_is_here_is_not_pulled_and_is_kept_from_prune() -> None:
    engine = FakeEngine(images={PULLED: IMAGE, IMAGE_ID: IMAGE})

    heard = ensure(engine)

    assert heard.pulls == []
    assert "pull" not in engine.calls
    assert engine.tags == [(IMAGE_ID, "rocmrun/locked", "7f7f7f7f7f7f")]


def test_an_absent_image_is_pulled_by_digest() -> None:
    engine = FakeEngine(images={}, registry={PULLED: IMAGE})

    heard = ensure(engine)

    assert [event.status for event in heard.pulls] == ["Downloading", "Status: linux/amd64"]
    assert engine.images[KEEP] == IMAGE


def test_an_absent_image_that_may_not_be_pulled_is_gone() -> None:
    engine = FakeEngine(images={}, registry={PULLED: IMAGE})

    with pytest.raises(ImageGone, match="--pull never") as caught:
        ensure(engine, pull=False)

    assert (caught.value.exit_code, engine.calls) == (5, [])


@pytest.mark.parametrize("digests", [(), (f"example.com/rocm/torch@sha256:{'00' * 32}",)])
def test_something_else_that_arrives_is_refused(digests: tuple[str, ...]) -> None:
    engine = FakeEngine(images={}, registry={PULLED: replace(IMAGE, repo_digests=digests)})

    with pytest.raises(DigestMismatch, match="pulled example"):
        ensure(engine)

    assert engine.tags == []


def test_nothing_that_arrives_is_refused() -> None:
    with pytest.raises(DigestMismatch, match="nothing under that digest"):
        ensure(FakeEngine(images={}))


@pytest.mark.parametrize("here", [True, False])
def test_another_platform_is_refused_whether_it_was_here_or_arrives(*, here: bool) -> None:
    """A manifest for one platform is pulled whatever platform is asked for."""
    images = {PULLED: ARM} if here else {}

    with pytest.raises(PlatformMismatch, match="is linux/arm64 here, and linux/amd64 is asked for"):
        ensure(FakeEngine(images=images, registry={PULLED: ARM}))


def test_an_image_is_found_by_its_recorded_id_where_the_digest_was_lost() -> None:
    """`docker load` restores the id and no digest."""
    pin = PIN.model_copy(update={"image_id": IMAGE_ID})

    assert find_image(FakeEngine(images={IMAGE_ID: IMAGE}), pin) == IMAGE
    assert find_image(FakeEngine(images={IMAGE_ID: IMAGE}), PIN) is None


def test_an_id_does_not_outweigh_digests_that_contradict_the_lock() -> None:
    """A lock whose digest and id belong to two images must not start the second."""
    other = replace(IMAGE, repo_digests=(f"docker.io/team/other@sha256:{'0' * 64}",))
    pin = PIN.model_copy(update={"image_id": IMAGE_ID})

    assert find_image(FakeEngine(images={IMAGE_ID: other}), pin) is None


def test_an_image_that_is_known_by_its_id_alone_is_said() -> None:
    loaded = replace(IMAGE, repo_digests=())

    assert how_known(PIN, loaded) == " (known by its id 1d1d1d1d1d1d: docker load loses digests)"
    assert (how_known(PIN, IMAGE), how_known(PIN, None), how_known(LOCAL, loaded)) == ("", "", "")


@pytest.mark.parametrize(
    ("kept", "found"), [(IMAGE, True), (replace(IMAGE, image_id="sha256:" + "00" * 32), False)]
)
def test_the_keep_tag_is_trusted_as_far_as_its_id(kept: object, *, found: bool) -> None:
    """Anybody can move a tag."""
    pin = PIN.model_copy(update={"image_id": IMAGE_ID})
    engine = FakeEngine(images={KEEP: kept})  # type: ignore[dict-item]  # both are images

    assert (find_image(engine, pin) is not None) == found


def test_a_local_image_is_known_by_its_id_and_never_pulled() -> None:
    engine = FakeEngine(images={IMAGE_ID: IMAGE})
    ensure(engine, LOCAL)
    assert engine.tags == []

    with pytest.raises(ImageGone, match="was locked as a local image"):
        ensure(FakeEngine(images={}), LOCAL)


def test_a_plan_names_the_image_as_found() -> None:
    found = planned_image(PIN, IMAGE)

    assert (found.ref, found.digest, found.image_id, found.source) == (
        REF, DIGEST, IMAGE_ID, "registry",
    )  # fmt: skip
    assert planned_image(PIN, None).image_id is None
    assert planned_image(LOCAL, None).image_id == IMAGE_ID
    assert keep_tag(DIGEST) == KEEP


def test_an_unlocked_image_is_whatever_the_tag_names() -> None:
    assert unlocked(FakeEngine(images={REF: IMAGE})) == IMAGE_ID
    assert unlocked(FakeEngine(images={}, registry={REF: IMAGE})) == IMAGE_ID
    assert UNLOCKED.planned(IMAGE).image_id == IMAGE_ID
    assert UNLOCKED.planned(None).image_id is None


def test_an_unlocked_image_that_is_not_to_be_had_is_gone() -> None:
    with pytest.raises(ImageGone, match="--pull never forbids"):
        unlocked(FakeEngine(images={}, registry={REF: IMAGE}), pull=False)
    with pytest.raises(ImageGone, match="nothing of that name"):
        unlocked(FakeEngine(images={}))


def test_an_unlocked_image_is_for_the_platform_too() -> None:
    with pytest.raises(PlatformMismatch):
        unlocked(FakeEngine(images={REF: ARM}))


def test_a_user_by_name_is_read_in_a_container_that_never_starts() -> None:
    engine = FakeEngine(files={"/etc/passwd": b"jovyan:x:1000:100::/:/bin/sh\n"})

    assert ids_of_user(engine, replace(IMAGE, user="jovyan"), "linux/amd64") == (1000, 100)

    assert engine.calls == ["create look", "read_file look", "read_file look", "remove look"]
    assert engine.made("look").labels["io.rocmrun.controller"]
    config = engine.made("look").request["HostConfig"]
    assert config == {"NetworkMode": "none", "CapDrop": ["ALL"], "ReadonlyRootfs": True}


def test_a_user_that_the_image_does_not_know_is_refused_and_nothing_is_left() -> None:
    engine = FakeEngine()

    with pytest.raises(PlanRefused, match="/etc/passwd does not know"):
        ids_of_user(engine, replace(IMAGE, user="jovyan"), "linux/amd64")

    assert engine.kept == []
