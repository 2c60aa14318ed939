"""`rocmrun lock` keeps what is locked, asks for what is not, and writes the file whole or not at all."""

import multiprocessing
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.image import ImageFacts
from rocmrun.core.lock import Lock, LockedFacts, PinnedImage, Resolved, parse_lock
from rocmrun.core.lock_changes import ChangeKind
from rocmrun.core.lock_report import LockReport
from rocmrun.core.reference import parse_reference
from rocmrun.core.signature import SignatureRule, VerifiedSignature
from rocmrun.errors import (
    DigestMismatch,
    ImageGone,
    LockBusy,
    LockMissing,
    LockUnreadable,
    LockUnwritable,
    PlanRefused,
    PlatformMismatch,
    RateLimited,
    RegistryDenied,
    RegistryUnavailable,
    SignatureUnverified,
    UsageError,
)
from rocmrun.usecases.lock import LockRequest, lock_profiles
from rocmrun.usecases.lock_ask import Sources
from rocmrun.usecases.lock_files import pull_name
from rocmrun.usecases.lock_selection import ProfileReference, Selection
from rocmrun.usecases.locks import LockPlaces
from rocmrun.usecases.signatures import Verify, verify_signature
from tests.registries import FakeRegistry, digest, no_sources

X, Y, Z = (f"docker.io/team/{letter}:1" for letter in "xyz")
A, B, C = digest("a"), digest("b"), digest("c")


@pytest.fixture
def places(tmp_path: Path) -> LockPlaces:
    (tmp_path / "project" / "profiles").mkdir(parents=True)
    return LockPlaces(
        option=None,
        project=tmp_path / "project" / "rocmrun.lock",
        user=tmp_path / "user" / "rocmrun.lock",
        system=tmp_path / "system" / "rocmrun.lock",
        shipped=tmp_path / "shipped" / "rocmrun.lock",
    )


def wants(places: LockPlaces, ref: str, profile: str = "p", **fields: Any) -> ProfileReference:
    directory = places.project.parent / "profiles"
    values = {
        "profile": profile,
        "ref": ref,
        "platform": "linux/amd64",
        "moving_tags": "warn",
        "origin": "project",
        "path": directory / f"{profile}.toml",
    }
    return ProfileReference(**{**values, **fields})


def lock(
    places: LockPlaces,
    *references: ProfileReference,
    registry: FakeRegistry | Callable[..., Sources] = no_sources,
    used: set[str] | None = None,
    verify: Verify = verify_signature,
    measured: Callable[[str], LockedFacts | None] = lambda _image: None,
    **options: Any,
) -> LockReport:
    selection = Selection(references=references, used=None if used is None else frozenset(used))
    opener = registry.opener() if isinstance(registry, FakeRegistry) else registry
    request = LockRequest(selection=selection, **options)
    return lock_profiles(
        request, places=places, open_sources=opener, verify=verify, measured=measured
    )


def pin(ref: str = X, found: str | None = A, **fields: Any) -> PinnedImage:
    return PinnedImage(ref=ref, digest=found, **fields)


def write(path: Path, *pins: PinnedImage) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(Lock.of(pins).text())
    return path


def read(path: Path) -> dict[str, str | None]:
    return {image.ref: image.digest for image in parse_lock(path.read_text(), "x").images}


def kinds(report: LockReport) -> dict[str, str]:
    return {change.ref: str(change.kind) for file in report.files for change in file.changes}


def test_the_first_lock(places: LockPlaces) -> None:
    """Each image is asked for once, however many profiles use it."""
    registry = FakeRegistry(tags={X: A, Y: B})

    report = lock(
        places,
        wants(places, Y, "b"),
        wants(places, X, "a"),
        wants(places, X, "c"),
        registry=registry,
    )

    assert read(places.project) == {X: A, Y: B}
    assert sorted(registry.asked) == [X, Y]
    assert kinds(report) == {X: "added", Y: "added"}
    assert (report.files[0].written, report.asked) == (True, 2)


