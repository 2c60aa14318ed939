"""Whom `rocmrun lock` asks: an engine, or registries directly."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.lock import Resolved
from rocmrun.core.manifest import Manifest, choose_platform, platform_name
from rocmrun.core.reference import Reference, parse_reference
from rocmrun.errors import EngineDenied, EngineUnreachable, EngineUnsuitable, ManifestUnsupported
from rocmrun.system.docker_config import DockerLogins, docker_config_path, podman_auth_path
from rocmrun.system.registry import RegistryClient
from rocmrun.usecases.lock_ask import Described, LocalImages, Resolver, Sources

ResolverName = Literal["auto", "engine", "registry"]


class LockEngine(Resolver, LocalImages, Protocol):
    """As much of an engine as a lock asks."""

    def facts(self) -> EngineFacts:
        """Return what the engine says of itself."""
        ...

    def asks_registries(self) -> bool:
        """Whether it can say what a reference names at its registry."""
        ...


class RegistryResolver:
    """Resolves by asking registries for manifests, and reads configs without pulling.

    With *locked* (reference → digest) it asks for the digest's name alone first (HEAD, which costs no
    pull quota), and reads a manifest only where that name is another.
    """

    def __init__(self, client: RegistryClient, *, locked: Mapping[str, str] | None = None) -> None:
        self._client = client
        self._locked = locked or {}

    def resolve(self, reference: str, timeout_seconds: float) -> Resolved:
        """Return what *reference* names: for an index with its platforms."""
        parsed = parse_reference(reference)
        if (known := self._locked.get(reference)) and (
            self._client.named_digest(parsed, timeout_seconds) == known
        ):
            return Resolved(digest=known)
        manifest = self._client.manifest(parsed, timeout_seconds)
        return Resolved(
            digest=manifest.digest,
            media_type=manifest.media_type,
            platforms=manifest.platforms if manifest.is_index else None,
        )

    def describe(
        self, reference: Reference, platform: str, timeout_seconds: float, *, facts: bool
    ) -> Described:
        """Return the id and platform of *platform*'s image in *reference*; with *facts* its config too."""
        manifest = self._client.manifest(reference, timeout_seconds)
        found: str | None = None
        if manifest.is_index:
            child = manifest.child_for(platform, reference.canonical)
            found = child.platform
            manifest = self._client.manifest(reference.at(child.digest), timeout_seconds)
        image_id = _image_id(manifest, reference.canonical)
        if found is not None and not facts:
            return Described(image_id=image_id, platform=found)
        config = self._client.config(reference, image_id, timeout_seconds)
        if found is None:
            # A single manifest is pulled whatever platform is asked for: only its config tells.
            own = platform_name(config)
            found = choose_platform(platform, [own] if own else [], reference.canonical)
        return Described(image_id=image_id, platform=found, config=config if facts else None)


def _image_id(manifest: Manifest, what: str) -> str:
    if manifest.config_digest is None:
        msg = f"{what} is an index that lists another index"
        raise ManifestUnsupported(msg, hint="lock what it lists by digest: NAME@sha256:…")
    return manifest.config_digest


def registry_sources(
    warn: Callable[[str], None], *, locked: Mapping[str, str] | None = None
) -> Sources:
    """Return sources that ask registries directly, with the logins of this user's Docker or Podman configuration."""
    path, other = docker_config_path(os.environ, Path.home()), podman_auth_path(os.environ)
    logins = DockerLogins(path, warn=warn, other=other)
    resolver = RegistryResolver(RegistryClient(login=logins), locked=locked)
    return Sources(resolver=resolver, describer=resolver, describe_always=True)


def engine_sources(engine: LockEngine, warn: Callable[[str], None]) -> Sources:
    """Return sources that ask through *engine*: with its mirrors, proxies and certificates.

    An engine tells no config of an image that it has not pulled: facts come from registries directly.
    """
    if mirrors := engine.facts().mirrors:
        warn(
            f"the engine asks mirrors first ({', '.join(mirrors)}): a stale one gives an old digest; "
            "no mirror is written to the lock"
        )
    describer = registry_sources(warn).describer
    return Sources(resolver=engine, describer=describer, local=engine)


def open_sources(
    name: ResolverName,
    *,
    connect: Callable[[], LockEngine],
    warn: Callable[[str], None],
    locked: Mapping[str, str] | None = None,
) -> Sources:
    """Return the sources that --resolver names; "auto" is an engine if one answers and can ask, else registries.

    Args:
        name: What --resolver says.
        connect: Connects to the engine; not called for "registry".
        warn: Takes what is worth saying.
        locked: Reference → digest of pins that are expected to be unchanged (for --check).
    """
    if name == "registry":
        return registry_sources(warn, locked=locked)
    try:
        engine = connect()
        if engine.asks_registries():
            return engine_sources(engine, warn)
        if name == "engine":
            raise _cannot_ask(engine.facts())
    except (EngineUnreachable, EngineDenied, EngineUnsuitable):
        if name == "engine":
            raise
        return registry_sources(warn, locked=locked)
    return replace(registry_sources(warn, locked=locked), local=engine)


def _cannot_ask(engine: EngineFacts) -> EngineUnsuitable:
    msg = f"{engine.kind} {engine.version} cannot ask registries what a reference names (its API has no /distribution)"
    return EngineUnsuitable(msg, hint="leave --resolver out: registries are then asked directly")
