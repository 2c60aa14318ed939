"""Ask registries or an engine what references stand for: several at once, each thing once."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from rocmrun.core.claims import claims, claims_of_config
from rocmrun.core.image import ImageFacts
from rocmrun.core.lock import LockedFacts, PinnedImage, Resolved
from rocmrun.core.lock_changes import Question
from rocmrun.core.manifest import choose_platform, platform_name
from rocmrun.core.reference import Reference, parse_reference
from rocmrun.errors import (
    DigestMismatch,
    ImageGone,
    RateLimited,
    ReferenceInvalid,
    RegistryDenied,
    RegistryUnavailable,
    RocmrunError,
)
from rocmrun.system.signals import wait_until

Item = TypeVar("Item")
Found = TypeVar("Found")


class Resolver(Protocol):
    """Says what a reference names now: an engine, or a registry directly."""

    def resolve(self, reference: str, timeout_seconds: float) -> Resolved:
        """Return what *reference* names.

        Raises:
            RocmrunError: as core.registry_errors.classify names it.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """An image by digest, looked into without pulling it. *config* is its config blob, None when not asked for."""

    image_id: str
    platform: str
    config: Mapping[str, Any] | None = None

    def claims(self, tag: str | None) -> LockedFacts | None:
        """Return what it claims to hold; *tag* is the last resort."""
        return claims_of_config(self.config or {}, tag)


class Describer(Protocol):
    """Reads an image's config without pulling the image."""

    def describe(
        self, reference: Reference, platform: str, timeout_seconds: float, *, facts: bool
    ) -> Described:
        """Return the id and platform of *platform*'s image in *reference*; with *facts* its config too.

        Raises:
            PlatformMismatch: it has no image for *platform*.
            RocmrunError: as core.registry_errors.classify names it.
        """
        ...


class LocalImages(Protocol):
    """The images that an engine holds."""

    def image(self, name: str) -> ImageFacts | None:
        """Return a local image's config, or None when there is none of that name."""
        ...

    def history(self, image_id: str) -> tuple[str, ...]:
        """Return the steps that a local image was built by, the first one first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Whom to ask.

    Attributes:
        resolver: Names digests.
        describer: Reads configs.
        describe_always: Whether every new pin is described (one more request), or only when facts are wanted.
        local: Images built or loaded here, for references that no registry has.
    """

    resolver: Resolver
    describer: Describer | None = None
    describe_always: bool = False
    local: LocalImages | None = None


