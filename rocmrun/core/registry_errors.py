"""What a registry's refusal means, whether it came by HTTP or through an engine's words.

Engines wrap registry answers: missing credentials arrive as HTTP 500, an absent repository as 404 "denied".
So the text decides first, and the status only where the text says nothing. Texts were read off
Docker Engine 20.10, docker-registry 2.8 and Docker Hub's documentation.
"""

import re
from typing import NamedTuple

from rocmrun.core.text import printable
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


class _Rule(NamedTuple):
    pattern: str
    error: type[RocmrunError]
    says: str
    hint: str | None = None


_LOGIN = "docker login {host}"
_AGAIN = "safe to try again later"

# The first match wins: a "denied" inside a 404 is a denial, a rate limit inside a 500 is a rate limit.
_TEXTS = (
    _Rule(r"toomanyrequests|too many requests|rate limit|pull limit", RateLimited,
          "{host} has had too many requests from here", "wait, or log in for a higher limit: docker login {host}"),
    _Rule(r"no matching manifest for|no match for platform in manifest", PlatformMismatch,
          "{what} has no image for the wanted platform"),
    _Rule(r"no basic auth credentials", RegistryDenied, "{host} wants a login for {what}", _LOGIN),
    _Rule(r"incorrect username or password|unauthorized: (?:incorrect|invalid|bad)", RegistryDenied,
          "{host} refuses the stored login", _LOGIN),
    _Rule(r"denied|unauthorized|insufficient[_ ]scope|authentication required", RegistryDenied,
          "{what} does not exist, or {host} wants another login for it", "check the spelling, or: docker login {host}"),
    _Rule(r"manifest verification failed|does not match (?:provided )?digest|content digest .* mismatch", DigestMismatch,
          "{host} sent other content for {what} than its digest says"),
    _Rule(r"schema ?(?:version )?1\b|schemav1|schema1|manifest\.v1\+|missing signature key", ManifestUnsupported,
          "{what} is published in the obsolete manifest schema 1, which no current engine can pull by digest",
          "ask its publisher to push it again, or copy it with a current tool"),
    _Rule(r"manifest unknown|manifest for .* not found|name unknown|repository name not known|not found: manifest",
          ImageGone, "{host} has no {what}", "check the spelling; tags are deleted upstream too"),
    _Rule(r"invalid reference format|repository name must be", ReferenceInvalid, "{what} is not an image reference"),
    _Rule(r"x509:|certificate|tls: ", RegistryUnavailable, "{host} cannot be trusted for {what}: {text}",
          "put its CA at /etc/docker/certs.d/{host}/ca.crt"),
    _Rule(r"server gave HTTP response to HTTPS client|wrong_version_number|record layer failure", RegistryUnavailable,
          "{host} speaks plain HTTP, which is trusted on this machine's own addresses only",
          "give it a certificate, or list it under insecure-registries of the engine; Podman trusts none "
          "that has not insecure = true in /etc/containers/registries.conf"),
    _Rule(r"no such host|name or service not known|name resolution|server misbehaving", RegistryUnavailable,
          "the name {host} does not resolve", "check the spelling, the network and the proxy settings"),
    _Rule(r"proxyconnect|proxyerror|cannot connect to proxy", RegistryUnavailable,
          "the proxy on the way to {host} does not answer", "check HTTPS_PROXY, and the engine's own proxy settings"),
    _Rule(r"connection (?:refused|reset|aborted|broken)|remote end closed|no route to host|network is unreachable"
          r"|broken pipe|incompleteread|\bEOF\b",
          RegistryUnavailable, "{host} does not answer", _AGAIN),
    _Rule(r"timed? ?out|timeout|deadline exceeded|client\.timeout", RegistryUnavailable,
          "{host} did not answer in time", "safe to try again; a longer time: --timeout SECONDS"),
    _Rule(r"unexpected HTTP status:? (?:code )?5\d\d|service unavailable|bad gateway|internal server error",
          RegistryUnavailable, "{host} is broken at the moment: {text}", _AGAIN),
)  # fmt: skip

_STATUSES: dict[int, _Rule] = {
    400: _Rule("", ReferenceInvalid, "{host} does not understand {what}: {text}"),
    401: _Rule("", RegistryDenied, "{host} refuses the login for {what}", _LOGIN),
    403: _Rule("", RegistryDenied, "{what} does not exist, or {host} refuses it to this login", _LOGIN),
    404: _Rule("", ImageGone, "{host} has no {what}", "check the spelling; tags are deleted upstream too"),
    408: _Rule("", RegistryUnavailable, "{host} did not answer in time", _AGAIN),
    429: _Rule("", RateLimited, "{host} has had too many requests from here",
               "wait, or log in for a higher limit: docker login {host}"),
}  # fmt: skip
_SERVER_ERROR = _Rule("", RegistryUnavailable, "{host} is broken at the moment: {text}", _AGAIN)
_ENGINE_ERROR = _Rule("", EngineFailed, "the engine could not ask {host} for {what}: {text}")
_FIRST_SERVER_ERROR = 500
# From the registry itself these need no reading of the body.
_CERTAIN = frozenset({408, 429})


def classify(
    status: int | None,
    text: str,
    what: str,
    *,
    via_engine: bool = True,
    retry_after: str | None = None,
) -> RocmrunError:
    """Return the error that an answer of *status* with *text* about image *what* means.

    Args:
        status: HTTP status of the registry, or of the engine that asked it; None when no answer came.
        text: The body, or the words of the exception.
        what: The reference asked for; its first part is the host in messages where it is one.
        via_engine: Whether an engine asked: what nobody knows is then the engine's failure.
        retry_after: The registry's Retry-After header.
    """
    rule = _rule(status, text, via_engine=via_engine)
    words = {
        "host": host_of(what),
        "what": what,
        "text": printable(" ".join(text.split()), limit=300) or f"status {status}",
    }
    message = rule.says.format(**words)
    if rule.error is RateLimited and retry_after:
        message += f"; it asks to wait {_wait(retry_after)}"
    return rule.error(message, hint=rule.hint and rule.hint.format(**words))


def _rule(status: int | None, text: str, *, via_engine: bool) -> _Rule:
    broken = status is not None and status >= _FIRST_SERVER_ERROR
    if not via_engine and (broken or status in _CERTAIN):
        return _STATUSES.get(status or 0, _SERVER_ERROR)
    for rule in _TEXTS:
        if re.search(rule.pattern, text, re.IGNORECASE):
            return rule
    if status in _STATUSES:
        return _STATUSES[status]
    return _ENGINE_ERROR if via_engine else _SERVER_ERROR


def host_of(what: str) -> str:
    """Return the registry host that *what* names, for messages and `docker login`."""
    first, slash, _ = what.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    return first if named else "docker.io"


def _wait(retry_after: str) -> str:
    value = printable(retry_after.strip(), limit=40)
    return f"{value} seconds" if value.isdigit() else f"until {value}"
