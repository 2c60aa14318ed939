"""A registry over HTTP: what a reference names, by the digest of the very bytes, and an image's config. Pulls nothing."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import requests
import urllib3

from rocmrun import __version__
from rocmrun.core.credentials import Challenge, Credentials, parse_challenges
from rocmrun.core.manifest import ACCEPT, Manifest, digest_of, parse_config, parse_manifest
from rocmrun.core.reference import DEFAULT_DOMAIN, DEFAULT_TAG, Reference
from rocmrun.core.registry_errors import classify
from rocmrun.errors import DigestMismatch, RegistryDenied, RegistryUnavailable

MANIFEST_LIMIT_BYTES = (
    4 * 1024 * 1024
)  # what the distribution specification lets registries refuse above
CONFIG_LIMIT_BYTES = 8 * 1024 * 1024
_DOCKER_HUB = "registry-1.docker.io"
_OK, _UNAUTHORIZED = 200, 401
_NO_HEAD = frozenset({405, 501})
_DIGEST_HEADER = "Docker-Content-Digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    status: int
    headers: "requests.structures.CaseInsensitiveDict[str]"
    body: bytes

    @property
    def text(self) -> str:
        """The body for messages."""
        return self.body.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchange:
    """One question with all the requests that it takes: what it is about, until when, how much to read."""

    reference: Reference
    deadline: float
    limit: int

    @classmethod
    def about(
        cls, reference: Reference, timeout_seconds: float, limit: int = MANIFEST_LIMIT_BYTES
    ) -> Self:
        return cls(reference=reference, deadline=time.monotonic() + timeout_seconds, limit=limit)


class RegistryClient:
    """Asks registries. Safe to share between threads; logins and manifests by digest are asked for once.

    Plain HTTP is spoken to this machine's own addresses only.
    """

    def __init__(
        self,
        *,
        login: Callable[[str], Credentials | None] = lambda _domain: None,
        certificates: Path = Path("/etc/docker/certs.d"),
    ) -> None:
        self._login = login
        self._certificates = certificates
        self._sessions: dict[bool, list[requests.Session]] = {True: [], False: []}
        self._lock = threading.Lock()
        self._authorizations: dict[str, str] = {}
        self._manifests: dict[str, Manifest] = {}
        self.requests_sent = 0

    def named_digest(self, reference: Reference, timeout_seconds: float) -> str | None:
        """Return the digest that a registry says *reference* has, by a HEAD request, which costs no pull quota.

        The word of a header, not of bytes: good to see that nothing changed. None when there is no such word.

        Raises:
            RocmrunError: as core.registry_errors.classify names it.
        """
        answer = self._ask(
            "HEAD", _manifest_path(reference), _Exchange.about(reference, timeout_seconds)
        )
        if answer.status in _NO_HEAD:
            return None
        if answer.status != _OK:
            _refuse(answer, reference)
        said = answer.headers.get(_DIGEST_HEADER, "")
        return said if said.startswith("sha256:") else None

    def manifest(self, reference: Reference, timeout_seconds: float) -> Manifest:
        """Return the manifest or index that *reference* names, its digest computed from the bytes.

        Raises:
            DigestMismatch: the bytes are not those that the reference or the registry's own header names.
            RocmrunError: as core.registry_errors.classify names it.
        """
        known = reference.at(reference.digest).canonical if reference.digest else None
        if known in self._manifests:
            return self._manifests[known]
        answer = self._ask(
            "GET", _manifest_path(reference), _Exchange.about(reference, timeout_seconds)
        )
        if answer.status != _OK:
            _refuse(answer, reference)
        what = reference.canonical
        computed = digest_of(answer.body)
        said = answer.headers.get(_DIGEST_HEADER, "")
        claimed = reference.digest or (said if said.startswith("sha256:") else computed)
        if claimed != computed:
            msg = f"{reference.domain} sent content of digest {computed} for {what}, and calls it {claimed}"
            raise DigestMismatch(msg, hint="a broken proxy or mirror may stand in between")
        manifest = parse_manifest(answer.body, answer.headers.get("Content-Type", ""), what)
        with self._lock:
            self._manifests[reference.at(computed).canonical] = manifest
        return manifest

    def config(self, reference: Reference, digest: str, timeout_seconds: float) -> dict[str, Any]:
        """Return the config blob *digest* of an image in *reference*'s repository.

        Raises:
            DigestMismatch: other content came.
            RocmrunError: as core.registry_errors.classify names it.
        """
        exchange = _Exchange.about(reference, timeout_seconds, CONFIG_LIMIT_BYTES)
        answer = self._ask("GET", f"blobs/{digest}", exchange)
        if answer.status != _OK:
            _refuse(answer, reference)
        if digest_of(answer.body) != digest:
            msg = f"{reference.domain} sent other content than {digest} for the config of {reference.canonical}"
            raise DigestMismatch(msg, hint="a broken proxy or mirror may stand in between")
        return parse_config(answer.body, reference.canonical)

    def _ask(self, method: str, path: str, exchange: _Exchange) -> _Answer:
        reference = exchange.reference
        scheme = "http" if reference.loopback else "https"
        host = _DOCKER_HUB if reference.domain == DEFAULT_DOMAIN else reference.domain
        url = f"{scheme}://{host}/v2/{reference.path}/{path}"
        authorization = self._authorizations.get(reference.name)
        answer = self._send(method, url, exchange, authorization=authorization)
        if answer.status == _UNAUTHORIZED:
            authorization = self._authorize(answer, exchange)
            with self._lock:
                self._authorizations[reference.name] = authorization
            answer = self._send(method, url, exchange, authorization=authorization)
        return answer

    def _authorize(self, answer: _Answer, exchange: _Exchange) -> str:
        """Return the Authorization header that the challenge of a 401 asks for."""
        challenges = parse_challenges(answer.headers.get("WWW-Authenticate", ""))
        login = self._login(exchange.reference.domain)
        for challenge in challenges:
            if challenge.scheme == "bearer" and challenge.realm:
                return f"Bearer {self._token(challenge, login, exchange)}"
            if challenge.scheme == "basic" and login is not None:
                return login.basic
        said = "no basic auth credentials" if challenges else answer.text
        raise classify(answer.status, said, exchange.reference.canonical, via_engine=False)

    def _token(self, challenge: Challenge, login: Credentials | None, exchange: _Exchange) -> str:
        reference = exchange.reference
        if not (challenge.realm.startswith("https://") or reference.loopback):
            msg = f"{reference.domain} wants the login sent to {challenge.realm}, in the clear"
            raise RegistryDenied(msg)
        fields = {
            "service": challenge.service,
            "scope": challenge.scope or f"repository:{reference.path}:pull",
        }
        if login and login.identity_token:
            fields |= {"grant_type": "refresh_token", "client_id": "rocmrun"}
            fields["refresh_token"] = login.identity_token
            answer = self._send("POST", challenge.realm, exchange, fields=fields)
        else:
            basic = login.basic if login else None
            answer = self._send(
                "GET", challenge.realm, exchange, authorization=basic, fields=fields
            )
        if answer.status == _UNAUTHORIZED and login:
            said = "incorrect username or password"
            raise classify(answer.status, said, reference.canonical, via_engine=False)
        if answer.status != _OK:
            _refuse(answer, reference)
        body = parse_config(answer.body, reference.canonical)
        token = body.get("token") or body.get("access_token")
        if not isinstance(token, str) or not token.isprintable():
            msg = f"the login service of {reference.domain} gave no token"
            raise RegistryUnavailable(msg)
        return token

    def _send(
        self,
        method: str,
        url: str,
        exchange: _Exchange,
        *,
        authorization: str | None = None,
        fields: dict[str, str] | None = None,
    ) -> _Answer:
        def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
            # Given as a callable, so that requests does not look for a login in ~/.netrc instead.
            if authorization:
                request.headers["Authorization"] = authorization
            return request

        reference, seconds = exchange.reference, max(exchange.deadline - time.monotonic(), 0.001)
        session = self._take_session(reference)

        def send() -> _Answer:
            response = session.request(
                method,
                url,
                params=fields if method == "GET" else None,
                data=fields if method == "POST" else None,
                headers={"Accept": ACCEPT, "Accept-Encoding": "identity"},
                auth=authorize,
                timeout=seconds,
                stream=True,
                verify=self._trust(reference),
            )
            with response:
                body = _read(response, exchange)
            return _Answer(status=response.status_code, headers=response.headers, body=body)

        with _translated(reference):
            answer = _within(seconds, send)
        self._give_back(reference, session)
        return answer

    def _take_session(self, reference: Reference) -> requests.Session:
        """Return a session that nobody uses: requests promises nothing about sharing one."""
        with self._lock:
            self.requests_sent += 1
            if free := self._sessions[reference.loopback]:
                return free.pop()
        session = requests.Session()
        session.headers["User-Agent"] = f"rocmrun/{__version__}"
        session.trust_env = not reference.loopback  # no proxy stands before this machine itself
        return session

    def _give_back(self, reference: Reference, session: requests.Session) -> None:
        """Keep a session for the next request. One whose request failed or still hangs is not given back."""
        with self._lock:
            self._sessions[reference.loopback].append(session)

    def _trust(self, reference: Reference) -> str | bool:
        authority = self._certificates / reference.domain / "ca.crt"
        return str(authority) if authority.is_file() else True


def _within(seconds: float, work: Callable[[], _Answer]) -> _Answer:
    """Return what *work* does, in a thread that is left alone when it takes longer than *seconds*.

    A socket's own time limit is for each piece that comes: a registry that sends its headers byte by
    byte never reaches it, and neither does a name that takes forever to resolve.
    """
    ended: queue.SimpleQueue[_Answer | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            ended.put(work())
        except Exception as error:  # noqa: BLE001  # raised again where it is waited for
            ended.put(error)

    threading.Thread(target=run, daemon=True, name="rocmrun-registry").start()
    try:
        outcome = ended.get(timeout=seconds)
    except queue.Empty:
        raise requests.exceptions.ReadTimeout from None
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _refuse(answer: _Answer, reference: Reference) -> NoReturn:
    raise classify(
        answer.status,
        answer.text,
        reference.canonical,
        via_engine=False,
        retry_after=answer.headers.get("Retry-After"),
    )


def _manifest_path(reference: Reference) -> str:
    return f"manifests/{reference.digest or reference.tag or DEFAULT_TAG}"


def _read(response: requests.Response, exchange: _Exchange) -> bytes:
    """Return the body: bounded, and by the deadline however slowly it trickles."""
    # read1 returns what one receive brings; before urllib3 2 there are only whole reads.
    read = getattr(response.raw, "read1", response.raw.read)
    body = bytearray()
    while chunk := read(65536, decode_content=True):
        body += chunk
        if len(body) > exchange.limit:
            reference = exchange.reference
            msg = f"{reference.domain} sent more than {exchange.limit >> 20} MiB for {reference.canonical}"
            raise RegistryUnavailable(msg)
        if time.monotonic() > exchange.deadline:
            raise requests.exceptions.ReadTimeout
    return bytes(body)


@contextmanager
def _translated(reference: Reference) -> Iterator[None]:
    """Turn what requests and urllib3 raise into our errors."""
    try:
        yield
    except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError) as error:
        raise classify(None, "timeout", reference.canonical, via_engine=False) from error
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
        raise classify(None, str(error), reference.canonical, via_engine=False) from error