def test_an_unchanged_lock_asks_nobody_and_touches_nothing(places: LockPlaces) -> None:
    """No source is opened, no byte written, also where nothing could be."""
    path = write(places.project, pin(X))
    os.utime(path, ns=(1, 1))
    path.parent.chmod(0o555)

    try:
        report = lock(places, wants(places, X))
    finally:
        path.parent.chmod(0o755)

    assert (report.files[0].written, report.asked, kinds(report)) == (False, 0, {X: "kept"})
    assert path.stat().st_mtime_ns == 1


def test_existing_pins_stay_though_their_tags_moved(places: LockPlaces) -> None:
    """Only what is new is asked for."""
    write(places.project, pin(X, A))
    registry = FakeRegistry(tags={X: B, Y: C})

    lock(places, wants(places, X, "a"), wants(places, Y, "b"), registry=registry)

    assert read(places.project) == {X: A, Y: C}
    assert registry.asked == [Y]


def test_upgrade_asks_again_for_all_or_for_one(places: LockPlaces) -> None:
    """--upgrade, and --upgrade-image with a profile's name or a reference."""
    registry = FakeRegistry(tags={X: B, Y: B})
    both = (wants(places, X, "serve"), wants(places, Y, "train"))

    write(places.project, pin(X), pin(Y))
    report = lock(places, *both, registry=registry, upgrade_images=("serve",))
    assert read(places.project) == {X: B, Y: A}
    assert kinds(report) == {X: "changed", Y: "kept"}
    lock(places, *both, registry=registry, upgrade_images=("team/y:1",))
    assert read(places.project) == {X: B, Y: B}
    write(places.project, pin(X), pin(Y))
    lock(places, *both, registry=registry, upgrade=True)
    assert read(places.project) == {X: B, Y: B}


def test_upgrading_what_nobody_has_is_a_mistake(places: LockPlaces) -> None:
    """Exit 2, and nothing is asked."""
    with pytest.raises(UsageError, match='did you mean "serve"'):
        lock(places, wants(places, X, "serve"), upgrade_images=("server",))


def test_upgrading_all_of_a_project_includes_what_only_its_lock_holds(places: LockPlaces) -> None:
    """The pin of a shipped profile in the project's lock follows too, but not when profiles are named."""
    registry = FakeRegistry(tags={X: B, Y: B})

    write(places.project, pin(X), pin(Y))
    lock(places, wants(places, X), registry=registry, upgrade=True)
    assert read(places.project) == {X: B, Y: A}
    lock(places, wants(places, X), registry=registry, upgrade=True, used={X, Y})
    assert read(places.project) == {X: B, Y: B}


def test_what_no_profile_uses_is_dropped_only_without_names(places: LockPlaces) -> None:
    """A named profile never drops another's pin."""
    write(places.project, pin(X), pin(Y), pin(Z))

    assert kinds(lock(places, wants(places, X))) == {X: "kept", Y: "kept", Z: "kept"}
    report = lock(places, wants(places, X), used={X, Z})

    assert kinds(report) == {X: "kept", Y: "removed", Z: "kept"}
    assert read(places.project) == {X: A, Z: A}


def test_a_dry_run_shows_and_writes_nothing(places: LockPlaces) -> None:
    """It asks, though: else there would be nothing to show."""
    registry = FakeRegistry(tags={X: A})

    report = lock(places, wants(places, X), registry=registry, dry_run=True)

    assert (kinds(report), report.files[0].written) == ({X: "added"}, False)
    assert not places.project.exists()


