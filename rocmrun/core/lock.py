"""The lock: which digest each image reference stands for. Reads and writes text; touches no file and no network."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, model_validator

from rocmrun.core.reference import parse_reference
from rocmrun.core.toml import load_toml
from rocmrun.errors import LockMissing, LockStale, LockUnreadable, ReferenceInvalid

VERSION = 1
HEADER = (
    "# Written by `rocmrun lock`. Commit this file. Change profiles, then run `rocmrun lock`;\n"
    "# new digests for the same tags come only with `rocmrun lock --upgrade`.\n"
)
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7})(?: |$)", re.MULTILINE)

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Platform = Annotated[str, Field(pattern=r"^[a-z0-9]+/[a-z0-9_]+(?:/[a-z0-9.]+)?$")]
# Facts come from images that strangers built: nothing but plain words enters the file.
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9._+:/-]{1,128}$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a reference stands for now, as a registry or an engine answered.

    Attributes:
        digest: Digest of exactly what the tag names: an index's where there is one. None for a local image.
        media_type: Of that index or manifest; None when the answer has none.
        platforms: "os/architecture[/variant]" of everything runnable in it; None when not told.
        image_id: Config digest of the wanted platform's image; None when not told.
        source: "local" when no registry has it and it is known by *image_id* alone.
        warning: What about the answer is worth saying aloud.
    """

    digest: str | None
    media_type: str | None = None
    platforms: tuple[str, ...] | None = None
    image_id: str | None = None
    source: Literal["registry", "local"] = "registry"
    warning: str = ""


class _Entry(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=lambda name: name.replace("_", "-"),
    )


class LockedFacts(_Entry):
    """What an image says it holds, for people who review an upgrade. Every one is optional.

    Attributes:
        user: The image's USER; absent also when it is root by default.
        gfx: GPU targets its libraries were built for, as it claims.
        sources: Where each fact was read: "env:NAME", "label:NAME", "history:NAME", "config", "tag", "probe".
    """

    user: Word | None = None
    rocm: Word | None = None
    torch: Word | None = None
    python: Word | None = None
    gfx: tuple[Word, ...] = ()
    sources: dict[str, Word] = Field(default_factory=dict)


class PinnedImage(_Entry):
    """One locked image.

    Attributes:
        ref: Canonical reference; the key.
        digest: What the reference stood for when it was locked; None only for local images.
        media_type: Tells an index from a manifest; None when whoever published the digest did not say.
        platform: What is pulled and started of it.
        platforms: What the registry said it offers; None when it did not say.
        image_id: Config digest of *platform*'s image: what `docker load` restores where the digest is lost.
        source: "local" images are known by *image_id* alone and exist on this machine only.
    """

    ref: str
    digest: Digest | None = None
    media_type: Word | None = None
    platform: Platform = "linux/amd64"
    platforms: tuple[Platform, ...] | None = None
    image_id: Digest | None = None
    source: Literal["registry", "local"] = "registry"
    facts: LockedFacts | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        try:
            reference = parse_reference(self.ref)
        except ReferenceInvalid as error:
            raise ValueError(error.message) from error
        if reference.canonical != self.ref:
            msg = f"ref must be written as {reference.canonical}"
            raise ValueError(msg)
        if self.source == "local" and (self.image_id is None or self.digest is not None):
            msg = "a local image has an image-id and no digest"
            raise ValueError(msg)
        if self.source == "registry" and self.digest is None:
            msg = "digest is missing"
            raise ValueError(msg)
        if reference.digest not in (None, self.digest):
            msg = "digest differs from the one in ref"
            raise ValueError(msg)
        return self

    @property
    def pull_reference(self) -> str:
        """What is pulled: "repository@sha256:…"; for a local image its id, which no registry knows."""
        if self.digest is None:
            return self.image_id or ""
        return parse_reference(self.ref).at(self.digest).canonical

    @property
    def identity(self) -> tuple[str | None, ...]:
        """What makes it another image. An image id counts only where it is all there is."""
        return (self.source, self.digest, self.image_id if self.source == "local" else None)

    def completed_by(self, other: "PinnedImage") -> "PinnedImage":
        """Return this pin with what only *other*, a pin of the same content, knows."""
        if (self.identity, self.platform) != (other.identity, other.platform):
            return self
        missing = {
            name: getattr(other, name)
            for name in ("media_type", "platforms", "image_id", "facts")
            if getattr(self, name) is None
        }
        return self.model_copy(update=missing)


