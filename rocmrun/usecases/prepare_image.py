"""Which image a plan is about: as it is named, as the lock pins it, as it is here."""

from pathlib import Path

from rocmrun.core.image import ImageFacts
from rocmrun.core.image_user import numeric_ids
from rocmrun.core.lock import PinnedImage
from rocmrun.core.plan import PlannedImage
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.reference import parse_reference
from rocmrun.core.voice import OnPull
from rocmrun.errors import LockMissing, ProfileInvalid
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.images import (
    UnlockedImage,
    ensure_image,
    ensure_unlocked,
    find_image,
    ids_of_user,
    planned_image,
)
from rocmrun.usecases.locks import find_pin


def named_image(loaded: LoadedProfile, pin: PinnedImage | None) -> PlannedImage:
    """Return the image as it is asked for, before anybody has looked for it."""
    if pin is not None:
        return planned_image(pin, None)
    image = loaded.profile.image
    return PlannedImage(ref=parse_reference(image.ref or "").canonical, platform=image.platform)


def pin_of(
    ask: Ask, loaded: LoadedProfile, *, required: bool
) -> tuple[PinnedImage | None, Path | None]:
    """Return the image's pin and the lock that holds it; nothing where none is *required* or wanted.

    Raises:
        ProfileInvalid: the profile names no image.
        LockMissing: no lock pins it.
    """
    if loaded.profile.image.ref is None:
        msg = f"profile {loaded.name} names no image: it is meant to be extended"
        raise ProfileInvalid(
            msg, hint=f'write a profile with extends = "{loaded.name}" and an [image] ref'
        )
    try:
        return find_pin(loaded, lockfile=ask.lockfile)
    except LockMissing:
        if required and not ask.unlocked:
            raise
        return None, None


def image_of(
    ask: Ask,
    loaded: LoadedProfile,
    pin: PinnedImage | None,
    engine: Engine | None,
    *,
    fetch: bool,
    on_pull: OnPull,
) -> tuple[ImageFacts | None, PlannedImage]:
    """Return the image as it is here, fetched where *fetch* says so, and as the plan names it."""
    if pin is None:
        reference = parse_reference(loaded.profile.image.ref or "").canonical
        unlocked = UnlockedImage(ref=reference, platform=loaded.profile.image.platform)
        found = engine.image(reference) if engine else None
        if fetch and engine:
            found = ensure_unlocked(engine, unlocked, pull=ask.pull, on_pull=on_pull)
        return found, unlocked.planned(found)
    if engine is None:
        return None, planned_image(pin, None)
    found = (
        ensure_image(engine, pin, pull=ask.pull, on_pull=on_pull)
        if fetch
        else find_image(engine, pin)
    )
    return found, planned_image(pin, found)


def ids_of_image(
    loaded: LoadedProfile, engine: Engine | None, image: ImageFacts | None
) -> tuple[int, int] | None:
    """Return whom the image names as its USER, where the profile wants that user and it is a name."""
    wanted = loaded.profile.container.user == "image" and image is not None and image.user
    if not wanted or image is None or engine is None or numeric_ids(image.user) is not None:
        return None
    return ids_of_user(engine, image, loaded.profile.image.platform)