def test_partial_failure_writes_nothing_and_names_every_failure(places: LockPlaces) -> None:
    """All or nothing; the class that outranks the others decides."""
    registry = FakeRegistry(
        tags={X: A}, failures={Z: RegistryUnavailable("z is down", hint="wait")}
    )
    before = write(places.project, pin("docker.io/team/old:1")).read_bytes()

    with pytest.raises(ImageGone) as caught:
        lock(places, *(wants(places, ref, ref[-3]) for ref in (X, Y, Z)), registry=registry)

    assert caught.value.message == "2 of 3 images could not be locked; nothing was written"
    assert (f"the registry has no {Y}", "z is down") == caught.value.details
    assert before == places.project.read_bytes()


def test_a_moving_tag_is_warned_about_or_refused(places: LockPlaces) -> None:
    """Refused before anybody is asked."""
    moving = "docker.io/team/x:latest"

    report = lock(places, wants(places, moving), registry=FakeRegistry(tags={moving: A}))
    assert "moving tag" in report.warnings[0]
    with pytest.raises(PlanRefused):
        lock(places, wants(places, moving, moving_tags="refuse"))


def test_the_wrong_platform_is_refused_at_the_lock(places: LockPlaces) -> None:
    """Not on the day of the launch."""
    registry = FakeRegistry(tags={X: A}, platforms=("linux/arm64",))

    with pytest.raises(PlatformMismatch, match="it has linux/arm64"):
        lock(places, wants(places, X), registry=registry)


def test_platforms_that_are_not_told_are_unknown(places: LockPlaces) -> None:
    """Engines tell none for a single OCI manifest: nothing is invented."""
    lock(places, wants(places, X), registry=FakeRegistry(tags={X: A}, platforms=None))

    assert "platforms" not in places.project.read_text()


def test_another_platform_is_looked_up_at_the_locked_digest(places: LockPlaces) -> None:
    """A change of platform is no upgrade."""
    write(places.project, pin(X, A, image_id=C))
    registry = FakeRegistry(tags={X: B}, platforms=("linux/amd64", "linux/arm64"))

    lock(places, wants(places, X, platform="linux/arm64"), registry=registry)

    (image,) = parse_lock(places.project.read_text(), "x").images
    assert (image.digest, image.platform, image.image_id) == (A, "linux/arm64", None)
    assert [f"docker.io/team/x@{A}"] == registry.asked


def test_a_digest_in_the_profile_is_locked_as_it_is(places: LockPlaces) -> None:
    """Whatever the tag beside it says now; an answer with another digest is refused."""
    ref = f"docker.io/team/x:1@{A}"
    registry = FakeRegistry(tags={X: B})

    lock(places, wants(places, ref), registry=registry)
    lock(places, wants(places, ref), upgrade=True)

    assert {ref: A} == read(places.project)


def test_an_answer_for_another_digest_is_refused(places: LockPlaces) -> None:
    """The digest in the reference is a claim to be kept."""

    class Liar(FakeRegistry):
        def resolve(self, reference: str, timeout_seconds: float) -> Any:  # noqa: ARG002
            return super().resolve(X, timeout_seconds)

    with pytest.raises(DigestMismatch):
        lock(places, wants(places, f"docker.io/team/x:1@{A}"), registry=Liar(tags={X: B}))


def test_a_rate_limited_registry_is_not_asked_again(places: LockPlaces) -> None:
    """The others are; every image says why it is missing."""
    first, *rest = (f"docker.io/team/n{number}:1" for number in range(5))
    other = "ghcr.io/team/x:1"
    registry = FakeRegistry(
        tags={other: A, **dict.fromkeys(rest, A)},
        failures={first: RateLimited("docker.io has had too many", hint="wait")},
    )

    with pytest.raises(RateLimited) as caught:
        lock(
            places,
            *(wants(places, ref, f"p{ref[-3]}") for ref in (first, *rest, other)),
            registry=registry,
            jobs=1,
        )

    assert [first, other] == registry.asked
    assert len(caught.value.details) == 5
    assert f"{rest[0]}: not asked; docker.io has had too many" in caught.value.details


