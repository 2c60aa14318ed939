"""`rocmrun lock --check`: profiles against locks, then tags against their registries."""

from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.core.lock_report import CheckReport
from rocmrun.core.signature import SignatureRule, VerifiedSignature
from rocmrun.errors import PlanRefused, RateLimited, RegistryUnavailable, SignatureUnverified
from rocmrun.usecases.lock_check import check_locks
from rocmrun.usecases.lock_selection import ProfileReference, Selection
from rocmrun.usecases.locks import LockPlaces
from rocmrun.usecases.signatures import Verify, verify_again
from tests.registries import FakeRegistry, digest, no_sources

X, Y, Z = (f"docker.io/team/{letter}:1" for letter in "xyz")
A, B = digest("a"), digest("b")


@pytest.fixture
def places(tmp_path: Path) -> LockPlaces:
    (tmp_path / "profiles").mkdir()
    return LockPlaces(
        option=None,
        project=tmp_path / "rocmrun.lock",
        user=tmp_path / "user" / "rocmrun.lock",
        system=tmp_path / "system" / "rocmrun.lock",
        shipped=tmp_path / "shipped" / "rocmrun.lock",
    )


def wants(places: LockPlaces, ref: str, **fields: Any) -> ProfileReference:
    values = {
        "profile": "p",
        "ref": ref,
        "platform": "linux/amd64",
        "moving_tags": "warn",
        "origin": "project",
        "path": places.project.parent / "profiles" / "p.toml",
    }
    return ProfileReference(**{**values, **fields})


def check(
    places: LockPlaces,
    *references: ProfileReference,
    registry: FakeRegistry | None = None,
    used: set[str] | None = None,
    verify: Verify = verify_again,
) -> CheckReport:
    return check_locks(
        Selection(references=references, used=None if used is None else frozenset(used)),
        places=places,
        open_sources=registry.opener() if registry else None,
        jobs=2,
        timeout_seconds=1,
        verify=verify,
    )


def locked(places: LockPlaces, *pins: PinnedImage) -> None:
    places.project.write_text(Lock.of(pins).text())


def pin(ref: str, found: str | None = A, **fields: Any) -> PinnedImage:
    return PinnedImage(ref=ref, digest=found, **fields)


def codes(report: CheckReport) -> dict[str, int]:
    return {finding.ref: finding.error.exit_code for finding in report.findings}


def code(report: CheckReport) -> int:
    return report.failure.exit_code if report.failure else 0


def test_all_is_well(places: LockPlaces) -> None:
    """Nothing found, and what was looked at is told."""
    locked(places, pin(X), pin(Y))

    report = check(
        places, wants(places, X), wants(places, Y), registry=FakeRegistry(tags={X: A, Y: A})
    )

    assert ((X, Y), (str(places.project),), None) == (report.checked, report.paths, report.failure)


def test_offline_asks_nobody(places: LockPlaces) -> None:
    """Missing, extra and changed are found without a network."""
    locked(places, pin(X), pin(Z))

    report = check(places, wants(places, X), wants(places, Y), used={X, Y})

    assert (codes(report), code(report), report.offline) == ({Y: 3, Z: 3}, 3, True)


def test_an_unreadable_or_missing_lock_is_a_finding(places: LockPlaces) -> None:
    """With its own words each, and exit 3."""
    assert "there is no" in str(check(places, wants(places, X)).failure)
    places.project.write_text("nonsense")
    report = check(places, wants(places, X), registry=FakeRegistry())

    assert (code(report), report.failure and report.failure.slug) == (3, "lock-unreadable")


def test_moved_tags_say_whether_the_old_digest_is_still_there(places: LockPlaces) -> None:
    """4 while it is, 5 when it is not."""
    locked(places, pin(X), pin(Y))
    registry = FakeRegistry(tags={X: B, Y: A})

    report = check(places, wants(places, X), wants(places, Y), registry=registry)
    assert (codes(report), code(report)) == ({X: 4}, 4)
    assert f"docker.io/team/x@{A}" in registry.asked
    assert f"docker.io/team/y@{A}" not in registry.asked

    registry = FakeRegistry(tags={X: B}, lost={A})
    assert check(places, wants(places, X), registry=registry).findings[0].error.exit_code == 5


def test_a_deleted_tag_is_gone_whether_or_not_its_digest_is(places: LockPlaces) -> None:
    """And the difference is said."""
    locked(places, pin(X))

    there = check(places, wants(places, X), registry=FakeRegistry())
    gone = check(places, wants(places, X), registry=FakeRegistry(lost={A}))

    assert (code(there), code(gone)) == (5, 5)
    assert "still there" in there.findings[0].error.message
    assert "gone too" in gone.findings[0].error.message


def test_a_probe_that_cannot_be_made_is_said(places: LockPlaces) -> None:
    """Moved for certain; the rest unknown."""
    locked(places, pin(X))
    failures = {f"docker.io/team/x@{A}": RegistryUnavailable("down")}
    registry = FakeRegistry(tags={X: B}, failures=failures)

    report = check(places, wants(places, X), registry=registry)

    assert code(report) == 4
    assert "could not be asked" in report.findings[0].error.message


