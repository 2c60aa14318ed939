"""A registry over HTTP: what a reference names, by the digest of the very bytes, and an image's config. Pulls nothing."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from rocmrun.core.credentials import Challenge, Credentials, parse_challenges
from rocmrun.core.manifest import Manifest, digest_of, parse_config, parse_manifest
from rocmrun.core.reference import DEFAULT_DOMAIN, DEFAULT_TAG, Reference
from rocmrun.core.registry_errors import classify
from rocmrun.core.text import MIB
from rocmrun.errors import DigestMismatch, RegistryDenied, RegistryUnavailable
from rocmrun.system.registry.transport import Answer, Exchange, Transport

CONFIG_LIMIT_BYTES = 8 * MIB
_DOCKER_HUB = "registry-1.docker.io"
_OK, _UNAUTHORIZED = 200, 401
_NO_HEAD = frozenset({405, 501})
_DIGEST_HEADER = "Docker-Content-Digest"


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
        self._transport = Transport(certificates)
        self._lock = threading.Lock()
        self._authorizations: dict[str, str] = {}
        self._manifests: dict[str, Manifest] = {}

    @property
    def requests_sent(self) -> int:
        """How many requests there were, logins among them."""
        return self._transport.sent

    def named_digest(self, reference: Reference, timeout_seconds: float) -> str | None:
        """Return the digest that a registry says *reference* has, by a HEAD request, which costs no pull quota.

        The word of a header, not of bytes: good to see that nothing changed. None when there is no such word.

        Raises:
            RocmrunError: as core.registry_errors.classify names it.
        """
        answer = self._ask(
            "HEAD", _manifest_path(reference), Exchange.about(reference, timeout_seconds)
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
            "GET", _manifest_path(reference), Exchange.about(reference, timeout_seconds)
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
        exchange = Exchange.about(reference, timeout_seconds, CONFIG_LIMIT_BYTES)
        answer = self._ask("GET", f"blobs/{digest}", exchange)
        if answer.status != _OK:
            _refuse(answer, reference)
        if digest_of(answer.body) != digest:
            msg = f"{reference.domain} sent other content than {digest} for the config of {reference.canonical}"
            raise DigestMismatch(msg, hint="a broken proxy or mirror may stand in between")
        return parse_config(answer.body, reference.canonical)

    def _ask(self, method: str, path: str, exchange: Exchange) -> Answer:
        reference = exchange.reference
        scheme = "http" if reference.loopback else "https"
        host = _DOCKER_HUB if reference.domain == DEFAULT_DOMAIN else reference.domain
        url = f"{scheme}://{host}/v2/{reference.path}/{path}"
        authorization = self._authorizations.get(reference.name)
        answer = self._transport.send(method, url, exchange, authorization=authorization)
        if answer.status == _UNAUTHORIZED:
            authorization = self._authorize(answer, exchange)
            with self._lock:
                self._authorizations[reference.name] = authorization
            answer = self._transport.send(method, url, exchange, authorization=authorization)
        return answer

    def _authorize(self, answer: Answer, exchange: Exchange) -> str:
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

    def _token(self, challenge: Challenge, login: Credentials | None, exchange: Exchange) -> str:
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
            answer = self._transport.send("POST", challenge.realm, exchange, fields=fields)
        else:
            basic = login.basic if login else None
            answer = self._transport.send(
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


def _refuse(answer: Answer, reference: Reference) -> NoReturn:
    raise classify(
        answer.status,
        answer.text,
        reference.canonical,
        via_engine=False,
        retry_after=answer.headers.get("Retry-After"),
    )


def _manifest_path(reference: Reference) -> str:
    return f"manifests/{reference.digest or reference.tag or DEFAULT_TAG}"
