"""What a check finds, and which finding decides the exit code."""

from typing import Any

import pytest

from rocmrun.core.lock import Lock, PinnedImage, Resolved
from rocmrun.core.lock_changes import Wanted
from rocmrun.core.lock_check import Finding, combine, drift, gone, offline_findings
from rocmrun.core.lock_report import CheckReport
from rocmrun.core.manifest import DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST
from rocmrun.errors import (
    DigestMismatch,
    ImageGone,
    LockMissing,
    LockStale,
    PlanRefused,
    ReferenceInvalid,
    RegistryUnavailable,
    RocmrunError,
    TagMoved,
)

A, B = (f"sha256:{letter * 64}" for letter in "ab")
X, Y = "docker.io/team/x:1", "docker.io/team/y:1"


def pin(ref: str = X, **fields: Any) -> PinnedImage:
    return PinnedImage(**{"ref": ref, "digest": A, **fields})


def wanted(ref: str = X, *profiles: str, platform: str = "linux/amd64") -> Wanted:
    return Wanted(ref=ref, platform=platform, profiles=profiles or ("p",))


def messages(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(type(finding.error).__name__, finding.error.message) for finding in findings]


def test_agreement_is_no_finding() -> None:
    """Every reference locked, for its platform, and nothing else there."""
    assert offline_findings(Lock.of([pin()]), "f", [wanted()], {X}) == ()


def test_no_file_is_not_a_stale_file() -> None:
    """Who has no lock is told so, with the command that makes one."""
    (finding,) = offline_findings(None, "here/rocmrun.lock", [wanted(X, "a"), wanted(Y, "b")], None)

    assert messages((finding,))[0] == ("LockMissing", "there is no here/rocmrun.lock")
    assert finding.error.hint == "rocmrun lock a b"
    assert offline_findings(None, "f", [], set()) == ()


def test_missing_changed_and_extra_are_one_line_each() -> None:
    """Sorted by reference."""
    lock = Lock.of([pin(X), pin("docker.io/team/extra:1")])

    found = offline_findings(
        lock, "f", [wanted(X, "a", platform="linux/arm64"), wanted(Y, "b", "c")], {X, Y}
    )

    assert [
        ("LockStale", "extra: docker.io/team/extra:1 is locked, and no profile uses it"),
        (
            "LockStale",
            f"changed: {X} (profile a) is locked for linux/amd64, and linux/arm64 is asked for",
        ),
        ("LockMissing", f"missing: {Y} (profile b, c) is not locked"),
    ] == messages(found)


def test_others_pins_are_not_extra_when_profiles_were_named() -> None:
    """A check of one profile is about that one."""
    assert offline_findings(Lock.of([pin(X), pin(Y)]), "f", [wanted(X)], None) == ()


def test_a_moved_tag_says_from_what_to_what_and_how_to_follow() -> None:
    """Short digests, and whether the old one can still be had."""
    moved = drift(pin(), Resolved(digest=B), still_there=True)

    assert isinstance(moved, TagMoved)
    assert (
        f"{X} moved: aaaaaaaaaaaa -> bbbbbbbbbbbb; the locked digest is still there"
        == moved.message
    )
    assert moved.hint == "review it, then: rocmrun lock --upgrade-image team/x:1"


def test_a_moved_tag_whose_digest_is_gone_is_gone() -> None:
    """Then it says how to keep the copy that may be left."""
    error = drift(pin(), Resolved(digest=B), still_there=False)

    assert isinstance(error, ImageGone)
    assert f"docker tag docker.io/team/x@{A} YOUR-REGISTRY/x:aaaaaaaaaaaa" in (error.hint or "")


def test_unknown_is_said() -> None:
    """Not being able to ask is neither there nor gone."""
    assert "could not be asked" in drift(pin(), Resolved(digest=B), still_there=None).message


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (OCI_MANIFEST, OCI_INDEX, "(an index now)"),
        (OCI_INDEX, DOCKER_MANIFEST, "(a single image now)"),
    ],
)
def test_an_index_is_told_from_a_manifest(before: str, now: str, says: str) -> None:
    """A digest alone does not say which of the two it is."""
    error = drift(pin(media_type=before), Resolved(digest=B, media_type=now), still_there=True)

    assert says in error.message


@pytest.mark.parametrize(
    ("still_there", "says"), [(True, "still there"), (False, "gone too"), (None, "not be asked")]
)
def test_a_deleted_tag(*, still_there: bool | None, says: str) -> None:
    """Gone in every case; what is left of it differs."""
    error = gone(pin(), still_there=still_there)

    assert says in error.message
    assert isinstance(error, ImageGone)


ERRORS: list[RocmrunError] = [
    ReferenceInvalid("2"),
    DigestMismatch("7"),
    LockStale("3"),
    ImageGone("5"),
    TagMoved("4"),
    RegistryUnavailable("6"),
    PlanRefused("10"),
]


@pytest.mark.parametrize("first", range(len(ERRORS)))
def test_a_certain_finding_outranks_could_not_tell(first: int) -> None:
    """2 > 7 > 3 > 5 > 4 > 6, whatever order they were found in; all are listed."""
    errors = ERRORS[first:]

    combined = combine(list(reversed(errors)), "several")

    assert type(errors[0]) is type(combined)
    if len(errors) > 1:
        assert combined.message == "several"
        assert tuple(error.message for error in errors) == combined.details


def test_one_error_stays_itself() -> None:
    """With its own message and hint."""
    error = TagMoved("x", hint="y")

    assert combine([error], "several") is error


def test_hints_of_the_deciding_class_are_kept_once() -> None:
    """Several of the same kind share a hint."""
    errors = [LockMissing("a", hint="h"), LockMissing("b", hint="h"), TagMoved("c", hint="i")]

    assert combine(errors, "several").hint == "h"


def test_a_report_fails_with_the_deciding_finding() -> None:
    """And is no failure without findings."""
    findings = tuple(Finding(ref=X, error=error) for error in (TagMoved("a"), LockStale("b")))

    failure = CheckReport(paths=("f",), findings=findings).failure

    assert isinstance(failure, LockStale)
    assert failure.message == "the check found 2 things wrong"
    assert CheckReport(paths=("f",)).failure is None