def test_precedence(places: LockPlaces) -> None:
    """Stale before gone before moved before unreachable; all listed."""
    names = ("gone", "moved", "down", "missing")
    gone, moved, down, missing = (f"docker.io/team/{name}:1" for name in names)
    locked(places, *(pin(ref) for ref in (gone, moved, down)))
    registry = FakeRegistry(tags={moved: B}, failures={down: RegistryUnavailable("down")})

    everything = check(
        places, *(wants(places, ref) for ref in (gone, moved, down, missing)), registry=registry
    )
    fewer = check(places, wants(places, moved), wants(places, down), registry=registry)

    assert {gone: 5, moved: 4, down: 6, missing: 3} == codes(everything)
    assert (code(everything), code(fewer)) == (3, 4)
    assert everything.failure
    assert len(everything.failure.details) == 4


def test_a_rate_limit_ends_the_questions_to_that_registry(places: LockPlaces) -> None:
    """Each unasked image is a finding of its own: nothing is taken for good."""
    refs = [f"docker.io/team/n{number}:1" for number in range(4)]
    locked(places, *(pin(ref) for ref in refs))
    registry = FakeRegistry(failures=dict.fromkeys(refs, RateLimited("too many")))

    report = check(places, *(wants(places, ref) for ref in refs), registry=registry)

    assert dict.fromkeys(refs, 6) == codes(report)
    assert len(registry.asked) <= 2


def test_a_digest_in_the_profile_counts_whatever_its_tag_says(places: LockPlaces) -> None:
    """That the tag is elsewhere by now is worth a word, and no failure."""
    ref = f"docker.io/team/x:1@{A}"
    locked(places, pin(ref))

    report = check(places, wants(places, ref), registry=FakeRegistry(tags={X: B}))
    untagged = check(places, wants(places, ref), registry=FakeRegistry())
    lost = check(places, wants(places, ref), registry=FakeRegistry(tags={X: A}, lost={A}))

    assert (code(report), code(untagged), code(lost)) == (0, 0, 5)
    assert "is bbbbbbbbbbbb by now" in report.warnings[0]
    assert untagged.warnings == ()


def test_a_digest_without_a_tag_cannot_drift(places: LockPlaces) -> None:
    """It can only be lost."""
    ref = f"docker.io/team/x@{A}"
    locked(places, pin(ref))
    registry = FakeRegistry()

    assert code(check(places, wants(places, ref), registry=registry)) == 0
    assert [ref] == registry.asked


def test_local_images_are_asked_of_nobody(places: LockPlaces) -> None:
    """No registry has them."""
    places.project.write_text(Lock.of([PinnedImage(ref=X, image_id=A, source="local")]).text())

    report = check_locks(
        Selection(references=(wants(places, X),)), places=places, open_sources=no_sources
    )

    assert (report.checked, report.failure) == ((X,), None)


def test_a_moving_tag_is_refused_where_the_profile_says_so(places: LockPlaces) -> None:
    """The check is where CI sees it."""
    moving = "docker.io/team/x:latest"
    locked(places, pin(moving))

    assert "moving tag" in check(places, wants(places, moving)).warnings[0]
    with pytest.raises(PlanRefused):
        check(places, wants(places, moving, moving_tags="refuse"))


def test_the_shipped_lock_answers_too(places: LockPlaces) -> None:
    """As it does at launch."""
    places.shipped.parent.mkdir()
    places.shipped.write_text(Lock.of([pin(X)]).text())
    path = places.shipped.parent / "profiles" / "p.toml"

    report = check(places, wants(places, X, origin="shipped", path=path), used={X})

    assert (report.checked, report.failure) == ((X,), None)


def test_signatures_are_part_of_a_check(places: LockPlaces) -> None:
    """Of the locked digest, also where the tag has moved; not without a network."""
    locked(places, pin(X, A), pin(Y, A), pin(Z, None, source="local", image_id=B))
    registry = FakeRegistry(tags={X: B, Y: A})
    rule = SignatureRule(key="/team.pub")
    asked = [wants(places, ref, rule=rule) for ref in (X, Y, Z)]

    def verify(pin: PinnedImage, rule: SignatureRule) -> VerifiedSignature:
        if pin.ref != Y:
            msg = f"{pin.ref} is not signed"
            raise SignatureUnverified(msg)
        return VerifiedSignature.of(pin.pull_reference, rule, key=None, verified_at="T")

    report = check(places, *asked, registry=registry, verify=verify)

    found = [(finding.ref, finding.error.slug) for finding in report.findings]
    unsigned = "signature-unverified"
    assert [(X, "tag-moved"), (X, unsigned), (Z, unsigned)] == found
    assert [f"docker.io/team/y@{A}"] == [signature.reference for signature in report.verified]
    assert code(report) == 7
    assert code(check(places, *asked, verify=verify)) == 0
