"""The registry client against a scripted registry on loopback: the right answers, and every wrong one."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.credentials import Credentials
from rocmrun.core.manifest import ACCEPT, DOCKER_LIST, DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST
from rocmrun.errors import (
    DigestMismatch,
    ImageGone,
    ManifestUnsupported,
    RateLimited,
    RegistryDenied,
    RegistryUnavailable,
)
from rocmrun.system.registry import RegistryClient
from tests.scripted_registry import (
    CONFIG,
    Reply,
    Request,
    Script,
    ScriptedRegistry,
    digest,
    image,
    serving,
)

pytestmark = pytest.mark.enable_socket

SECONDS = 60.0


@pytest.fixture
def registry() -> Iterator[ScriptedRegistry]:
    scripted = ScriptedRegistry()
    yield scripted
    scripted.close()


def test_a_manifest_has_the_digest_of_its_bytes(registry: ScriptedRegistry) -> None:
    """One GET, all four types accepted, nothing compressed."""
    body = image()
    registry.script = serving(body)

    manifest = RegistryClient().manifest(registry.ref(), SECONDS)

    assert (digest(body), OCI_MANIFEST) == (manifest.digest, manifest.media_type)
    assert digest(CONFIG) == manifest.config_digest
    assert registry.asked() == ["GET /v2/a/b/manifests/t"]
    assert registry.requests[0].headers["Accept"] == ACCEPT
    assert registry.requests[0].headers["Accept-Encoding"] == "identity"
    assert "Authorization" not in registry.requests[0].headers


def test_without_a_tag_latest_is_asked_for(registry: ScriptedRegistry) -> None:
    """As every other tool does."""
    registry.script = serving(image())

    RegistryClient().manifest(registry.ref("a"), SECONDS)

    assert registry.asked() == ["GET /v2/a/manifests/latest"]


def test_by_digest_the_tag_is_ignored_and_the_second_time_costs_nothing(
    registry: ScriptedRegistry,
) -> None:
    """Content by digest cannot change: it is asked for once."""
    body = image()
    registry.script = serving(body)
    client = RegistryClient()
    reference = registry.ref(f"a/b:t@{digest(body)}")

    assert client.manifest(reference, SECONDS) == client.manifest(reference, SECONDS)
    assert [f"GET /v2/a/b/manifests/{digest(body)}"] == registry.asked()
    assert client.requests_sent == 1


@pytest.mark.parametrize("header", [None, "", "md5:abc", "nonsense"])
def test_a_missing_or_odd_digest_header_is_not_needed(
    registry: ScriptedRegistry, header: str | None
) -> None:
    """The bytes are what counts."""
    registry.script = serving(image(), header=header)

    assert digest(image()) == RegistryClient().manifest(registry.ref(), SECONDS).digest


def test_a_lying_digest_header_is_refused(registry: ScriptedRegistry) -> None:
    """An engine believes the header and fails at the pull; here it is seen at once."""
    registry.script = serving(image(), header=digest(b"something else"))

    with pytest.raises(DigestMismatch, match="sent content of digest"):
        RegistryClient().manifest(registry.ref(), SECONDS)


def test_other_content_than_the_digest_asked_for_is_refused(registry: ScriptedRegistry) -> None:
    """Also when the header agrees with the content."""
    registry.script = serving(image())

    with pytest.raises(DigestMismatch):
        RegistryClient().manifest(registry.ref(f"a@{digest(b'wanted')}"), SECONDS)


def test_an_index_lists_what_runs(registry: ScriptedRegistry) -> None:
    """Attestations and unknown platforms are not images."""
    children = [
        {"digest": digest(b"1"), "platform": {"os": "linux", "architecture": "amd64"}},
        {
            "digest": digest(b"2"),
            "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"},
        },
        {"digest": digest(b"3"), "platform": {"os": "unknown", "architecture": "unknown"}},
        {
            "digest": digest(b"4"),
            "platform": {"os": "linux", "architecture": "s390x"},
            "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
        },
    ]
    body = json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": children}).encode()
    registry.script = serving(body, OCI_INDEX)

    index = RegistryClient().manifest(registry.ref(), SECONDS)

    assert index.is_index
    assert index.platforms == ("linux/amd64", "linux/arm64/v8")
    assert digest(b"2") == index.child_for("linux/arm64", "x").digest


@pytest.mark.parametrize(
    ("content_type", "own"),
    [
        (OCI_MANIFEST, None),
        ("application/json", None),
        ("application/json; charset=utf-8", OCI_MANIFEST),
        (DOCKER_MANIFEST + "; charset=utf-8", DOCKER_MANIFEST),
        (DOCKER_LIST, OCI_MANIFEST),
    ],
)
def test_the_media_type_is_the_bodys_then_the_headers_then_the_shape(
    registry: ScriptedRegistry, content_type: str, own: str | None
) -> None:
    """Registries and proxies send odd headers; the body is what was hashed."""
    data = json.loads(image())
    del data["mediaType"]
    body = json.dumps(data | ({"mediaType": own} if own else {})).encode()
    registry.script = serving(body, content_type)

    expected = own or OCI_MANIFEST
    assert expected == RegistryClient().manifest(registry.ref(), SECONDS).media_type


@pytest.mark.parametrize(
    ("body", "content_type", "says"),
    [
        (
            b'{"schemaVersion": 1, "name": "a", "fsLayers": []}',
            "application/vnd.docker.distribution.manifest.v1+prettyjws",
            "schema 1",
        ),
        (
            image(config={"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": "x"}),
            OCI_MANIFEST,
            "helm",
        ),
        (b'{"hello": 1}', "text/plain", "no image"),
    ],
)
def test_what_is_no_image_is_refused(
    registry: ScriptedRegistry, body: bytes, content_type: str, says: str
) -> None:
    """Schema 1, artifacts and nonsense, each with its reason."""
    registry.script = serving(body, content_type)

    with pytest.raises(ManifestUnsupported, match=says):
        RegistryClient().manifest(registry.ref(), SECONDS)


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"[]", b"", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_a_broken_registry(
    registry: ScriptedRegistry, body: bytes
) -> None:
    """A captive portal answers 200 too."""
    registry.script = serving(body, "text/html", header=None)

    with pytest.raises(RegistryUnavailable, match="not JSON"):
        RegistryClient().manifest(registry.ref(), SECONDS)


UNKNOWN = b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}'


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (Reply(404, UNKNOWN), ImageGone, "has no"),
        (Reply(404, b""), ImageGone, "has no"),
        (Reply(403, b'{"errors":[{"code":"DENIED"}]}'), RegistryDenied, "does not exist, or"),
        (Reply(403), RegistryDenied, "refuses it to this login"),
        (Reply(401, b"go away"), RegistryDenied, "refuses the login"),
        (Reply(429, b""), RateLimited, "too many requests"),
        (Reply(429, headers={"Retry-After": "120"}), RateLimited, "wait 120 seconds"),
        (
            Reply(429, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}),
            RateLimited,
            "wait until Wed, 21 Oct 2026",
        ),
        (Reply(500, b"oops"), RegistryUnavailable, "broken at the moment: oops"),
        (Reply(503, b"access denied by overload"), RegistryUnavailable, "broken at the moment"),
        (Reply(502, b"\x1b[31mred"), RegistryUnavailable, ": red"),
        (Reply(418, b"teapot"), RegistryUnavailable, "teapot"),
    ],
)
def test_refusals_are_named(
    registry: ScriptedRegistry, reply: Reply, error: type[Exception], says: str
) -> None:
    """Each status becomes its own error, for GET and for HEAD, and is asked once: there is no retry loop."""
    registry.script = lambda _request: reply

    with pytest.raises(error, match=says):
        RegistryClient().manifest(registry.ref(), SECONDS)
    with pytest.raises(error):
        RegistryClient().named_digest(registry.ref(), SECONDS)
    assert len(registry.requests) == 2


def test_a_hanging_registry_ends_in_time(registry: ScriptedRegistry) -> None:
    """No answer within the timeout is "not in time", and safe to try again."""
    registry.script = lambda _request: Reply(seconds_before=30)
    began = time.monotonic()

    with pytest.raises(RegistryUnavailable, match="did not answer in time"):
        RegistryClient().manifest(registry.ref(), 0.3)
    assert time.monotonic() - began < 10


def test_a_trickling_registry_ends_in_time(registry: ScriptedRegistry) -> None:
    """Bytes that come one by one must not keep a request alive beyond its timeout."""
    registry.script = lambda _request: Reply(body=image(), seconds_a_byte=0.1)
    began = time.monotonic()

    with pytest.raises(RegistryUnavailable, match="did not answer in time"):
        RegistryClient().manifest(registry.ref(), 0.5)
    assert time.monotonic() - began < 10


def test_trickling_headers_end_in_time_and_the_next_question_is_answered(
    registry: ScriptedRegistry,
) -> None:
    """No single byte is late, so no socket's time limit is reached."""
    client, began = RegistryClient(), time.monotonic()
    registry.script = lambda _request: Reply(seconds_a_header_byte=0.1)

    with pytest.raises(RegistryUnavailable, match="did not answer in time"):
        client.manifest(registry.ref(), 0.5)
    assert time.monotonic() - began < 10

    registry.script = serving(image())
    assert client.manifest(registry.ref(), SECONDS).digest == digest(image())


