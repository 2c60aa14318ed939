"""Have exactly the locked image on this machine: by digest, by id, or by a pull that is verified."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from rocmrun.core.image import ImageFacts
from rocmrun.core.image_user import look_up_user
from rocmrun.core.keep_tags import keep_tag
from rocmrun.core.lock import PinnedImage
from rocmrun.core.plan import PlannedImage
from rocmrun.core.text import short_digest
from rocmrun.core.voice import OnPull
from rocmrun.errors import DigestMismatch, ImageGone, PlatformMismatch
from rocmrun.system import signals
from rocmrun.system.caller import process_label
from rocmrun.usecases.engine_protocol import Engine

LOAD_HINT = "leave out --pull never, or `docker load` it"


def find_image(engine: Engine, pin: PinnedImage) -> ImageFacts | None:
    """Return the locked image if it is here: by repo@digest, by the keep-tag, or by the recorded id.

    `docker load` and `docker image rm repo@digest` lose the digest; what the tag names is then
    trusted only as far as its id is the recorded one.
    """
    found = engine.image(pin.pull_reference) if pin.digest else None
    if found is None and pin.image_id:
        found = _undigested(engine.image(pin.image_id), pin)
        if found is None and pin.digest:
            kept = engine.image(keep_tag(pin.digest))
            found = kept if kept is not None and kept.image_id == pin.image_id else None
    if found is not None:
        check_platform(found, pin.ref, pin.platform)
    return found


def _undigested(found: ImageFacts | None, pin: PinnedImage) -> ImageFacts | None:
    """Return an image found by its id, unless the digests that it does have all contradict the lock."""
    if found is None or pin.digest is None or not found.repo_digests:
        return found
    return found if any(name.endswith(f"@{pin.digest}") for name in found.repo_digests) else None


def ensure_image(
    engine: Engine,
    pin: PinnedImage,
    *,
    pull: bool,
    on_pull: OnPull,
) -> ImageFacts:
    """Return the locked image, pulled if it is absent, verified, and kept from `docker image prune`.

    Args:
        engine: Where.
        pin: What the lock says.
        pull: Whether an absent image may be pulled.
        on_pull: Opened while a pull goes on; gives what takes its events.

    Raises:
        ImageGone: absent, and not to be pulled.
        DigestMismatch: what arrived is not what is locked.
        PlatformMismatch: what arrived is for another platform.
    """
    found = find_image(engine, pin)
    if found is None:
        if not pull or pin.source == "local":
            raise _absent(pin)
        found = _pull(engine, pin, on_pull)
    if pin.digest:
        engine.tag(found.image_id, *keep_tag(pin.digest).split(":"))
    return found


def how_known(pin: PinnedImage, found: ImageFacts | None) -> str:
    """Return what to add where the locked image is here by its id alone; "" where its digest names it."""
    if found is None or pin.digest is None or _has_digest(found, pin.digest):
        return ""
    return f" (known by its id {short_digest(found.image_id)}: docker load loses digests)"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlockedImage:
    """An image that no lock pins: whatever its tag names."""

    ref: str
    platform: str

    def planned(self, found: ImageFacts | None) -> PlannedImage:
        """Return the image as a plan names it."""
        image_id = found.image_id if found else None
        return PlannedImage(ref=self.ref, platform=self.platform, image_id=image_id)


def ensure_unlocked(
    engine: Engine,
    image: UnlockedImage,
    *,
    pull: bool,
    on_pull: OnPull,
) -> ImageFacts:
    """Return what the tag names on this machine, pulled if it is absent.

    Raises:
        ImageGone: absent, and not to be pulled; or pulled and still not here.
        PlatformMismatch: it is for another platform.
    """
    found = engine.image(image.ref)
    if found is None and not pull:
        msg = f"{image.ref} is not on this machine, and --pull never forbids fetching it"
        raise ImageGone(msg, hint=LOAD_HINT)
    if found is None:
        with on_pull() as on_event:
            for event in engine.pull(image.ref, image.platform):
                on_event(event)
        found = engine.image(image.ref)
    if found is None:
        msg = f"pulled {image.ref}, but the engine has nothing of that name"
        raise ImageGone(msg)
    check_platform(found, image.ref, image.platform)
    return found


@contextlib.contextmanager
def looked_into(engine: Engine, image: ImageFacts, platform: str) -> Iterator[str]:
    """Yield the id of a container of *image* that is never started: its files can be read."""
    request = {
        "Image": image.image_id,
        "Entrypoint": ["/"],
        "Labels": {"io.rocmrun.role": "look", "io.rocmrun.controller": process_label()},
        "HostConfig": {"NetworkMode": "none", "CapDrop": ["ALL"], "ReadonlyRootfs": True},
    }
    with contextlib.ExitStack() as stack:
        with signals.postponed():
            container = engine.create(request, "", platform).container_id
            stack.callback(engine.remove, container)
        yield container


def ids_of_user(engine: Engine, image: ImageFacts, platform: str) -> tuple[int, int]:
    """Return the ids of a USER that *image* gives by name, read in a container that is never started.

    Raises:
        PlanRefused: the image's own files do not know the name.
    """
    with looked_into(engine, image, platform) as container:
        passwd, group = (
            (engine.read_file(container, path) or b"").decode(errors="replace")
            for path in ("/etc/passwd", "/etc/group")
        )
    return look_up_user(image.user, passwd, group)


def _pull(engine: Engine, pin: PinnedImage, on_pull: OnPull) -> ImageFacts:
    with on_pull() as on_event:
        for event in engine.pull(pin.pull_reference, pin.platform):
            on_event(event)
    found = engine.image(pin.pull_reference)
    if found is None or not _has_digest(found, pin.digest):
        arrived = ", ".join(found.repo_digests) if found else "nothing under that digest"
        msg = f"pulled {pin.pull_reference}, but the engine has {arrived}"
        raise DigestMismatch(msg, hint="remove the image and launch again")
    check_platform(found, pin.ref, pin.platform)
    return found


def check_platform(found: ImageFacts, ref: str, platform: str) -> None:
    """Refuse an image for another platform: a single manifest is pulled whatever platform is asked for."""
    os, _, rest = platform.partition("/")
    architecture = rest.partition("/")[0]
    if (found.os, found.architecture) != (os, architecture):
        msg = f"{ref} is {found.os}/{found.architecture} here, and {platform} is asked for"
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
        hint=LOAD_HINT,
    )


def planned_image(pin: PinnedImage, found: ImageFacts | None) -> PlannedImage:
    """Return the image as a plan names it."""
    return PlannedImage(
        ref=pin.ref,
        digest=pin.digest,
        platform=pin.platform,
        image_id=found.image_id if found else pin.image_id,
        source=pin.source,
    )


def _has_digest(found: ImageFacts, digest: str | None) -> bool:
    return any(name.endswith(f"@{digest}") for name in found.repo_digests)
