"""Have the image that the probe runs in, where a profile names one: locked, verified and kept as the workload's is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rocmrun.core.image import ImageFacts
from rocmrun.core.lock import PinnedImage
from rocmrun.core.plan import PlannedImage
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.reference import parse_reference
from rocmrun.core.voice import OnPull
from rocmrun.errors import ImageGone, LockMissing
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.images import (
    UnlockedImage,
    ensure_image,
    ensure_unlocked,
    find_image,
    planned_image,
)
from rocmrun.usecases.locks import find_pin


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeImage:
    """What a profile's `[probe] image` names.

    Attributes:
        pin: What the lock says; None for an unlocked image.
    """

    image: UnlockedImage
    pin: PinnedImage | None

    @classmethod
    def of(
        cls, loaded: LoadedProfile, *, lockfile: Path | None = None, required: bool
    ) -> Self | None:
        """Return the probe's image of a profile; None where it probes in its own.

        Raises:
            LockMissing: it is *required* to be locked, and is not.
        """
        profile = loaded.profile
        if not profile.probe.image:
            return None
        reference = parse_reference(profile.probe.image).canonical
        image = UnlockedImage(ref=reference, platform=profile.image.platform)
        try:
            pin, _ = find_pin(loaded, ref=reference, lockfile=lockfile)
        except LockMissing as error:
            if required:
                error.hint = f"{error.hint}; or start without a proof: --no-probe"
                raise
            return cls(image=image, pin=None)
        return cls(image=image, pin=pin)

    def planned(self, found: ImageFacts | None) -> PlannedImage:
        """Return the image as a plan names it."""
        if self.pin is None:
            return self.image.planned(found)
        return planned_image(self.pin, found)

    def have(
        self, engine: Engine, *, fetch: bool, pull: bool, on_pull: OnPull
    ) -> ImageFacts | None:
        """Return the image if it is here; with *fetch* it must be, and is pulled where *pull* allows.

        Raises:
            ImageGone: it is not here, and cannot or must not be fetched.
            DigestMismatch: what arrived is not what is locked.
            PlatformMismatch: it is for another platform.
        """
        if not fetch:
            return find_image(engine, self.pin) if self.pin else engine.image(self.image.ref)
        try:
            if self.pin is None:
                return ensure_unlocked(engine, self.image, pull=pull, on_pull=on_pull)
            return ensure_image(engine, self.pin, pull=pull, on_pull=on_pull)
        except ImageGone as error:
            msg = f"the image to probe in: {error.message}"
            hint = f"{error.hint}; or start without a proof: --no-probe"
            raise ImageGone(msg, hint=hint) from error
