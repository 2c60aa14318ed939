"""Registry manifests: digest of the bytes, what is inside, which child is for which platform. Fetches nothing."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rocmrun.errors import ManifestUnsupported, PlatformMismatch, RegistryUnavailable

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEXES = frozenset({OCI_INDEX, DOCKER_LIST})
MANIFESTS = frozenset({OCI_MANIFEST, DOCKER_MANIFEST})
# All four, always: with fewer, some registries convert, and the digest is then another one.
ACCEPT = f"{OCI_INDEX}, {OCI_MANIFEST}, {DOCKER_LIST}, {DOCKER_MANIFEST}"

_CONFIGS = frozenset(
    {
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.docker.container.image.v1+json",
    }
)
_ATTESTATION = "vnd.docker.reference.type"
# Variants that name the plain architecture, as containerd's platform package treats them.
_DEFAULT_VARIANTS = {("arm64", "v8"), ("amd64", "v1"), ("arm", "v7")}
_ARCHITECTURES = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One entry of an index. *platform* is "os/architecture[/variant]"."""

    digest: str
    media_type: str
    platform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """An index or an image manifest.

    Attributes:
        digest: SHA-256 of the very bytes that came.
        children: What an index offers to run: attestations and unknown platforms are left out.
        config_digest: The image id of an image manifest; None for an index.
    """

    digest: str
    media_type: str
    children: tuple[Child, ...] = ()
    config_digest: str | None = None

    @property
    def is_index(self) -> bool:
        """Whether it lists images instead of being one."""
        return self.media_type in INDEXES

    @property
    def platforms(self) -> tuple[str, ...]:
        """What an index offers, sorted."""
        return tuple(sorted({child.platform for child in self.children}))

    def child_for(self, platform: str, what: str) -> Child:
        """Return the one child for *platform*; *what* names the index in errors.

        Raises:
            PlatformMismatch: there is none, or several that differ in their variant.
        """
        chosen = choose_platform(platform, self.platforms, what)
        found = {child.digest: child for child in self.children if child.platform == chosen}
        if len(found) > 1:
            msg = f"{what} holds {len(found)} different images for {chosen}"
            raise PlatformMismatch(msg, hint="lock one of its children by digest: NAME@sha256:…")
        return next(iter(found.values()))


def digest_of(body: bytes) -> str:
    """Return the digest of a manifest's exact bytes."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def parse_manifest(body: bytes, content_type: str, what: str) -> Manifest:
    """Read a manifest's bytes; *content_type* is the registry's header, *what* names it in errors.

    Raises:
        ManifestUnsupported: schema 1, or something that is no image.
        RegistryUnavailable: the body is no JSON object.
    """
    data = _json_object(body, what)
    media_type = _media_type(data, content_type)
    if media_type in INDEXES:
        children = tuple(filter(None, map(_child, _objects(data.get("manifests")))))
        return Manifest(digest=digest_of(body), media_type=media_type, children=children)
    if data.get("schemaVersion") == 1:
        msg = f"{what} is published in the obsolete manifest schema 1, which no current engine can pull by digest"
        raise ManifestUnsupported(
            msg, hint="ask its publisher to push it again, or copy it with a current tool"
        )
    config = data.get("config")
    if media_type not in MANIFESTS or not isinstance(config, Mapping):
        msg = f"{what} is no image: its registry calls it {media_type or 'nothing'}"
        raise ManifestUnsupported(msg)
    if config.get("mediaType") not in _CONFIGS:
        msg = f"{what} is no image but an artifact with a config of type {config.get('mediaType')}"
        raise ManifestUnsupported(msg)
    return Manifest(
        digest=digest_of(body), media_type=media_type, config_digest=str(config.get("digest"))
    )


def parse_config(body: bytes, what: str) -> dict[str, Any]:
    """Read an image's config blob.

    Raises:
        RegistryUnavailable: it is no JSON object.
    """
    return _json_object(body, what)


def platform_name(parts: Mapping[str, Any]) -> str | None:
    """Return "os/architecture[/variant]" of a platform object, or None for unknown ones (attestations)."""
    words = [str(parts.get(key) or "") for key in ("os", "architecture", "variant")]
    if not words[0] or not words[1] or "unknown" in words[:2]:
        return None
    return "/".join(word for word in words if word)


def choose_platform(wanted: str, offered: Iterable[str], what: str) -> str:
    """Return the offered platform that *wanted* means.

    Raises:
        PlatformMismatch: none is, or a variant must be chosen.
    """
    offers = sorted(set(offered))
    exact = [offer for offer in offers if _plain(offer) == _plain(wanted)]
    if exact:
        return exact[0]
    near = [offer for offer in offers if _plain(offer).startswith(f"{_plain(wanted)}/")]
    if len(near) == 1:
        return near[0]
    if near:
        msg = f"{what} has several variants of {wanted}: {', '.join(near)}"
        raise PlatformMismatch(msg, hint="name one: platform in the profile, or --platform")
    msg = f"{what} is not made for {wanted}; it has {', '.join(offers) or 'nothing to run'}"
    raise PlatformMismatch(msg, hint="set platform in the profile, or --platform")


def _plain(platform: str) -> str:
    system, _, rest = platform.lower().partition("/")
    architecture, _, variant = rest.partition("/")
    architecture = _ARCHITECTURES.get(architecture, architecture)
    if not variant or (architecture, variant) in _DEFAULT_VARIANTS:
        return f"{system}/{architecture}"
    return f"{system}/{architecture}/{variant}"


def _media_type(data: Mapping[str, Any], content_type: str) -> str:
    """The body's own word first (it is hashed, the header is not), then the header, then the shape."""
    header = content_type.partition(";")[0].strip().lower()
    own = data.get("mediaType")
    known = INDEXES | MANIFESTS
    for candidate in (own, header):
        if candidate in known:
            return str(candidate)
    if own is None and data.get("schemaVersion") == 2:  # noqa: PLR2004  # the schema's number
        if isinstance(data.get("manifests"), list):
            return OCI_INDEX
        if "config" in data and "layers" in data:
            return OCI_MANIFEST
    return str(own or header)


def _child(entry: Mapping[str, Any]) -> Child | None:
    annotations = entry.get("annotations")
    if isinstance(annotations, Mapping) and _ATTESTATION in annotations:
        return None
    platform = entry.get("platform")
    name = platform_name(platform) if isinstance(platform, Mapping) else None
    if name is None or not isinstance(entry.get("digest"), str):
        return None
    return Child(
        digest=entry["digest"], media_type=str(entry.get("mediaType") or ""), platform=name
    )


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _json_object(body: bytes, what: str) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        msg = f"the registry answered for {what} with something that is not JSON"
        raise RegistryUnavailable(msg, hint="a proxy or a login page may stand in between")
    return data