def test_a_connection_cut_short_is_no_manifest(registry: ScriptedRegistry) -> None:
    """Half a manifest has a digest too; it must not become a pin."""
    body = image()
    registry.script = lambda _request: Reply(body=body, announced_length=len(body) + 10)

    with pytest.raises(RegistryUnavailable):
        RegistryClient().manifest(registry.ref(), SECONDS)


def test_a_huge_body_is_refused(registry: ScriptedRegistry) -> None:
    """Memory is bounded whatever a registry sends."""
    registry.script = lambda _request: Reply(body=b" " * (5 * 1024 * 1024))

    with pytest.raises(RegistryUnavailable, match="more than 4 MiB"):
        RegistryClient().manifest(registry.ref(), SECONDS)


def test_nobody_listens(registry: ScriptedRegistry) -> None:
    """A refused connection is unreachable, not gone."""
    reference = registry.ref()
    registry.close()

    with pytest.raises(RegistryUnavailable, match="does not answer"):
        RegistryClient().manifest(reference, SECONDS)


def test_head_gives_the_named_digest_and_costs_no_get(registry: ScriptedRegistry) -> None:
    """What registries count as a pull is not done to see that nothing changed."""
    registry.script = serving(image())

    assert digest(image()) == RegistryClient().named_digest(registry.ref(), SECONDS)
    assert registry.asked() == ["HEAD /v2/a/b/manifests/t"]


