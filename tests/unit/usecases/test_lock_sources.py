"""Whom `rocmrun lock` asks, and what a registry is asked for."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.image import ImageFacts
from rocmrun.core.lock import Resolved
from rocmrun.core.manifest import OCI_INDEX, OCI_MANIFEST
from rocmrun.errors import (
    EngineDenied,
    EngineUnreachable,
    EngineUnsuitable,
    ImageGone,
    ManifestUnsupported,
    PlatformMismatch,
    RocmrunError,
)
from rocmrun.system.registry import RegistryClient
from rocmrun.usecases.lock_sources import RegistryResolver, open_sources
from tests.scripted_registry import CONFIG, Reply, Request, ScriptedRegistry, digest, image

SECONDS = 60.0
INDEX_CHILD = image()
INDEX = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": OCI_INDEX,
        "manifests": [
            {
                "digest": digest(INDEX_CHILD),
                "mediaType": OCI_MANIFEST,
                "platform": {"os": "linux", "architecture": "amd64"},
            },
            {
                "digest": digest(b"arm"),
                "mediaType": OCI_MANIFEST,
                "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"},
            },
        ],
    }
).encode()
NESTED = INDEX.replace(digest(INDEX_CHILD).encode(), digest(INDEX).encode())
CONTENT = dict.fromkeys((INDEX, NESTED), OCI_INDEX) | {INDEX_CHILD: OCI_MANIFEST}
TAGS = {"index": INDEX, "single": INDEX_CHILD, "nested": NESTED}


def serve(request: Request) -> Reply:
    """A right registry of the content above."""
    kind, _, name = request.path.removeprefix("/v2/a/b/").partition("/")
    if kind == "blobs":
        return Reply(body=CONFIG) if name == digest(CONFIG) else Reply(404)
    by_digest = {digest(body): body for body in CONTENT}
    body = TAGS.get(name) or by_digest.get(name)
    if body is None:
        return Reply(404)
    headers = {"Content-Type": CONTENT[body], "Docker-Content-Digest": digest(body)}
    return Reply(body=body, headers=headers)


@pytest.fixture
def registry() -> Iterator[ScriptedRegistry]:
    scripted = ScriptedRegistry()
    scripted.script = serve
    yield scripted
    scripted.close()


@pytest.mark.enable_socket
def test_a_new_index_costs_two_requests(registry: ScriptedRegistry) -> None:
    """The index, and the platform's manifest for the image's id; no config unless it is asked for."""
    resolver = RegistryResolver(RegistryClient())
    reference = registry.ref("a/b:index")

    resolved = resolver.resolve(reference.canonical, SECONDS)
    described = resolver.describe(reference.at(digest(INDEX)), "linux/amd64", SECONDS, facts=False)

    assert resolved == Resolved(
        digest=digest(INDEX), media_type=OCI_INDEX, platforms=("linux/amd64", "linux/arm64/v8")
    )
    assert (digest(CONFIG), "linux/amd64", None) == (
        described.image_id,
        described.platform,
        described.config,
    )
    assert [
        "GET /v2/a/b/manifests/index",
        f"GET /v2/a/b/manifests/{digest(INDEX_CHILD)}",
    ] == registry.asked()


@pytest.mark.enable_socket
def test_the_platform_of_a_single_manifest_stands_in_its_config(registry: ScriptedRegistry) -> None:
    """Engines do not tell it; a wrong one is refused before anything is locked."""
    resolver = RegistryResolver(RegistryClient())
    reference = registry.ref("a/b:single")

    resolved = resolver.resolve(reference.canonical, SECONDS)
    at = reference.at(digest(INDEX_CHILD))
    described = resolver.describe(at, "linux/amd64", SECONDS, facts=False)

    assert resolved.platforms is None
    assert (digest(CONFIG), "linux/amd64") == (described.image_id, described.platform)
    assert len(registry.requests) == 2
    with pytest.raises(PlatformMismatch, match="it has linux/amd64"):
        resolver.describe(at, "linux/arm64", SECONDS, facts=False)


@pytest.mark.enable_socket
def test_claims_come_from_the_config(registry: ScriptedRegistry) -> None:
    """A few kilobytes instead of a pull."""
    resolver = RegistryResolver(RegistryClient())

    described = resolver.describe(
        registry.ref(f"a/b@{digest(INDEX)}"), "linux/amd64", SECONDS, facts=True
    )

    claims = described.claims(None)
    assert claims is not None
    assert (claims.rocm, claims.sources) == ("7.1.0", {"rocm": "env:ROCM_VERSION"})


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    ("platform", "error"), [("linux/s390x", PlatformMismatch), ("linux/arm64", ImageGone)]
)
def test_a_platform_that_is_not_there(
    registry: ScriptedRegistry, platform: str, error: type[RocmrunError]
) -> None:
    """Not listed, and listed but lost, are two things."""
    resolver = RegistryResolver(RegistryClient())

    with pytest.raises(error):
        resolver.describe(registry.ref(f"a/b@{digest(INDEX)}"), platform, SECONDS, facts=False)


@pytest.mark.enable_socket
def test_an_index_in_an_index_is_refused(registry: ScriptedRegistry) -> None:
    """What a pull would start of it is not clear."""
    resolver = RegistryResolver(RegistryClient())

    with pytest.raises(ManifestUnsupported, match="another index"):
        resolver.describe(
            registry.ref(f"a/b@{digest(NESTED)}"), "linux/amd64", SECONDS, facts=False
        )


@pytest.mark.enable_socket
def test_an_unchanged_tag_costs_one_head(registry: ScriptedRegistry) -> None:
    """HEAD counts against no quota; GET only where the name differs, and the bytes decide."""
    reference = registry.ref("a/b:index").canonical
    same = RegistryResolver(RegistryClient(), locked={reference: digest(INDEX)})
    moved = RegistryResolver(RegistryClient(), locked={reference: digest(b"old")})

    assert digest(INDEX) == same.resolve(reference, SECONDS).digest
    assert registry.asked() == ["HEAD /v2/a/b/manifests/index"]
    assert digest(INDEX) == moved.resolve(reference, SECONDS).digest
    assert [request.method for request in registry.requests[1:]] == ["HEAD", "GET"]


@dataclass
class FakeEngine:
    """An engine that answers, as far as a lock asks it."""

    kind: str = "docker"
    mirrors: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    def facts(self) -> EngineFacts:
        return EngineFacts(
            kind=self.kind, version="28", api_version="1.41", address="x", mirrors=self.mirrors
        )

    def asks_registries(self) -> bool:
        return self.kind == "docker"

    def resolve(self, reference: str, timeout_seconds: float) -> Resolved:  # noqa: ARG002
        self.asked.append(reference)
        return Resolved(digest=digest(b"x"))

    def history(self, image_id: str) -> tuple[str, ...]:  # noqa: ARG002
        """Nothing is known of any image."""
        return ()

    def image(self, name: str) -> ImageFacts | None:  # noqa: ARG002
        return None


def refusing(error: RocmrunError) -> Callable[[], FakeEngine]:
    def connect() -> FakeEngine:
        raise error

    return connect


def test_auto_is_the_engine_if_one_answers() -> None:
    """It has the mirrors, proxies and certificates that a launch will use."""
    engine = FakeEngine()

    sources = open_sources("auto", connect=lambda: engine, warn=lambda _text: None)

    assert sources.resolver is engine
    assert sources.local is engine
    assert not sources.describe_always


@pytest.mark.parametrize("error", [EngineUnreachable("none"), EngineDenied("no")])
def test_auto_is_registries_without_an_engine(error: RocmrunError) -> None:
    """A machine without one locks as well; --resolver engine insists."""
    sources = open_sources("auto", connect=refusing(error), warn=lambda _text: None)

    assert isinstance(sources.resolver, RegistryResolver)
    assert sources.describe_always
    with pytest.raises(type(error)):
        open_sources("engine", connect=refusing(error), warn=lambda _text: None)


def test_an_engine_that_cannot_ask_is_asked_for_its_own_images_alone() -> None:
    """Podman has no call for it: registries are asked directly, and --resolver engine says so."""
    engine = FakeEngine(kind="podman")

    sources = open_sources("auto", connect=lambda: engine, warn=lambda _text: None)

    assert isinstance(sources.resolver, RegistryResolver)
    assert sources.describe_always
    assert sources.local is engine
    with pytest.raises(EngineUnsuitable, match="podman 28 cannot ask registries") as refused:
        open_sources("engine", connect=lambda: engine, warn=lambda _text: None)
    assert "--resolver" in (refused.value.hint or "")
    assert engine.asked == []


def test_registry_connects_to_no_engine() -> None:
    """So docker is not even imported."""
    bug = AssertionError("no engine was to be asked")

    def connect() -> FakeEngine:
        raise bug

    sources = open_sources("registry", connect=connect, warn=lambda _text: None)

    assert isinstance(sources.resolver, RegistryResolver)


def test_mirrors_are_warned_about() -> None:
    """A stale one gives an old digest, and none is ever written to the lock."""
    warnings: list[str] = []

    open_sources(
        "engine", connect=lambda: FakeEngine(mirrors=("https://m.io/",)), warn=warnings.append
    )

    assert "https://m.io/" in warnings[0]
