"""Have exactly the locked image on this machine: by digest, by id, or by a pull that is verified."""

from collections.abc import Callable

from rocmrun.core.image import ImageFacts
from rocmrun.core.lock import PinnedImage
from rocmrun.core.plan import PlannedImage
from rocmrun.core.run import PullEvent
from rocmrun.core.text import short_digest
from rocmrun.errors import DigestMismatch, ImageGone, PlatformMismatch
from rocmrun.usecases.engine_protocol import Engine

KEEP_REPOSITORY = "rocmrun/locked"


def find_image(engine: Engine, pin: PinnedImage) -> ImageFacts | None:
    """Return the locked image if it is here: by repo@digest, by the keep-tag, or by the recorded id.

    `docker load` and `docker image rm repo@digest` lose the digest; what the tag names is then
    trusted only as far as its id is the recorded one.
    """
    found = engine.image(pin.pull_reference) if pin.digest else None
    if found is None and pin.image_id:
        found = engine.image(pin.image_id)
        if found is None and pin.digest:
            kept = engine.image(keep_tag(pin.digest))
            found = kept if kept is not None and kept.image_id == pin.image_id else None
    if found is not None:
        check_platform(found, pin)
    return found


def ensure_image(
    engine: Engine,
    pin: PinnedImage,
    *,
    pull: bool,
    on_pull: Callable[[], Callable[[PullEvent], None]],
) -> ImageFacts:
    """Return the locked image, pulled if it is absent, verified, and kept from `docker image prune`.

    Args:
        engine: Where.
        pin: What the lock says.
        pull: Whether an absent image may be pulled.
        on_pull: Called when a pull begins; returns what takes its events.

    Raises:
        ImageGone: absent, and not to be pulled.
        DigestMismatch: what arrived is not what is locked.
        PlatformMismatch: what arrived is for another platform.
    """
    found = find_image(engine, pin)
    if found is None:
        if not pull or pin.source == "local":
            raise _absent(pin)
        found = _pull(engine, pin, on_pull())
    if pin.digest:
        engine.tag(found.image_id, *keep_tag(pin.digest).split(":"))
    return found


def _pull(engine: Engine, pin: PinnedImage, on_event: Callable[[PullEvent], None]) -> ImageFacts:
    for event in engine.pull(pin.pull_reference, pin.platform):
        on_event(event)
    found = engine.image(pin.pull_reference)
    if found is None or not any(name.endswith(f"@{pin.digest}") for name in found.repo_digests):
        arrived = ", ".join(found.repo_digests) if found else "nothing under that digest"
        msg = f"pulled {pin.pull_reference}, but the engine has {arrived}"
        raise DigestMismatch(msg, hint="remove the image and launch again")
    check_platform(found, pin)
    return found


def check_platform(found: ImageFacts, pin: PinnedImage) -> None:
    """Refuse an image for another platform: a single manifest is pulled whatever platform is asked for."""
    os, _, rest = pin.platform.partition("/")
    architecture = rest.partition("/")[0]
    if (found.os, found.architecture) != (os, architecture):
        msg = f"{pin.ref} is {found.os}/{found.architecture} here, the lock says {pin.platform}"
        raise PlatformMismatch(
            msg, hint="remove that image, or lock another platform: rocmrun lock --platform"
        )


def _absent(pin: PinnedImage) -> ImageGone:
    if pin.source == "local":
        return ImageGone(
            f"{pin.ref} was locked as a local image ({short_digest(pin.image_id or '')}) and is not on this machine",
            hint="build or load it again, then run `rocmrun lock --upgrade-image` if it changed",
        )
    return ImageGone(
        f"{pin.ref} ({short_digest(pin.digest or '')}) is not on this machine, and --pull never forbids fetching it",
        hint="leave out --pull never, or `docker load` it",
    )


def keep_tag(digest: str) -> str:
    """Return the local name that keeps an image pulled by digest from being dangling."""
    return f"{KEEP_REPOSITORY}:{short_digest(digest)}"


def planned_image(pin: PinnedImage, found: ImageFacts | None) -> PlannedImage:
    """Return the image as a plan names it."""
    return PlannedImage(
        ref=pin.ref,
        digest=pin.digest,
        platform=pin.platform,
        image_id=found.image_id if found else pin.image_id,
        source=pin.source,
    )