@pytest.mark.parametrize("reply", [Reply(405), Reply(501), Reply(200)])
def test_head_without_an_answer_is_none(registry: ScriptedRegistry, reply: Reply) -> None:
    """Old registries know no HEAD or send no digest: the caller has to GET."""
    registry.script = lambda _request: reply

    assert RegistryClient().named_digest(registry.ref(), SECONDS) is None


def test_a_config_is_checked_by_its_digest(registry: ScriptedRegistry) -> None:
    """A blob that is not what its digest says never becomes a fact."""
    registry.script = lambda _request: Reply(body=CONFIG)
    client = RegistryClient()

    assert client.config(registry.ref(), digest(CONFIG), SECONDS)["architecture"] == "amd64"
    with pytest.raises(DigestMismatch, match="config"):
        client.config(registry.ref(), digest(b"other"), SECONDS)


def test_a_blob_may_be_somewhere_else_and_no_login_goes_there(registry: ScriptedRegistry) -> None:
    """Registries redirect to content networks; the Authorization header stays home."""
    elsewhere = ScriptedRegistry()
    elsewhere.script = lambda _request: Reply(body=CONFIG)

    def script(request: Request) -> Reply:
        if "Authorization" not in request.headers:
            return Reply(401, headers={"WWW-Authenticate": 'Basic realm="x"'})
        return Reply(307, headers={"Location": f"http://localhost:{elsewhere.host[10:]}/blob"})

    registry.script = script
    try:
        client = RegistryClient(login=lambda _domain: Credentials(username="u", password="p"))
        config = client.config(registry.ref(), digest(CONFIG), SECONDS)
    finally:
        elsewhere.close()

    assert config["os"] == "linux"
    assert [request.headers.get("Authorization") for request in elsewhere.requests] == [None]


def basic_script(user: str, password: str) -> Script:
    expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def script(request: Request) -> Reply:
        if request.headers.get("Authorization") != expected:
            return Reply(401, headers={"WWW-Authenticate": 'Basic realm="Registry Realm"'})
        return Reply(body=image(), headers={"Content-Type": OCI_MANIFEST})

    return script


def test_basic_login(registry: ScriptedRegistry) -> None:
    """The login is looked up when the registry asks for one, and then sent along at once."""
    registry.script = basic_script("me", "s3cret")
    asked: list[str] = []

    def login(domain: str) -> Credentials:
        asked.append(domain)
        return Credentials(username="me", password="s3cret")

    client = RegistryClient(login=login)
    client.manifest(registry.ref(), SECONDS)
    client.manifest(registry.ref(), SECONDS)

    assert [registry.host] == asked
    assert len(registry.requests) == 3


def test_no_login_and_a_wrong_one_are_told_apart(registry: ScriptedRegistry) -> None:
    """Both are exit 6, and both name the command to run."""
    registry.script = basic_script("me", "s3cret")

    with pytest.raises(RegistryDenied, match="wants a login") as caught:
        RegistryClient().manifest(registry.ref(), SECONDS)
    assert f"docker login {registry.host}" == caught.value.hint
    wrong = RegistryClient(login=lambda _domain: Credentials(username="me", password="old"))
    with pytest.raises(RegistryDenied, match="refuses the login"):
        wrong.manifest(registry.ref(), SECONDS)


