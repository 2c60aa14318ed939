"""What `rocmrun lock --check` finds, and which finding decides the exit code. Asks nothing."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rocmrun.core.lock import Lock, PinnedImage, Resolved
from rocmrun.core.lock_changes import Wanted, pin_label
from rocmrun.core.manifest import INDEXES
from rocmrun.core.reference import parse_reference
from rocmrun.core.text import short_digest
from rocmrun.errors import ImageGone, LockMissing, LockStale, RocmrunError, TagMoved

# A certain finding outranks "could not tell". What is not listed comes last.
PRECEDENCE = (2, 7, 3, 5, 4, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, and with which reference."""

    ref: str
    error: RocmrunError


def offline_findings(
    lock: Lock | None, path: str, wanted: Iterable[Wanted], used: Collection[str] | None
) -> tuple[Finding, ...]:
    """Compare profiles with the lock: what is missing, extra or for another platform.

    Args:
        lock: None when there is no file at *path*.
        path: Names the lock in messages.
        wanted: What the profiles of this run ask for.
        used: Every reference that any profile asks for; None when only some profiles were named,
            so that others' pins are none of this run's business.
    """
    wanted = tuple(wanted)
    if lock is None:
        names = " ".join(sorted({name for item in wanted for name in item.profiles}))
        absent = LockMissing(f"there is no {path}", hint=f"rocmrun lock {names}".rstrip())
        return (Finding(ref=path, error=absent),) if wanted else ()
    found = [finding for item in wanted if (finding := _offline_finding(lock, item))]
    for image in lock.images:
        if used is not None and image.ref not in used:
            extra = LockStale(
                f"extra: {image.ref} is locked, and no profile uses it", hint="rocmrun lock"
            )
            found.append(Finding(ref=image.ref, error=extra))
    return tuple(sorted(found, key=lambda finding: finding.ref))


def _offline_finding(lock: Lock, item: Wanted) -> Finding | None:
    pin, names = lock.get(item.ref), ", ".join(item.profiles)
    hint = f"rocmrun lock {' '.join(item.profiles)}"
    if pin is None:
        missing = LockMissing(f"missing: {item.ref} (profile {names}) is not locked", hint=hint)
        return Finding(ref=item.ref, error=missing)
    if pin.platform != item.platform:
        text = f"changed: {item.ref} (profile {names}) is locked for {pin.platform}, and {item.platform} is asked for"
        return Finding(ref=item.ref, error=LockStale(text, hint=hint))
    return None


def drift(pin: PinnedImage, now: Resolved, *, still_there: bool | None) -> RocmrunError:
    """Return what it means that *pin*'s tag now names *now*.

    Args:
        pin: What is locked.
        now: What the tag names now.
        still_there: Whether the registry still has the locked digest; None when it could not be asked.
    """
    kind = ""
    if (
        pin.media_type
        and now.media_type
        and (pin.media_type in INDEXES) != (now.media_type in INDEXES)
    ):
        kind = " (an index now)" if now.media_type in INDEXES else " (a single image now)"
    moved = f"{pin.ref} moved: {pin_label(pin)} -> {short_digest(now.digest or '')}{kind}"
    if still_there is False:
        return ImageGone(
            f"{moved}, and the locked digest is gone from its registry", hint=_keep(pin)
        )
    state = "still there" if still_there else "perhaps still there (it could not be asked for)"
    return TagMoved(
        f"{moved}; the locked digest is {state}",
        hint=f"review it, then: rocmrun lock --upgrade-image {parse_reference(pin.ref).familiar}",
    )


def gone(pin: PinnedImage, *, still_there: bool | None) -> RocmrunError:
    """Return what it means that *pin*'s tag is no longer in its registry; *still_there* is about its digest."""
    state = {
        True: "the locked digest is still there, without a name: registries delete such images first",
        False: "the locked digest is gone too",
        None: "whether the locked digest is still there could not be asked",
    }[still_there]
    return ImageGone(f"{pin.ref} is gone from its registry; {state}", hint=_keep(pin))


def combine(errors: Sequence[RocmrunError], summary: str) -> RocmrunError:
    """Return the one error that stands for *errors*: itself if single, else the class that outranks the others.

    Every one is listed in its details; *summary* is the message. *errors* must not be empty.
    """
    top = min(errors, key=_rank)
    if len(errors) == 1:
        return top
    ordered = sorted(errors, key=_rank)
    lines = [line for error in ordered for line in (error.message, *error.details)]
    hints = dict.fromkeys(
        error.hint for error in ordered if type(error) is type(top) and error.hint
    )
    return type(top)(summary, hint="; ".join(list(hints)[:3]) or None, details=tuple(lines))


def _rank(error: RocmrunError) -> int:
    code = error.exit_code
    return PRECEDENCE.index(code) if code in PRECEDENCE else len(PRECEDENCE)


def _keep(pin: PinnedImage) -> str:
    """How to keep a copy of what upstream no longer keeps."""
    name = parse_reference(pin.ref).path.rpartition("/")[2]
    return (
        "keep the copy you have: "
        f"docker tag {pin.pull_reference} YOUR-REGISTRY/{name}:{pin_label(pin)} && docker push it, "
        "and name that in the profile"
    )
