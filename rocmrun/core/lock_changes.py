"""What `rocmrun lock` must ask, what changed, and how two writers' changes go together. Asks and writes nothing."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from rocmrun.core.closest import did_you_mean
from rocmrun.core.lock import Lock, LockedFacts, PinnedImage
from rocmrun.core.reference import Reference, parse_reference
from rocmrun.core.signature import SignatureRule
from rocmrun.core.text import short_digest
from rocmrun.errors import LockBusy, PlanRefused, ProfileInvalid, RocmrunError, UsageError

_LABELS = {"rocm": "ROCm", "torch": "torch", "python": "python", "user": "user"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An image that profiles ask for, once however many ask.

    Attributes:
        ref: Canonical reference.
        profiles: Names of the profiles that ask, sorted.
        rules: Whose signatures they ask for.
    """

    ref: str
    platform: str
    profiles: tuple[str, ...]
    moving_tags: Literal["warn", "refuse"] = "warn"
    rules: tuple[SignatureRule, ...] = ()

    @property
    def reference(self) -> Reference:
        """The reference, parsed."""
        return parse_reference(self.ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One thing to ask a registry for.

    Attributes:
        ref: Canonical reference of the pin that the answer is for.
        at: What is resolved: the reference itself, or the locked digest when only the platform
            changed; None when the digest stays and only facts are read.
    """

    ref: str
    platform: str
    at: Reference | None


class ChangeKind(StrEnum):
    """What happened to a pin."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"  # another digest
    UPDATED = "updated"  # the same digest, more or other facts
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The difference between two locks for one reference."""

    kind: ChangeKind
    ref: str
    before: PinnedImage | None
    after: PinnedImage | None

    @property
    def details(self) -> tuple[str, ...]:
        """What differs besides the digest: platform, ROCm, torch, python, GPU targets."""
        return () if self.after is None else tuple(_details(self.before, self.after))


def merge_wanted(wanted: Iterable[Wanted]) -> tuple[Wanted, ...]:
    """Return one entry for each reference, sorted; the stricter moving_tags wins.

    Raises:
        ProfileInvalid: two profiles ask for one reference on different platforms.
    """
    merged: dict[str, Wanted] = {}
    for item in wanted:
        other = merged.get(item.ref)
        if other is None:
            merged[item.ref] = item
            continue
        if other.platform != item.platform:
            msg = f"profiles ask for {item.ref} on different platforms"
            raise ProfileInvalid(
                msg,
                details=tuple(f"{', '.join(w.profiles)}: {w.platform}" for w in (other, item)),
                hint="a lock holds one platform of a reference; lock the other by its digest",
            )
        strict = "refuse" in {other.moving_tags, item.moving_tags}
        merged[item.ref] = replace(
            other,
            profiles=tuple(sorted({*other.profiles, *item.profiles})),
            moving_tags="refuse" if strict else "warn",
            rules=tuple(dict.fromkeys((*other.rules, *item.rules))),
        )
    return tuple(merged[ref] for ref in sorted(merged))


def moving_tag_warnings(wanted: Iterable[Wanted]) -> tuple[str, ...]:
    """Return a warning for each moving tag.

    Raises:
        PlanRefused: a profile refuses moving tags and has one.
    """
    moving = [item for item in wanted if item.reference.moving]
    refused = [item for item in moving if item.moving_tags == "refuse"]
    if refused:
        msg = "moving tags are refused by profile"
        raise PlanRefused(
            msg,
            details=tuple(f"{', '.join(item.profiles)}: {item.ref}" for item in refused),
            hint='name a versioned tag or a digest, or set moving_tags = "warn" in [image]',
        )
    return tuple(
        f"{item.ref} is a moving tag: the lock holds one build of it, and --check will often say that it moved"
        for item in moving
    )


def select_upgrades(
    names: Iterable[str], wanted: Iterable[Wanted], locked: Iterable[str]
) -> frozenset[str]:
    """Return the references that *names* (profile names or references) mean.

    Args:
        names: What people typed.
        wanted: What the profiles of this run ask for.
        locked: References that locks of this run already hold.

    Raises:
        UsageError: a name is neither a profile in this run nor a reference in it or in a lock.
    """
    by_profile: dict[str, set[str]] = {}  # a profile may name a second image, to probe in
    for name, ref in ((name, item.ref) for item in wanted for name in item.profiles):
        by_profile.setdefault(name, set()).add(ref)
    refs = {*locked}.union(*by_profile.values())
    chosen: set[str] = set()
    for name in names:
        found = by_profile.get(name) or {_canonical_or_none(name) or ""}
        if not found <= refs:
            known = [*by_profile, *refs, *(parse_reference(ref).familiar for ref in refs)]
            msg = (
                f"--upgrade-image: nothing locked here is called {name}{did_you_mean(name, known)}"
            )
            raise UsageError(msg, hint="give a profile's name or an image reference")
        chosen |= found
    return frozenset(chosen)


def questions(
    lock: Lock, wanted: Iterable[Wanted], *, upgrade: Collection[str], facts: bool
) -> tuple[Question, ...]:
    """Return what must be asked: new references, upgrades, other platforms, and facts where they are wanted."""
    platforms = {image.ref: image.platform for image in lock.images if image.ref in upgrade}
    platforms |= {item.ref: item.platform for item in wanted}
    return tuple(
        question
        for ref, platform in sorted(platforms.items())
        if (
            question := _question(lock.get(ref), ref, platform, upgrade=ref in upgrade, facts=facts)
        )
    )


def _question(
    pin: PinnedImage | None, ref: str, platform: str, *, upgrade: bool, facts: bool
) -> Question | None:
    reference = parse_reference(ref)
    # A digest in the reference is a claim that nothing upgrades.
    if pin is None or (upgrade and reference.digest is None):
        return Question(ref=ref, platform=platform, at=reference)
    if pin.platform != platform:
        at = reference if pin.digest is None else reference.at(pin.digest)
        return Question(ref=ref, platform=platform, at=at)
    if facts and pin.facts is None:
        return Question(ref=ref, platform=platform, at=None)
    return None


def apply_answers(
    lock: Lock, answers: Mapping[str, PinnedImage], *, keep: Collection[str] | None
) -> Lock:
    """Return *lock* with the answered pins; what only the old pin of the same content knew stays.

    Pins whose reference is not in *keep* are dropped; None keeps all.
    """
    pins = {image.ref: image for image in lock.images if keep is None or image.ref in keep}
    for ref, answer in answers.items():
        old = lock.get(ref)
        pins[ref] = answer.completed_by(old) if old else answer
    return Lock.of(pins.values())


def changes(before: Lock, after: Lock) -> tuple[Change, ...]:
    """Return what happened to each reference, sorted."""
    refs = sorted({image.ref for image in (*before.images, *after.images)})
    return tuple(_change(ref, before.get(ref), after.get(ref)) for ref in refs)


def _change(ref: str, before: PinnedImage | None, after: PinnedImage | None) -> Change:
    if before is None or after is None:
        kind = ChangeKind.ADDED if before is None else ChangeKind.REMOVED
    elif before.identity != after.identity:
        kind = ChangeKind.CHANGED
    else:
        kind = ChangeKind.KEPT if before == after else ChangeKind.UPDATED
    return Change(kind=kind, ref=ref, before=before, after=after)


def merge(base: Lock, ours: Lock, theirs: Lock) -> Lock:
    """Return *theirs* with the changes from *base* to *ours*: both writers' entries survive.

    Raises:
        LockBusy: both changed one reference, and differently.
    """
    pins = {image.ref: image for image in theirs.images}
    for change in changes(base, ours):
        if change.kind is ChangeKind.KEPT:
            continue
        current = theirs.get(change.ref)
        pin = change.after
        if current != change.before and current is not None and pin is not None:
            if current.identity != pin.identity:
                raise _conflict(change.ref)
            pin = pin.completed_by(current)
        elif current not in (change.before, pin):
            raise _conflict(change.ref)
        if pin is None:
            pins.pop(change.ref, None)
        else:
            pins[change.ref] = pin
    return Lock.of(pins.values())


def _conflict(ref: str) -> RocmrunError:
    msg = f"{ref} was locked differently by another process meanwhile; nothing was written"
    return LockBusy(msg, hint="run the same command again")


def _details(before: PinnedImage | None, after: PinnedImage) -> Iterator[str]:
    if before is not None and before.platform != after.platform:
        yield f"platform {before.platform} -> {after.platform}"
    same = before if before is not None and before.identity == after.identity else None
    if same is not None and same.image_id is None and after.image_id is not None:
        yield "image id recorded"
    yield from _fact_details((before and before.facts) or LockedFacts(), after.facts)


def _fact_details(old: LockedFacts, new: LockedFacts | None) -> Iterator[str]:
    if new is None:
        if old != LockedFacts():
            yield "what it holds was not read again"
        return
    for name, label in _LABELS.items():
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            yield f"{label} {was} -> {now or 'unknown'}" if was else f"{label} {now}"
    added = [f"+{target}" for target in new.gfx if target not in old.gfx]
    gone = [f"-{target}" for target in old.gfx if target not in new.gfx]
    if added or gone:
        yield f"gfx {' '.join(added + gone)}" if old.gfx else f"gfx {' '.join(new.gfx)}"


def _canonical_or_none(text: str) -> str | None:
    try:
        return parse_reference(text).canonical
    except RocmrunError:
        return None


def pin_label(pin: PinnedImage) -> str:
    """Return the 12 digits that people compare."""
    return short_digest(pin.digest or pin.image_id or "")
