"""A registry's refusal is named alike, whether it came by HTTP or through an engine's words."""

import pytest

from rocmrun.core.registry_errors import classify, host_of
from rocmrun.errors import (
    DigestMismatch,
    EngineFailed,
    ImageGone,
    ManifestUnsupported,
    PlatformMismatch,
    RateLimited,
    ReferenceInvalid,
    RegistryDenied,
    RegistryUnavailable,
    RocmrunError,
)

WHAT = "docker.io/rocm/pytorch:x"

# What Docker Engine said, as status and explanation.
ENGINE: list[tuple[int | None, str, type[RocmrunError]]] = [
    (404, "manifest unknown: manifest unknown", ImageGone),
    (404, "manifest for a:b not found: manifest unknown: manifest unknown", ImageGone),
    (404, "name unknown: repository name not known to registry", ImageGone),
    (404, "", ImageGone),
    (
        404,
        "pull access denied for a, repository does not exist or may require 'docker login': denied: "
        "requested access to the resource is denied",
        RegistryDenied,
    ),
    (404, "no matching manifest for linux/arm64/v8 in the manifest list entries", PlatformMismatch),
    (500, "Get http://127.0.0.1:5055/v2/a/manifests/b: no basic auth credentials", RegistryDenied),
    (500, "unauthorized: authentication required", RegistryDenied),
    (500, "unauthorized: incorrect username or password", RegistryDenied),
    (401, "", RegistryDenied),
    (403, "denied: requested access to the resource is denied", RegistryDenied),
    (403, "", RegistryDenied),
    (500, "denied: insufficient_scope: authorization failed", RegistryDenied),
    (429, "toomanyrequests: You have reached your pull rate limit.", RateLimited),
    (500, "toomanyrequests: You have reached your unauthenticated pull rate limit.", RateLimited),
    (429, "", RateLimited),
    (
        500,
        "received unexpected HTTP status: 503 Service Unavailable",
        RegistryUnavailable,
    ),
    (500, "dial tcp 127.0.0.1:1: connect: connection refused", RegistryUnavailable),
    (500, "dial tcp: lookup nowhere on 1.1.1.1:53: no such host", RegistryUnavailable),
    (500, "dial tcp: i/o timeout", RegistryUnavailable),
    (500, "context deadline exceeded (Client.Timeout exceeded)", RegistryUnavailable),
    (500, "proxyconnect tcp: dial tcp 10.0.0.1:3128: connect: refused", RegistryUnavailable),
    (500, "x509: certificate signed by unknown authority", RegistryUnavailable),
    (500, "http: server gave HTTP response to HTTPS client", RegistryUnavailable),
    (500, "manifest verification failed for digest sha256:12", DigestMismatch),
    (500, "missing signature key", ManifestUnsupported),
    (
        500,
        "[DEPRECATION NOTICE] Docker Image Format v1 and Docker Image manifest version 2, schema 1 "
        "support is disabled by default",
        ManifestUnsupported,
    ),
    (400, "invalid reference format: repository name must be lowercase", ReferenceInvalid),
    (400, "something new", ReferenceInvalid),
    (500, "something new", EngineFailed),
    (None, "something new", EngineFailed),
]


@pytest.mark.parametrize(("status", "text", "error"), ENGINE)
def test_an_engines_words(status: int | None, text: str, error: type[RocmrunError]) -> None:
    """The text decides first: engines wrap what registries answer in other statuses."""
    found = classify(status, text, WHAT)

    assert error is type(found)
    assert "docker.io" in found.message


REGISTRY: list[tuple[int | None, str, type[RocmrunError]]] = [
    (503, "denied", RegistryUnavailable),
    (500, "manifest unknown", RegistryUnavailable),
    (429, "denied", RateLimited),
    (408, "", RegistryUnavailable),
    (404, "<html>not here</html>", ImageGone),
    (418, "", RegistryUnavailable),
    (None, "Connection refused", RegistryUnavailable),
    (None, "[SSL: WRONG_VERSION_NUMBER] wrong version number", RegistryUnavailable),
    (None, "something new", RegistryUnavailable),
]


@pytest.mark.parametrize(("status", "text", "error"), REGISTRY)
def test_a_registrys_own_answer(status: int | None, text: str, error: type[RocmrunError]) -> None:
    """Its own status is certain where it says that it is broken or was asked too much."""
    assert error is type(classify(status, text, WHAT, via_engine=False))


def test_what_comes_from_outside_is_bounded_and_plain() -> None:
    """A registry's words reach a terminal: no escapes, no novels, no line breaks."""
    found = classify(500, "\x1b[31mred\n" + "x" * 5000, WHAT, via_engine=False)

    assert ": red " in found.message
    assert "\x1b" not in found.message
    assert len(found.message) < 400


def test_waiting_is_said_as_the_registry_says_it() -> None:
    """Seconds or a date."""
    assert classify(429, "", WHAT, retry_after="30").message.endswith("wait 30 seconds")
    assert classify(429, "", WHAT, retry_after="Mon").message.endswith("wait until Mon")
    assert classify(404, "", WHAT, retry_after="30").message.endswith("has no " + WHAT)


@pytest.mark.parametrize(
    ("what", "host"),
    [
        ("127.0.0.1:5055/a:b", "127.0.0.1:5055"),
        ("ghcr.io/a/b@sha256:12", "ghcr.io"),
        ("localhost/a", "localhost"),
        ("a/b", "docker.io"),
        ("a", "docker.io"),
    ],
)
def test_the_host_to_log_in_to(what: str, host: str) -> None:
    """For messages and `docker login`."""
    assert host == host_of(what)
    assert f"docker login {host}" == classify(401, "", what).hint
