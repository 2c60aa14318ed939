"""An engine asked about registries: what moby answers for each fault of a registry, and inside a pull's stream.

The engine is a scripted server on loopback; its answers are those that Docker Engine 20.10 gave.
"""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from rocmrun.core.manifest import DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST
from rocmrun.core.run import PullEvent
from rocmrun.errors import (
    DigestMismatch,
    EngineUnreachable,
    ImageGone,
    ManifestUnsupported,
    OutOfDisk,
    PlatformMismatch,
    RateLimited,
    RegistryDenied,
    RegistryUnavailable,
    RocmrunError,
)
from rocmrun.system.engine import DockerEngine
from tests.scripted_registry import Reply, Request, ScriptedRegistry

pytestmark = pytest.mark.enable_socket

DIGEST = f"sha256:{'a' * 64}"
REF = "example.com/team/x:1"
PINNED = f"example.com/team/x@{DIGEST}"
SECONDS = 60.0
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def daemon() -> Iterator[ScriptedRegistry]:
    scripted = ScriptedRegistry()
    yield scripted
    scripted.close()


@pytest.fixture
def engine(
    daemon: ScriptedRegistry, docker_config: Callable[[dict[str, Any]], None]
) -> Iterator[DockerEngine]:
    docker_config({})
    api = docker.APIClient(base_url=f"tcp://{daemon.host}", version="1.41", timeout=60)
    yield DockerEngine(api)
    api.close()


@pytest.fixture
def docker_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, Any]], None]:
    """Return what writes a Docker configuration for this test: the SDK finds it by the environment alone."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))

    def write(config: dict[str, Any]) -> None:
        (tmp_path / "config.json").write_text(json.dumps(config))

    return write


def distribution(media_type: str, platforms: list[dict[str, str]] | None) -> Reply:
    body = {"Descriptor": {"digest": DIGEST, "mediaType": media_type}, "Platforms": platforms}
    return Reply(body=json.dumps(body).encode(), headers=JSON)


def failing(status: int, message: str) -> Callable[[Request], Reply]:
    return lambda _request: Reply(
        status=status, body=json.dumps({"message": message}).encode(), headers=JSON
    )


def streaming(*events: dict[str, Any]) -> Callable[[Request], Reply]:
    body = b"".join(json.dumps(event).encode() + b"\r\n" for event in events)
    return lambda _request: Reply(body=body, headers=JSON, chunked=True)


AMD, ARM = (
    {"os": "linux", "architecture": name, "variant": variant}
    for name, variant in (("amd64", ""), ("arm64", "v8"))
)
UNKNOWN = {"os": "unknown", "architecture": "unknown"}


@pytest.mark.parametrize(
    ("media_type", "platforms", "expected"),
    [
        (DOCKER_MANIFEST, [AMD], ("linux/amd64",)),
        (OCI_INDEX, [ARM, AMD, UNKNOWN], ("linux/amd64", "linux/arm64/v8")),
        (OCI_MANIFEST, None, None),
        (OCI_INDEX, [UNKNOWN], ()),
    ],
)
def test_what_a_reference_names(
    daemon: ScriptedRegistry,
    engine: DockerEngine,
    media_type: str,
    platforms: list[dict[str, str]] | None,
    expected: tuple[str, ...] | None,
) -> None:
    """Platforms null (a single OCI manifest) is "not told"; attestations, unknown/unknown, are no platform."""
    daemon.script = lambda _request: distribution(media_type, platforms)

    found = engine.resolve(REF, SECONDS)

    assert (found.digest, found.media_type, found.platforms) == (DIGEST, media_type, expected)
    assert daemon.asked() == [f"GET /v1.41/distribution/{REF}/json"]


@pytest.mark.parametrize(
    ("status", "message", "error", "says"),
    [
        (500, "no basic auth credentials", RegistryDenied, "example.com wants a login"),
        (401, "unauthorized: incorrect username or password", RegistryDenied, "refuses the stored login"),
        (403, "denied: requested access to the resource is denied", RegistryDenied, "does not exist, or"),
        (404, "manifest unknown: manifest unknown", ImageGone, "has no"),
        (404, "pull access denied, repository does not exist", RegistryDenied, "does not exist, or"),
        (429, "toomanyrequests: You have reached your pull rate limit", RateLimited, "too many requests"),
        (500, "toomanyrequests: too many requests", RateLimited, "too many requests"),
        (500, "received unexpected HTTP status: 503 Service Unavailable", RegistryUnavailable, "is broken"),
        (500, "dial tcp 10.0.0.1:443: connect: connection refused", RegistryUnavailable, "does not answer"),
        (500, "dial tcp: lookup example.com: no such host", RegistryUnavailable, "does not resolve"),
        (500, "net/http: request canceled (Client.Timeout exceeded)", RegistryUnavailable, "in time"),
        (500, "x509: certificate signed by unknown authority", RegistryUnavailable, "cannot be trusted"),
        (500, "error unmarshalling content: missing signature key", ManifestUnsupported, "schema 1"),
    ],
)  # fmt: skip
def test_faults_of_a_registry_have_names(
    daemon: ScriptedRegistry,
    engine: DockerEngine,
    status: int,
    message: str,
    error: type[RocmrunError],
    says: str,
) -> None:
    """The same whether the engine is asked what a reference names or told to pull it."""
    daemon.script = failing(status, message)

    with pytest.raises(error, match=says):
        engine.resolve(REF, SECONDS)
    with pytest.raises(error, match=says):
        list(engine.pull(PINNED, "linux/amd64"))


def test_an_engine_that_hangs_is_not_waited_for(
    daemon: ScriptedRegistry, engine: DockerEngine
) -> None:
    """requests' own error comes out of the SDK then, which is no DockerException."""
    daemon.script = lambda _request: Reply(seconds_before=30)

    with pytest.raises(EngineUnreachable, match="did not answer in time"):
        engine.resolve(REF, 0.3)