def test_at_most_so_many_are_asked_at_once(places: LockPlaces) -> None:
    """--jobs is a promise to the registry."""
    refs = [f"docker.io/team/n{number:02}:1" for number in range(20)]
    registry = FakeRegistry(tags=dict.fromkeys(refs, A), seconds=0.01)

    lock(places, *(wants(places, ref) for ref in refs), registry=registry, jobs=3)

    assert (len(read(places.project)), 1 < registry.most_at_once <= 3) == (20, True)


def test_same_input_same_bytes(places: LockPlaces, tmp_path: Path) -> None:
    """Whatever order profiles and answers come in."""
    refs = [f"docker.io/team/n{number}:1" for number in range(9)]
    registry = FakeRegistry(tags=dict.fromkeys(refs, A))
    texts = set()
    for order in (refs, refs[::-1], refs[4:] + refs[:4]):
        places.project.unlink(missing_ok=True)
        lock(places, *(wants(places, ref, ref[-4:-2]) for ref in order), registry=registry)
        texts.add(places.project.read_bytes())

    assert len(texts) == 1


CONFIG = {"config": {"Env": ["ROCM_VERSION=7.1.0"], "User": "1000"}}


def test_facts_are_read_without_asking_for_the_tag(places: LockPlaces) -> None:
    """--facts fills in what kept pins lack, and tells where it was read."""
    write(places.project, pin(X, A))
    registry = FakeRegistry(tags={X: B}, configs={A: CONFIG})

    report = lock(places, wants(places, X), registry=registry, facts=True)

    (image,) = parse_lock(places.project.read_text(), "x").images
    assert image.digest == A
    assert image.facts == LockedFacts(
        user="1000", rocm="7.1.0", sources={"user": "config", "rocm": "env:ROCM_VERSION"}
    )
    assert [f"config of docker.io/team/x@{A}"] == registry.asked
    assert report.files[0].changes[0].details == ("image id recorded", "ROCm 7.1.0", "user 1000")


def test_an_upgrade_reads_again_what_the_lock_told(places: LockPlaces) -> None:
    """So that the change of ROCm shows without asking for it."""
    old = LockedFacts(rocm="7.0", sources={"rocm": "tag"})
    write(places.project, pin(X, A, facts=old))
    registry = FakeRegistry(tags={X: B}, configs={B: CONFIG})

    report = lock(places, wants(places, X), registry=registry, upgrade=True)

    assert "ROCm 7.0 -> 7.1.0" in report.files[0].changes[0].details


def test_facts_of_an_old_digest_never_stay_with_a_new_one(places: LockPlaces) -> None:
    """Where they cannot be read again they go, with a warning; where they were asked for it is a failure."""
    write(places.project, pin(X, A, facts=LockedFacts(rocm="7.0")))
    failures = {f"docker.io/team/x@{B}": RegistryUnavailable("down")}
    registry = FakeRegistry(tags={X: B}, failures=failures)

    with pytest.raises(RegistryUnavailable):
        lock(places, wants(places, X), registry=registry, upgrade=True, facts=True)
    report = lock(places, wants(places, X), registry=registry, upgrade=True)

    (image,) = parse_lock(places.project.read_text(), "x").images
    assert (image.digest, image.facts) == (B, None)
    assert "could not be read again: down" in report.warnings[0]


def test_an_upgrade_to_the_same_digest_keeps_what_was_known(places: LockPlaces) -> None:
    """An engine tells less than a registry: the file does not flap between the two."""
    known = pin(X, A, image_id=C, media_type="a/b", platforms=("linux/amd64",))
    before = write(places.project, known).read_bytes()

    report = lock(places, wants(places, X), registry=FakeRegistry(tags={X: A}), upgrade=True)

    assert ({X: "kept"}, before) == (kinds(report), places.project.read_bytes())


def local_image(**fields: Any) -> ImageFacts:
    return ImageFacts(image_id=C, env=(("ROCM_VERSION", "7.3"),), **fields)


