"""What a lock must ask, what changed, and how two writers' changes go together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.lock import Lock, LockedFacts, PinnedImage
from rocmrun.core.lock_changes import (
    Change,
    ChangeKind,
    Question,
    Wanted,
    apply_answers,
    changes,
    merge,
    merge_wanted,
    moving_tag_warnings,
    pin_label,
    questions,
    select_upgrades,
)
from rocmrun.core.reference import parse_reference
from rocmrun.errors import LockBusy, PlanRefused, ProfileInvalid, UsageError

A, B, C = (f"sha256:{letter * 64}" for letter in "abc")
X, Y, Z = (f"docker.io/team/{letter}:1" for letter in "xyz")


def pin(ref: str = X, **fields: Any) -> PinnedImage:
    return PinnedImage(**{"ref": ref, "digest": A, **fields})


def wanted(ref: str = X, *profiles: str, **fields: Any) -> Wanted:
    return Wanted(
        **{"ref": ref, "platform": "linux/amd64", "profiles": profiles or ("p",), **fields}
    )


def ask(
    lock: Lock, *items: Wanted, upgrade: set[str] | None = None, facts: bool = False
) -> list[str]:
    """Return each question as "ref" or "ref at digest" or "ref facts"."""
    found = questions(lock, items, upgrade=upgrade or set(), facts=facts)
    return [
        f"{q.ref} {'facts' if q.at is None else q.at.digest or 'tag'}".removesuffix(" tag")
        for q in found
    ]


def test_one_image_is_wanted_once_and_the_stricter_rule_counts() -> None:
    """However many profiles ask."""
    merged = merge_wanted(
        [wanted(Y, "b"), wanted(X, "c"), wanted(X, "a", moving_tags="refuse"), wanted(X, "d")]
    )

    assert merged == (wanted(X, "a", "c", "d", moving_tags="refuse"), wanted(Y, "b"))


def test_two_platforms_of_one_reference_are_a_mistake_in_the_profiles() -> None:
    """The lock has one entry a reference; both profiles are named."""
    with pytest.raises(ProfileInvalid) as caught:
        merge_wanted([wanted(X, "a"), wanted(X, "b", platform="linux/arm64")])

    assert caught.value.details == ("a: linux/amd64", "b: linux/arm64")


def test_moving_tags_are_warned_about_or_refused() -> None:
    """As the profile says; versioned tags are neither."""
    moving = "docker.io/a/b:latest"

    (warning,) = moving_tag_warnings([wanted(X), wanted(moving)])
    with pytest.raises(PlanRefused) as caught:
        moving_tag_warnings([wanted(X), wanted(moving, "prod", moving_tags="refuse")])

    assert warning.startswith(f"{moving} is a moving tag")
    assert (f"prod: {moving}",) == caught.value.details
    assert moving_tag_warnings([wanted(X, moving_tags="refuse")]) == ()


def test_nothing_is_asked_when_everything_is_locked() -> None:
    """So an unchanged lock needs no network."""
    assert ask(Lock.of([pin(X), pin(Y)]), wanted(X), wanted(Y)) == []


def test_only_what_is_new_is_asked() -> None:
    """Existing pins stay."""
    assert ask(Lock.of([pin(X)]), wanted(X), wanted(Y)) == [Y]


def test_upgrades_are_asked_by_tag_also_when_no_profile_of_this_run_wants_them() -> None:
    """--upgrade-image may name what is only in the lock."""
    lock = Lock.of([pin(X), pin(Y, platform="linux/arm64"), pin(Z)])

    found = questions(lock, [wanted(X)], upgrade={X, Y}, facts=False)

    assert [
        Question(ref=X, platform="linux/amd64", at=parse_reference(X)),
        Question(ref=Y, platform="linux/arm64", at=parse_reference(Y)),
    ] == list(found)


def test_a_digest_in_a_reference_is_never_upgraded() -> None:
    """It is a claim; only a change of the profile changes it."""
    ref = f"docker.io/a/b:t@{A}"

    assert ask(Lock.of([pin(ref)]), wanted(ref), upgrade={ref}) == []
    assert [f"{ref} {A}"] == ask(Lock(), wanted(ref))


def test_another_platform_is_asked_at_the_locked_digest() -> None:
    """A changed platform is no upgrade of the tag."""
    lock = Lock.of([pin(X)])

    assert [f"{X} {A}"] == ask(lock, wanted(X, platform="linux/arm64"))


def test_another_platform_of_a_local_image_is_asked_by_name() -> None:
    """It has no digest to ask at."""
    local = PinnedImage(ref=X, image_id=B, source="local")

    assert ask(Lock.of([local]), wanted(X, platform="linux/arm64")) == [X]


def test_facts_are_asked_where_they_are_missing() -> None:
    """Without asking for the tag again."""
    lock = Lock.of([pin(X), pin(Y, facts=LockedFacts(rocm="7"))])

    assert [f"{X} facts"] == ask(lock, wanted(X), wanted(Y), facts=True)


def test_upgrade_names_are_profiles_or_references() -> None:
    """In any spelling of the reference; a near miss is named."""
    items = [wanted(X, "serve"), wanted(Y, "train")]

    assert {X} == select_upgrades(["serve"], items, [])
    assert {X, Z} == select_upgrades(["team/x:1", Z], items, [Z])
    # A profile may name a second image, which its probe runs in.
    assert {X, Z} == select_upgrades(["serve"], [*items, wanted(Z, "serve")], [])
    with pytest.raises(UsageError, match='did you mean "serve"'):
        select_upgrades(["serv"], items, [])
    with pytest.raises(UsageError, match="NOT A REF"):
        select_upgrades(["NOT A REF"], items, [])


def test_answers_replace_and_complete_and_the_unused_goes() -> None:
    """What only the old pin of the same content knew stays; with another digest it goes."""
    facts = LockedFacts(rocm="7")
    lock = Lock.of([pin(X, facts=facts), pin(Y, facts=facts, image_id=B), pin(Z)])

    after = apply_answers(lock, {X: pin(X), Y: pin(Y, digest=C)}, keep={X, Y})

    assert Lock.of([pin(X, facts=facts), pin(Y, digest=C)]) == after
    assert lock == apply_answers(lock, {}, keep=None)


def test_changes_are_told_apart() -> None:
    """Another digest, other facts, and nothing are three things."""
    local = PinnedImage(ref="docker.io/a/l:1", image_id=A, source="local")
    before = Lock.of([pin(X), pin(Y), pin("docker.io/a/k:1"), pin("docker.io/a/r:1"), local])
    after = Lock.of(
        [
            pin(X, digest=B),
            pin(Y, image_id=B),
            pin("docker.io/a/k:1"),
            pin(Z),
            local.model_copy(update={"image_id": B}),
        ]
    )

    assert {change.ref: change.kind for change in changes(before, after)} == {
        "docker.io/a/k:1": ChangeKind.KEPT,
        "docker.io/a/l:1": ChangeKind.CHANGED,
        "docker.io/a/r:1": ChangeKind.REMOVED,
        X: ChangeKind.CHANGED,
        Y: ChangeKind.UPDATED,
        Z: ChangeKind.ADDED,
    }


DETAILS = [
    ({}, {}, ()),
    ({}, {"image_id": B}, ("image id recorded",)),
    ({}, {"image_id": B, "digest": C}, ()),
    ({}, {"platform": "linux/arm64"}, ("platform linux/amd64 -> linux/arm64",)),
    ({}, {"facts": LockedFacts(rocm="7.1", gfx=("gfx90a",))}, ("ROCm 7.1", "gfx gfx90a")),
    (
        {"facts": LockedFacts(rocm="7.1.0", torch="2.9", gfx=("gfx906", "gfx90a"), user="a")},
        {"facts": LockedFacts(rocm="7.1.1", torch="2.9", gfx=("gfx90a", "gfx950"), python="3.12")},
        ("ROCm 7.1.0 -> 7.1.1", "python 3.12", "user a -> unknown", "gfx +gfx950 -gfx906"),
    ),
    ({"facts": LockedFacts(rocm="7")}, {"digest": B}, ("what it holds was not read again",)),
]


@pytest.mark.parametrize(("before", "after", "details"), DETAILS)
def test_a_change_says_what_a_reviewer_wants_to_know(
    before: dict[str, Any], after: dict[str, Any], details: tuple[str, ...]
) -> None:
    """ROCm, torch, python, user and GPU targets, old to new."""
    change = Change(kind=ChangeKind.CHANGED, ref=X, before=pin(**before), after=pin(**after))

    assert details == change.details


def test_added_and_removed_pins_have_details_too() -> None:
    """A new pin tells what it holds; a removed one nothing."""
    known = pin(facts=LockedFacts(rocm="7"))

    assert Change(kind=ChangeKind.ADDED, ref=X, before=None, after=known).details == ("ROCm 7",)
    assert Change(kind=ChangeKind.REMOVED, ref=X, before=known, after=None).details == ()


def test_labels_are_twelve_digits() -> None:
    """Of the digest, or of the id where that is all there is."""
    assert pin_label(pin()) == "a" * 12
    assert pin_label(PinnedImage(ref=X, image_id=B, source="local")) == "b" * 12


def test_both_writers_entries_survive() -> None:
    """Each changed something else."""
    base = Lock.of([pin(X), pin(Z)])
    ours = Lock.of([pin(X, digest=B)])  # upgraded x, dropped z
    theirs = Lock.of([pin(X), pin(Y), pin(Z)])  # added y

    assert Lock.of([pin(X, digest=B), pin(Y)]) == merge(base, ours, theirs)


def test_the_same_change_twice_is_one() -> None:
    """And what either learned of the same content is kept."""
    ours, theirs = Lock.of([pin(X, image_id=B)]), Lock.of([pin(X, facts=LockedFacts(rocm="7"))])

    merged = merge(Lock(), ours, theirs)

    assert Lock.of([pin(X, image_id=B, facts=LockedFacts(rocm="7"))]) == merged
    assert Lock() == merge(Lock.of([pin(X)]), Lock(), Lock())


CONFLICTS = [
    (Lock(), Lock.of([pin(X, digest=B)]), Lock.of([pin(X, digest=C)])),  # both added
    (Lock.of([pin(X)]), Lock.of([pin(X, digest=B)]), Lock()),  # we upgraded what they dropped
    (Lock.of([pin(X)]), Lock(), Lock.of([pin(X, digest=B)])),  # we dropped what they upgraded
]


@pytest.mark.parametrize(("base", "ours", "theirs"), CONFLICTS)
def test_different_changes_of_one_pin_are_refused(base: Lock, ours: Lock, theirs: Lock) -> None:
    """Nobody's choice is lost without a word."""
    with pytest.raises(LockBusy, match="meanwhile"):
        merge(base, ours, theirs)


_digests = st.sampled_from([A, B, C])
_locks = st.dictionaries(st.sampled_from([X, Y, Z]), _digests).map(
    lambda found: Lock.of(pin(ref, digest=digest) for ref, digest in found.items())
)


@given(_locks, _locks, _locks)
def test_merging_never_loses_a_change(base: Lock, ours: Lock, theirs: Lock) -> None:
    """Either it is refused, or every change of both is in the result."""
    try:
        merged = merge(base, ours, theirs)
    except LockBusy:
        return

    for side in (ours, theirs):
        for change in changes(base, side):
            if change.kind is not ChangeKind.KEPT:
                assert merged.get(change.ref) == change.after


@given(_locks, _locks)
def test_merging_with_no_change_of_theirs_is_ours(base: Lock, ours: Lock) -> None:
    """The usual case."""
    assert ours == merge(base, ours, base)
    assert ours == merge(base, base, ours)