def test_a_pull_is_by_digest_and_platform_and_tells_its_progress(
    daemon: ScriptedRegistry, engine: DockerEngine
) -> None:
    daemon.script = streaming(
        {"status": "Pulling from team/x", "id": DIGEST},
        {"status": "Downloading", "id": "abc", "progressDetail": {"current": 1, "total": 2}},
        {"status": "Status: Downloaded newer image"},
    )

    events = list(engine.pull(PINNED, "linux/amd64"))

    assert events[1:] == [
        PullEvent(layer="abc", status="Downloading", current=1, total=2),
        PullEvent(status="Status: Downloaded newer image"),
    ]
    (request,) = daemon.requests
    assert request.path == "/v1.41/images/create"
    assert f"tag={DIGEST.replace(':', '%3A')}" in request.query
    assert "platform=linux%2Famd64" in request.query


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("write /layer: no space left on device", OutOfDisk, "disk is full"),
        ("Cannot overwrite digest sha256:aa", PlatformMismatch, "another platform of"),
        ("manifest verification failed for digest sha256:aa", DigestMismatch, "sent other content"),
        ("toomanyrequests: pull rate limit", RateLimited, "too many requests"),
        ("unexpected EOF", RegistryUnavailable, "does not answer"),
        ("no matching manifest for linux/amd64 in the manifest list entries", PlatformMismatch, "no image for"),
    ],
)  # fmt: skip
def test_an_error_inside_a_pull_is_an_error(
    daemon: ScriptedRegistry, engine: DockerEngine, text: str, error: type[RocmrunError], says: str
) -> None:
    """It comes with status 200, after layers that went well: the SDK's own pull hides it."""
    daemon.script = streaming(
        {"status": "Download complete", "id": "abc"}, {"error": text, "errorDetail": {"message": text}}
    )  # fmt: skip
    seen: list[str] = []

    with pytest.raises(error, match=says):
        seen.extend(event.status for event in engine.pull(PINNED, "linux/amd64"))
    assert seen == ["Download complete"]


def test_an_error_that_nobody_knows_is_an_error_too(
    daemon: ScriptedRegistry, engine: DockerEngine
) -> None:
    daemon.script = streaming({"error": "the sky is falling"})

    with pytest.raises(RocmrunError, match="the sky is falling"):
        list(engine.pull(PINNED, "linux/amd64"))


def test_a_missing_helper_means_anonymous_with_one_warning_a_registry(
    daemon: ScriptedRegistry, docker_config: Callable[[dict[str, Any]], None]
) -> None:
    """Public images need no login; the SDK alone gives up."""
    docker_config({"credsStore": "absent-for-tests"})
    engine = DockerEngine(docker.APIClient(base_url=f"tcp://{daemon.host}", version="1.41"))
    daemon.script = lambda _request: distribution(DOCKER_MANIFEST, [AMD])

    warnings = [engine.resolve(ref, SECONDS).warning for ref in (REF, REF, "other.example.com/x:1")]

    told = "docker-credential-absent-for-tests is not installed: {} is asked without a login"
    assert warnings == [told.format("example.com"), "", told.format("other.example.com")]
    daemon.script = streaming({"status": "x"})
    third = list(engine.pull("third.example.com/x:1", "linux/amd64"))
    assert third[0] == PullEvent(warning=told.format("third.example.com"))
    assert all("X-Registry-Auth" not in request.headers for request in daemon.requests[:3])


def test_a_stored_login_goes_to_its_registry_alone(
    daemon: ScriptedRegistry, docker_config: Callable[[dict[str, Any]], None]
) -> None:
    auth = base64.b64encode(b"me:s3cret").decode()
    docker_config({"auths": {"example.com": {"auth": auth}}})
    engine = DockerEngine(docker.APIClient(base_url=f"tcp://{daemon.host}", version="1.41"))
    daemon.script = lambda _request: distribution(DOCKER_MANIFEST, [AMD])

    engine.resolve(REF, SECONDS)
    engine.resolve("other.example.com/x:1", SECONDS)

    own, other = (request.headers.get("X-Registry-Auth", "") for request in daemon.requests)
    assert json.loads(base64.urlsafe_b64decode(own))["password"] == "s3cret"
    assert other == ""


def test_an_image_that_is_removed_while_they_are_listed_is_none_of_them(
    daemon: ScriptedRegistry, engine: DockerEngine
) -> None:
    """Listed and gone a moment later: another command has removed it."""

    def answer(request: Request) -> Reply:
        if request.path.endswith("/images/json"):
            return Reply(body=json.dumps([{"Id": "stays"}, {"Id": "goes"}]).encode(), headers=JSON)
        if "stays" in request.path:
            body = {"Id": "stays", "RepoTags": ["rocmrun/locked:a"], "Size": 7}
            return Reply(body=json.dumps(body).encode(), headers=JSON)
        return Reply(status=404, body=b'{"message": "No such image: goes"}', headers=JSON)

    daemon.script = answer

    assert [image.image_id for image in engine.named_images("rocmrun/locked")] == ["stays"]