def test_facts_of_an_image_built_here_come_from_its_history_too(places: LockPlaces) -> None:
    """The last step that names an argument wins, as in the registry's own config."""
    steps = ("ARG PYTHON_VERSION=3.10", "RUN |1 PYTHON_VERSION=3.12 /bin/sh -c true")
    registry = FakeRegistry(
        failures={X: ImageGone("not there")}, images={X: local_image()}, histories={C: steps}
    )

    lock(places, wants(places, X), registry=registry, facts=True)

    facts = parse_lock(places.project.read_text(), "x").images[0].facts
    assert facts == LockedFacts(
        rocm="7.3",
        python="3.12",
        sources={"rocm": "env:ROCM_VERSION", "python": "history:PYTHON_VERSION"},
    )


@pytest.mark.parametrize(
    "failure", [ImageGone("not there"), RegistryDenied("does not exist, or wants a login")]
)
def test_an_image_built_here_is_locked_by_its_id(
    places: LockPlaces, failure: ImageGone | RegistryDenied
) -> None:
    """With the warning that nobody else has it."""
    registry = FakeRegistry(failures={X: failure}, images={X: local_image()})

    report = lock(places, wants(places, X), registry=registry, facts=True)

    (image,) = parse_lock(places.project.read_text(), "x").images
    assert (image.source, image.digest, image.image_id) == ("local", None, C)
    assert image.facts is not None
    assert image.facts.rocm == "7.3"
    assert "cannot be reproduced elsewhere" in report.warnings[0]


def test_an_image_that_once_came_from_a_registry_is_not_local(places: LockPlaces) -> None:
    """It is gone upstream, which is another thing to say."""
    registry = FakeRegistry(images={X: local_image(repo_digests=(f"team/x@{A}",))})

    with pytest.raises(ImageGone):
        lock(places, wants(places, X), registry=registry)


@pytest.mark.parametrize("name", [f"team/other@{A}", "<none>@<none>"])
def test_digests_of_other_repositories_say_nothing(places: LockPlaces, name: str) -> None:
    """An image that was only named anew here is local under that name."""
    registry = FakeRegistry(images={X: local_image(repo_digests=(name,))})

    assert kinds(lock(places, wants(places, X), registry=registry)) == {X: "added"}


def test_a_registry_that_does_not_answer_makes_no_image_local(places: LockPlaces) -> None:
    """Being offline for a moment must not change what is committed."""
    registry = FakeRegistry(failures={X: RegistryUnavailable("down")}, images={X: local_image()})

    with pytest.raises(RegistryUnavailable):
        lock(places, wants(places, X), registry=registry)


def test_localhost_without_a_registry_names_what_is_built_here(places: LockPlaces) -> None:
    """On this machine's own addresses, nobody who answers is nobody who has it."""
    here = "localhost/team/x:1"
    registry = FakeRegistry(
        failures={here: RegistryUnavailable("refused")}, images={here: local_image()}
    )

    lock(places, wants(places, here), registry=registry)

    (image,) = parse_lock(places.project.read_text(), "x").images
    assert (image.source, image.image_id) == ("local", C)


def test_localhost_without_a_registry_or_an_image_says_both(places: LockPlaces) -> None:
    """Which of the two was meant, only the user knows."""
    here = "localhost/team/x:1"
    registry = FakeRegistry(failures={here: RegistryUnavailable("localhost does not answer")})

    with pytest.raises(RegistryUnavailable, match="no image on this machine is called") as caught:
        lock(places, wants(places, here), registry=registry)
    assert caught.value.hint == "start that registry, or build or load the image"
    without = Sources(resolver=registry)
    with pytest.raises(RegistryUnavailable) as caught:
        lock(places, wants(places, here), registry=lambda *_: without)
    assert "--resolver engine" in (caught.value.hint or "")


def test_a_local_image_for_another_platform_is_refused(places: LockPlaces) -> None:
    """As any other."""
    registry = FakeRegistry(images={X: local_image(architecture="arm64")})

    with pytest.raises(PlatformMismatch):
        lock(places, wants(places, X), registry=registry)