def bearer_script(host: str, *, accept: Callable[[Request], bool], **token: Any) -> Script:
    challenge = f'Bearer realm="http://{host}/token",service="reg",scope="repository:a/b:pull"'

    def script(request: Request) -> Reply:
        if request.path == "/token":
            if not accept(request):
                return Reply(401, b"incorrect username or password")
            return Reply(body=json.dumps(token or {"token": "T0KEN"}).encode())
        if request.headers.get("Authorization") != "Bearer T0KEN":
            return Reply(401, headers={"WWW-Authenticate": challenge})
        return Reply(body=image(), headers={"Content-Type": OCI_MANIFEST})

    return script


def test_anonymous_token(registry: ScriptedRegistry) -> None:
    """Public images need a token too; it is asked for once a repository."""
    registry.script = bearer_script(registry.host, accept=lambda _request: True)
    client = RegistryClient()

    client.manifest(registry.ref(), SECONDS)
    client.manifest(registry.ref("a/b:other"), SECONDS)

    assert registry.asked() == [
        "GET /v2/a/b/manifests/t",
        "GET /token",
        "GET /v2/a/b/manifests/t",
        "GET /v2/a/b/manifests/other",
    ]
    assert registry.requests[1].query == "service=reg&scope=repository%3Aa%2Fb%3Apull"
    assert "Authorization" not in registry.requests[1].headers


def test_token_with_a_login(registry: ScriptedRegistry) -> None:
    """The password goes to the token service only."""
    login = Credentials(username="me", password="s3cret")
    registry.script = bearer_script(
        registry.host, accept=lambda request: request.headers.get("Authorization") == login.basic
    )

    RegistryClient(login=lambda _domain: login).manifest(registry.ref(), SECONDS)

    assert [None, login.basic, "Bearer T0KEN"] == [
        request.headers.get("Authorization") for request in registry.requests
    ]
    assert "s3cret" not in repr(login)


def test_identity_token(registry: ScriptedRegistry) -> None:
    """What some logins leave instead of a password is posted for a token."""
    registry.script = bearer_script(
        registry.host,
        accept=lambda request: request.method == "POST" and b"refresh_token=IDT" in request.body,
        access_token="T0KEN",
    )

    client = RegistryClient(login=lambda _domain: Credentials(identity_token="IDT"))

    assert client.manifest(registry.ref(), SECONDS).media_type == OCI_MANIFEST


def test_a_refused_login_for_tokens(registry: ScriptedRegistry) -> None:
    """The token service says no: the stored login is wrong."""
    registry.script = bearer_script(registry.host, accept=lambda _request: False)
    client = RegistryClient(login=lambda _domain: Credentials(username="me", password="old"))

    with pytest.raises(RegistryDenied, match="refuses the stored login"):
        client.manifest(registry.ref(), SECONDS)


@pytest.mark.parametrize("token", [{"token": ""}, {"token": 5}, {"token": "a\r\nX: y"}, {"no": 1}])
def test_a_token_service_without_a_usable_token(
    registry: ScriptedRegistry, token: dict[str, Any]
) -> None:
    """Nothing that could break a header is used as one."""
    registry.script = bearer_script(registry.host, accept=lambda _request: True, **token)

    with pytest.raises((RegistryUnavailable, RegistryDenied)):
        RegistryClient().manifest(registry.ref(), SECONDS)


def test_a_token_that_is_not_accepted_does_not_loop(registry: ScriptedRegistry) -> None:
    """One login a question."""
    registry.script = bearer_script(registry.host, accept=lambda _request: True, token="wrong")

    with pytest.raises(RegistryDenied):
        RegistryClient().manifest(registry.ref(), SECONDS)
    assert len(registry.requests) == 3


def test_netrc_is_left_alone(registry: ScriptedRegistry, tmp_path: Path) -> None:
    """A login in ~/.netrc is no registry login and is not sent."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password leaked\n")
    registry.script = serving(image())

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NETRC", str(netrc))
        RegistryClient().manifest(registry.ref(), SECONDS)

    assert "Authorization" not in registry.requests[0].headers


def test_a_proxy_does_not_stand_before_this_machine(registry: ScriptedRegistry) -> None:
    """HTTP_PROXY is for the world outside."""
    registry.script = serving(image())

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        environment.setenv("http_proxy", "http://127.0.0.1:1")
        RegistryClient().manifest(registry.ref(), SECONDS)

    assert registry.asked() == ["GET /v2/a/b/manifests/t"]


def test_threads_may_share_a_client(registry: ScriptedRegistry) -> None:
    """Every question is answered, and counted."""
    registry.script = serving(image())
    client = RegistryClient()

    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda n: client.manifest(registry.ref(f"a:{n}"), SECONDS).digest, range(40))
        )

    assert {digest(image())} == set(found)
    assert (len(registry.requests), client.requests_sent) == (40, 40)
