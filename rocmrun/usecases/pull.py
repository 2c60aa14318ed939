"""Pull: have the locked images of profiles here before they are needed. Digests only, never tags."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rocmrun.core.lock import PinnedImage
from rocmrun.core.voice import Voice
from rocmrun.errors import LockMissing
from rocmrun.system.profile_search import ProfileSearch
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.images import ensure_image, find_image
from rocmrun.usecases.lock_selection import ProfileReference, select
from rocmrun.usecases.locks import LockPlaces, read_lock
from rocmrun.usecases.signatures import Verify, verify_signature


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldImage:
    """A locked image that is on this machine now.

    Attributes:
        fetched: Whether it was not there before.
    """

    ref: str
    digest: str | None
    image_id: str
    platform: str
    profiles: tuple[str, ...]
    fetched: bool


def pull(
    names: Iterable[str],
    *,
    engine: Engine,
    search: ProfileSearch,
    settings: Mapping[str, str],
    places: LockPlaces,
    voice: Voice,
    verify: Verify = verify_signature,
) -> tuple[HeldImage, ...]:
    """Have every locked image of the profiles *names* here; without names, of the project's own.

    All locks are read before the first byte is fetched.

    Raises:
        LockMissing: an image is not locked.
        SignatureUnverified: a profile asks for a signature that cannot be verified.
        RocmrunError: an image could not be fetched.
    """
    wanted: dict[PinnedImage, list[ProfileReference]] = {}
    for reference in select(names, search=search, settings=settings).references:
        wanted.setdefault(_pin(reference, places), []).append(reference)
    for pin, references in wanted.items():
        for reference in references:
            if reference.rule is not None:
                verify(pin, reference.rule)
    held = []
    for pin, references in wanted.items():
        here = find_image(engine, pin) is not None
        voice.say(f"{pin.ref} @ {pin.digest or pin.image_id}{': here already' if here else ''}")
        image = ensure_image(engine, pin, pull=True, on_pull=voice.on_pull)
        held.append(
            HeldImage(
                ref=pin.ref,
                digest=pin.digest,
                image_id=image.image_id,
                platform=pin.platform,
                profiles=tuple(sorted({reference.profile for reference in references})),
                fetched=not here,
            )
        )
    return tuple(held)


def _pin(reference: ProfileReference, places: LockPlaces) -> PinnedImage:
    """Return what the first lock that knows an image says of it."""
    looked = []
    for path in places.candidates(reference.origin, reference.path):
        lock = read_lock(path)
        if lock is not None and lock.get(reference.ref) is not None:
            return lock.require(reference.ref, reference.platform, profile=reference.profile)
        looked.append(f"{path}: {'no such file' if lock is None else 'does not hold it'}")
    msg = f"{reference.ref}, the image of profile {reference.profile}, is not locked"
    raise LockMissing(msg, hint=f"rocmrun lock {reference.profile}", details=tuple(looked))