def test_a_rebuilt_local_image_is_a_change_on_upgrade(places: LockPlaces) -> None:
    """Its id is its identity."""
    write(places.project, PinnedImage(ref=X, image_id=B, source="local"))
    registry = FakeRegistry(images={X: local_image()})

    report = lock(places, wants(places, X), registry=registry, upgrade=True)

    assert kinds(report) == {X: "changed"}


def shipped(places: LockPlaces, ref: str = X) -> ProfileReference:
    path = places.shipped.parent / "profiles" / "base.toml"
    return wants(places, ref, "base", origin="shipped", path=path)


def test_what_another_lock_provides_is_not_asked_for(places: LockPlaces) -> None:
    """A shipped profile whose digest is published needs no lock of one's own; the report says which lock it is."""
    write(places.shipped, pin(X))

    report = lock(places, shipped(places))

    (file,) = report.files
    assert [(X, str(places.shipped))] == [(i.pin.ref, i.path) for i in file.inherited]
    assert not places.project.exists()


def test_an_upgrade_of_a_shipped_pin_is_written_to_the_projects_lock(places: LockPlaces) -> None:
    """The shipped lock is never written."""
    before = write(places.shipped, pin(X)).read_bytes()

    report = lock(places, shipped(places), registry=FakeRegistry(tags={X: B}), upgrade=True)

    assert read(places.project) == {X: B}
    assert before == places.shipped.read_bytes()
    assert report.files[0].inherited == ()


def test_profiles_of_two_places_are_written_to_two_locks(places: LockPlaces) -> None:
    """All resolved before any is written; one image in both is asked for once."""
    user = places.user.parent / "profiles" / "mine.toml"
    mine = wants(places, X, "mine", origin="user", path=user)
    registry = FakeRegistry(tags={X: A, Y: B})

    lock(places, wants(places, X), mine, wants(places, Y, "q"), registry=registry)

    assert (read(places.project), read(places.user)) == ({X: A, Y: B}, {X: A})
    assert sorted(registry.asked) == [X, Y]


def test_mode_and_symlink_stay(places: LockPlaces, tmp_path: Path) -> None:
    """The lock may be a link into another repository."""
    real = write(tmp_path / "elsewhere" / "shared.lock", pin(X))
    real.chmod(0o600)
    places.project.symlink_to(real)

    lock(places, wants(places, Y), registry=FakeRegistry(tags={Y: B}))

    assert places.project.is_symlink()
    assert read(real) == {X: A, Y: B}
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert [real] == list(real.parent.iterdir())


def test_an_unreadable_lock_is_neither_used_nor_overwritten(places: LockPlaces) -> None:
    """Merge markers are for people to resolve."""
    places.project.write_text("<<<<<<< HEAD\nversion = 1\n")

    with pytest.raises(LockUnreadable, match="merge-conflict"):
        lock(places, wants(places, X))
    assert places.project.read_text().startswith("<<<<<<<")


def test_a_lock_that_cannot_be_written_says_where(places: LockPlaces) -> None:
    """For instance because a file stands where its directory should be."""
    places.user.parent.write_text("")
    reference = wants(
        places, X, origin="user", path=places.user.parent.parent / "user" / "profiles" / "p.toml"
    )

    with pytest.raises(LockUnwritable, match="user"):
        lock(places, reference, registry=FakeRegistry(tags={X: A}))


def test_a_hand_edited_order_is_put_right_without_asking(places: LockPlaces) -> None:
    """The bytes follow from the pins alone."""
    text = Lock.of([pin(X), pin(Y)]).text()
    head, x, y = text.split("[[image]]")
    places.project.write_text(f"{head}[[image]]{y}\n[[image]]{x}")

    report = lock(places, wants(places, X))

    assert report.files[0].written
    assert text == places.project.read_text()