@dataclass(slots=True, kw_only=True)
class Inquiry:
    """One round of questions: whom, how long, and what was worth a warning."""

    sources: Sources
    timeout_seconds: float
    facts: bool = False
    warnings: list[str] = field(default_factory=list)
    _limited: dict[str, RocmrunError] = field(default_factory=dict)

    def pin(self, question: Question, old: PinnedImage | None) -> PinnedImage:
        """Return the pin that answers *question*; *old* is what the lock holds for it."""
        reference = parse_reference(question.ref)
        if question.at is None and old is not None:
            return self._look_into(old, reference, facts=True)
        try:
            resolved = self.resolve(question.at or reference)
        except (ImageGone, RegistryDenied, RegistryUnavailable) as error:
            # A registry that does not answer may still have the image; on this machine's own
            # addresses ("localhost/…" is how local builds are named) there is then none.
            if isinstance(error, RegistryUnavailable) and not reference.loopback:
                raise
            local = self._local_pin(question, reference)
            if local is not None:
                return local
            if reference.loopback and type(error) is RegistryUnavailable:
                raise self._found_nowhere(error.message, reference) from error
            raise
        pin = _pinned(question, reference, resolved)
        had_facts = old is not None and old.facts is not None
        if self.facts or self.sources.describe_always:
            return self._look_into(pin, reference, facts=self.facts or had_facts)
        return self._look_again(pin, reference) if had_facts else pin

    def _found_nowhere(self, message: str, reference: Reference) -> RegistryUnavailable:
        """Return the error for a name on this machine that no registry and no image here has."""
        if self.sources.local is None:
            hint = "start that registry; what was built here is locked with --resolver engine"
            return RegistryUnavailable(message, hint=hint)
        msg = f"{message}, and no image on this machine is called {reference.canonical}"
        return RegistryUnavailable(msg, hint="start that registry, or build or load the image")

    def resolve(self, reference: Reference) -> Resolved:
        """Ask what *reference* names."""
        name, resolver = reference.canonical, self.sources.resolver
        found = self._ask(reference, lambda: resolver.resolve(name, self.timeout_seconds))
        if found.warning:
            self.warnings.append(found.warning)
        return found

    def _ask(self, reference: Reference, ask: Callable[[], Found]) -> Found:
        """Ask, unless the reference's registry has said that it was asked too much."""
        if refusal := self._limited.get(reference.domain):
            msg = f"{reference.canonical}: not asked; {refusal.message}"
            raise RateLimited(msg, hint=refusal.hint)
        try:
            return ask()
        except RateLimited as error:
            self._limited[reference.domain] = error
            raise

    def _look_again(self, pin: PinnedImage, reference: Reference) -> PinnedImage:
        """Read what a new digest holds because the lock told it of the old one; not worth a failure."""
        try:
            return self._look_into(pin, reference, facts=True)
        except RocmrunError as error:
            self.warnings.append(f"what {pin.ref} holds could not be read again: {error.message}")
            return pin

    def _look_into(self, pin: PinnedImage, reference: Reference, *, facts: bool) -> PinnedImage:
        """Return *pin* with the image's id, and with *facts* its claims."""
        describer = self.sources.describer
        if pin.digest is None:
            images = self.sources.local
            image = images.image(pin.ref) if images else None
            found = (
                _local_facts(images, image, reference) if images and image and facts else pin.facts
            )
            return pin.model_copy(update={"facts": found})
        if describer is None:
            return pin
        at, platform, seconds = reference.at(pin.digest), pin.platform, self.timeout_seconds
        described = self._ask(at, lambda: describer.describe(at, platform, seconds, facts=facts))
        claimed = described.claims(reference.tag) if facts else pin.facts
        return pin.model_copy(
            update={
                "image_id": described.image_id,
                "platforms": pin.platforms or (described.platform,),
                "facts": claimed,
            }
        )

    def _local_pin(self, question: Question, reference: Reference) -> PinnedImage | None:
        """Pin an image that was built or loaded here by its id.

        One that once came from, or went to, the very repository is not local: there it is gone.
        """
        images = self.sources.local
        image = images.image(question.ref) if images else None
        if (
            images is None
            or image is None
            or any(_is_of(name, reference) for name in image.repo_digests)
        ):
            return None
        parts = {"os": image.os, "architecture": image.architecture, "variant": image.variant}
        platform = platform_name(parts)
        choose_platform(question.platform, [platform] if platform else [], question.ref)
        self.warnings.append(
            f"{question.ref} is in no registry: it is locked by the id of the image on this machine, "
            "which cannot be reproduced elsewhere"
        )
        return PinnedImage(
            ref=question.ref,
            platform=question.platform,
            image_id=image.image_id,
            source="local",
            facts=_local_facts(images, image, reference) if self.facts else None,
        )


def _is_of(repo_digest: str, reference: Reference) -> bool:
    try:
        return parse_reference(repo_digest).name == reference.name
    except ReferenceInvalid:
        return False  # engines list "<none>@<none>" too


def _pinned(question: Question, reference: Reference, resolved: Resolved) -> PinnedImage:
    if reference.digest not in (None, resolved.digest):
        msg = f"{question.ref} was asked for, and {resolved.digest} was answered"
        raise DigestMismatch(msg)
    if resolved.platforms is not None:
        choose_platform(question.platform, resolved.platforms, question.ref)
    return PinnedImage(
        ref=question.ref,
        digest=resolved.digest,
        media_type=resolved.media_type,
        platform=question.platform,
        platforms=resolved.platforms,
        image_id=resolved.image_id,
        source=resolved.source,
    )


def _local_facts(
    images: LocalImages, image: ImageFacts, reference: Reference
) -> LockedFacts | None:
    return claims(
        env=image.environment,
        labels=dict(image.labels),
        history=images.history(image.image_id),
        user=image.user,
        tag=reference.tag,
    )


def ask_all(
    items: Iterable[Item], ask: Callable[[Item], Found], *, jobs: int
) -> tuple[list[Found], list[RocmrunError]]:
    """Return the answers for *items*, in their order, and every failure; at most *jobs* are asked at once."""
    pool = ThreadPoolExecutor(max_workers=max(jobs, 1), thread_name_prefix="rocmrun-lock")
    try:
        futures = [pool.submit(ask, item) for item in items]
        found: list[Found] = []
        failures: list[RocmrunError] = []
        wait_until(lambda seconds: not wait(futures, seconds).not_done)
        for future in futures:
            try:
                found.append(future.result())
            except RocmrunError as error:
                failures.append(error)
        return found, failures
    finally:
        # Ctrl-C does not wait for requests that are under way.
        pool.shutdown(wait=False, cancel_futures=True)


def locked_digests(pins: Iterable[PinnedImage]) -> Mapping[str, str]:
    """Return reference → digest of *pins*: what a cheap check may find unchanged."""
    return {pin.ref: pin.digest for pin in pins if pin.digest is not None}