class Lock(_Entry):
    """A whole lock file: at most one pin for each canonical reference."""

    version: StrictInt = VERSION
    images: tuple[PinnedImage, ...] = Field(default=(), alias="image")

    @model_validator(mode="after")
    def _holds_each_ref_once(self) -> Self:
        seen: set[str] = set()
        for image in self.images:
            if image.ref in seen:
                msg = f"{image.ref} is locked twice"
                raise ValueError(msg)
            seen.add(image.ref)
        return self

    @classmethod
    def of(cls, images: Iterable[PinnedImage]) -> "Lock":
        """Return a lock of *images*, sorted by reference."""
        return cls(images=tuple(sorted(images, key=lambda image: image.ref)))

    def get(self, ref: str) -> PinnedImage | None:
        """Return the pin of canonical *ref*, or None."""
        return next((image for image in self.images if image.ref == ref), None)

    def require(self, ref: str, platform: str, *, profile: str = "PROFILE") -> PinnedImage:
        """Return the pin of canonical *ref* for *platform*; *profile* is named in the hint.

        Raises:
            LockMissing: the lock has no such reference.
            LockStale: it is locked for another platform.
        """
        image = self.get(ref)
        if image is None:
            msg = f"{ref} is not locked"
            raise LockMissing(msg, hint=f"rocmrun lock {profile}")
        if image.platform != platform:
            msg = f"{ref} is locked for {image.platform}, and {platform} is asked for"
            raise LockStale(msg, hint=f"rocmrun lock {profile}")
        return image

    def text(self) -> str:
        """Return the file's content: sorted, one field a line, equal locks as equal bytes."""
        images = sorted(self.images, key=lambda image: image.ref)
        return "\n".join(
            [f"{HEADER}version = {self.version}\n", *("\n".join(_stanza(i)) + "\n" for i in images)]
        )


def parse_lock(text: str, path: str) -> Lock:
    """Read a lock file's *text*; *path* names it in errors.

    Raises:
        LockUnreadable: merge markers, broken TOML, a newer version, unknown keys, wrong values, a reference twice.
    """
    if marker := _CONFLICT.search(text):
        line = text.count("\n", 0, marker.start()) + 1
        msg = f"{path} holds merge-conflict markers (line {line})"
        raise LockUnreadable(
            msg, hint=f"take one side (git checkout --ours {path}), then: rocmrun lock"
        )
    try:
        data = load_toml(text)
    except ValueError as error:
        msg = f"{path} {error}"
        raise LockUnreadable(msg, hint="restore it from version control") from error
    _check_version(data.get("version"), path)
    try:
        return Lock.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        msg = f"{path} is not a lock file of this version"
        raise LockUnreadable(
            msg, details=tuple(_problems(error)), hint="restore it from version control"
        ) from error


def _check_version(version: Any, path: str) -> None:
    if isinstance(version, int) and version > VERSION:
        msg = f"{path} has version {version}; this rocmrun reads up to {VERSION}"
        raise LockUnreadable(msg, hint="install a newer rocmrun")
    if version is None:
        msg = f"{path} is not a lock file: it has no version"
        raise LockUnreadable(msg, hint="restore it from version control")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        msg = f"{path} is not a lock file: version is {version!r}"
        raise LockUnreadable(msg, hint="restore it from version control")


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_context=False):
        where = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]
        )
        what = "unknown key" if problem["type"] == "extra_forbidden" else problem["msg"]
        yield f"{where.lstrip('.') or 'lock'}: {what.removeprefix('Value error, ')}"


def _stanza(image: PinnedImage) -> Iterator[str]:
    yield "[[image]]"
    source = image.source if image.source != "registry" else None
    for name in ("ref", "digest", "media_type", "platform", "platforms", "image_id"):
        yield from _field(name, getattr(image, name))
    yield from _field("source", source)
    if image.facts is None:
        return
    yield ""
    yield "[image.facts]"
    for name in ("user", "rocm", "torch", "python", "gfx"):
        yield from _field(name, getattr(image.facts, name) or None)
    if image.facts.sources:
        pairs = ", ".join(
            f"{key} = {_quoted(value)}" for key, value in sorted(image.facts.sources.items())
        )
        yield f"sources = {{ {pairs} }}"


def _field(name: str, value: str | tuple[str, ...] | None) -> Iterator[str]:
    key = name.replace("_", "-")
    if isinstance(value, str):
        yield f"{key} = {_quoted(value)}"
    elif value is not None and len(value) <= 1:
        yield f"{key} = [{', '.join(map(_quoted, value))}]"
    elif value is not None:
        yield f"{key} = ["
        yield from (f"    {_quoted(item)}," for item in value)
        yield "]"


def _quoted(value: str) -> str:
    # JSON's escapes are TOML's; the models let neither control characters nor non-ASCII in.
    return json.dumps(value)