class Meanwhile(FakeRegistry):
    """Another process writes the lock while this one waits for an answer."""

    path: Path
    pins: tuple[PinnedImage, ...]

    def resolve(self, reference: str, timeout_seconds: float) -> Any:
        write(self.path, *self.pins)
        return super().resolve(reference, timeout_seconds)


def test_what_another_process_wrote_meanwhile_survives(places: LockPlaces) -> None:
    """Both changes are in the file."""
    write(places.project, pin(X))
    registry = Meanwhile(tags={Y: B})
    registry.path, registry.pins = places.project, (pin(X, C), pin(Z))

    lock(places, wants(places, Y), registry=registry)

    assert read(places.project) == {X: C, Y: B, Z: A}


def test_another_answer_for_the_same_image_meanwhile_is_a_conflict(places: LockPlaces) -> None:
    """Nobody's pin is overwritten without a word."""
    registry = Meanwhile(tags={Y: B})
    registry.path, registry.pins = places.project, (pin(Y, C),)

    with pytest.raises(LockBusy, match="meanwhile"):
        lock(places, wants(places, Y), registry=registry)
    assert read(places.project) == {Y: C}


def _lock_in_a_process(places: LockPlaces, name: str, start: Any) -> None:
    start.wait(30)
    for number in range(15):
        ref = f"docker.io/team/{name}{number}:1"
        lock(places, wants(places, ref), registry=FakeRegistry(tags={ref: A}))


def test_processes_at_once_lose_no_entry(places: LockPlaces) -> None:
    """Three that each add fifteen images leave forty-five."""
    context = multiprocessing.get_context("fork")
    start = context.Event()
    processes = [
        context.Process(target=_lock_in_a_process, args=(places, name, start)) for name in "abc"
    ]
    for process in processes:
        process.start()
    start.set()
    for process in processes:
        process.join(120)

    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(read(places.project)) == 45
    assert {"profiles", "rocmrun.lock"} == {p.name for p in places.project.parent.iterdir()}


def test_the_name_for_other_tools(places: LockPlaces) -> None:
    """By profile or by reference in any spelling; nothing is asked."""
    write(places.project, pin(X))
    selection = Selection(references=(wants(places, X, "serve"),))

    for name in ("serve", "team/x:1", X):
        assert f"docker.io/team/x@{A}" == pull_name(name, selection, places=places)
    with pytest.raises(LockMissing, match="is not locked"):
        pull_name("team/y:1", Selection(references=()), places=places)


def test_the_reference_of_an_answer_is_the_one_asked_for(places: LockPlaces) -> None:
    """References stay canonical in the file, whatever profiles write."""
    lock(
        places,
        wants(places, parse_reference("team/x:1").canonical),
        registry=FakeRegistry(tags={X: A}),
    )

    assert list(read(places.project)) == [X]
    assert lock(places, wants(places, X)).files[0].changes[0].kind == ChangeKind.KEPT


KEY, PERSON = SignatureRule(key="/team.pub"), SignatureRule(identity="me", issuer="https://i")


@dataclass
class Signatures:
    """Signatures of digests, and what was asked of them."""

    signed: set[str | None] = field(default_factory=set)
    asked: list[tuple[str, SignatureRule]] = field(default_factory=list)

    def __call__(self, pin: PinnedImage, rule: SignatureRule) -> VerifiedSignature:
        self.asked.append((pin.pull_reference, rule))
        if pin.digest not in self.signed:
            msg = f"{pin.ref} is not signed"
            raise SignatureUnverified(msg)
        return VerifiedSignature.of(pin.pull_reference, rule, key=None, verified_at="T")


def test_a_new_pin_is_verified_by_every_rule_once(places: LockPlaces) -> None:
    """Two profiles with one key and one with another: two questions, of the digest."""
    registry, signatures = FakeRegistry(tags={X: A, Y: B}), Signatures(signed={A})
    asked = (
        wants(places, X, "p", rule=KEY),
        wants(places, X, "q", rule=KEY),
        wants(places, X, "r", rule=PERSON),
        wants(places, Y, "s"),
    )

    report = lock(places, *asked, registry=registry, verify=signatures)

    name = f"docker.io/team/x@{A}"
    assert {(name, KEY), (name, PERSON)} == set(signatures.asked)
    assert len(signatures.asked) == 2
    assert [name, name] == [signature.reference for signature in report.verified]
    assert read(places.project) == {X: A, Y: B}


def test_without_its_signature_nothing_is_written(places: LockPlaces) -> None:
    """And every image without one is named."""
    write(places.project, pin(X, A))
    registry = FakeRegistry(tags={X: B, Y: C, Z: C})
    asked = [wants(places, ref, ref[-3], rule=KEY) for ref in (X, Y, Z)]

    with pytest.raises(SignatureUnverified) as caught:
        lock(places, *asked, registry=registry, upgrade=True, verify=Signatures(signed={B}))

    assert caught.value.details == tuple(f"{ref} is not signed" for ref in (Y, Z))
    assert read(places.project) == {X: A}


def test_a_pin_that_stays_is_not_verified_again(places: LockPlaces) -> None:
    """An unchanged lock asks nobody; launch verifies what it starts."""
    write(places.project, pin(X, A))
    signatures = Signatures()

    report = lock(places, wants(places, X, rule=KEY), verify=signatures)

    assert (signatures.asked, report.verified) == ([], ())


def measuring(**facts: Any) -> Callable[[str], LockedFacts | None]:
    """Return what knows of a probe of image A."""
    found = LockedFacts(**facts, sources=dict.fromkeys(facts, "probe"))
    return lambda image: found if image == A else None


def test_what_a_probe_measured_is_recorded_without_asking(places: LockPlaces) -> None:
    """For the very digest that was probed, and only where facts are wanted; a claim gives way to it."""
    claimed = LockedFacts(torch="2.9", python="3.12", sources={"torch": "tag", "python": "tag"})
    write(places.project, pin(X, A, facts=claimed), pin(Y, B, facts=claimed))
    asked = [wants(places, X), wants(places, Y, "q")]
    probe = measuring(torch="2.9.1+rocm7.2", gfx=("gfx942",))

    assert kinds(lock(places, *asked, measured=probe)) == {X: "kept", Y: "kept"}
    report = lock(places, *asked, measured=probe, facts=True)
    again = lock(places, *asked, measured=probe, facts=True)

    assert (kinds(report), report.asked) == ({X: "updated", Y: "kept"}, 0)
    assert kinds(again) == {X: "kept", Y: "kept"}
    facts = parse_lock(places.project.read_text(), "x").images[0].facts
    assert facts == LockedFacts(
        torch="2.9.1+rocm7.2",
        python="3.12",
        gfx=("gfx942",),
        sources={"torch": "probe", "python": "tag", "gfx": "probe"},
    )


def test_what_was_measured_in_an_image_that_no_profile_of_the_run_asks_for_is_left_alone(
    places: LockPlaces,
) -> None:
    write(places.project, pin(X, A), pin(Y, B, facts=LockedFacts(rocm="7")))

    report = lock(places, wants(places, Y), measured=measuring(torch="2.9"), facts=True)

    assert kinds(report) == {X: "kept", Y: "kept"}


def test_what_an_answer_is_worth_saying_is_said_once(places: LockPlaces) -> None:
    """However many images it is about."""

    class Talkative(FakeRegistry):
        def resolve(self, reference: str, timeout_seconds: float) -> Resolved:
            found = super().resolve(reference, timeout_seconds)
            return replace(found, warning="asked without a login")

    registry = Talkative(tags={X: A, Y: B})

    report = lock(places, wants(places, X), wants(places, Y, "q"), registry=registry)

    assert report.warnings == ("asked without a login",)
