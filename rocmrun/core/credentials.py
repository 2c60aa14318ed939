"""Registry logins as Docker stores them, and the challenges that ask for them. Reads no file and starts no helper."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DOCKER_HUB_KEY = "https://index.docker.io/v1/"
_HELPER_NAME = re.compile(r"[A-Za-z0-9._-]+")
_CHALLENGE = re.compile(
    r"(?:^|,\s*)(Bearer|Basic)\b\s*((?:[a-z_]+=(?:\"[^\"]*\"|[^\s,\"]+)(?:\s*,\s*(?=[a-z_]+=))?)*)",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"([a-z_]+)=(?:\"([^\"]*)\"|([^\s,\"]+))", re.IGNORECASE)
# A helper's user name that says "the secret is an identity token".
_TOKEN_USER = "<token>"  # noqa: S105  # a marker, no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A login for one registry: a name and password, or an identity token."""

    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """The value of an Authorization header."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What a 401 asks for: scheme "basic", or "bearer" with the service that gives tokens."""

    scheme: str
    realm: str = ""
    service: str = ""
    scope: str = ""


def parse_challenges(header: str) -> tuple[Challenge, ...]:
    """Return the challenges of a WWW-Authenticate header that rocmrun can answer, bearer first."""
    found = []
    for scheme, parameters in _CHALLENGE.findall(header):
        values = {
            name.lower(): quoted or bare for name, quoted, bare in _PARAMETER.findall(parameters)
        }
        found.append(
            Challenge(
                scheme=scheme.lower(),
                realm=values.get("realm", ""),
                service=values.get("service", ""),
                scope=values.get("scope", ""),
            )
        )
    return tuple(sorted(found, key=lambda challenge: challenge.scheme != "bearer"))


def server_key(domain: str) -> str:
    """Return the name under which Docker stores the login of registry *domain*."""
    return DOCKER_HUB_KEY if domain == "docker.io" else domain


def helper_for(config: Mapping[str, Any], domain: str) -> str | None:
    """Return the credential helper that Docker's *config* names for *domain*: docker-credential-NAME."""
    helpers = config.get("credHelpers")
    name = helpers.get(server_key(domain)) if isinstance(helpers, Mapping) else None
    if name is None and isinstance(helpers, Mapping):
        name = helpers.get(domain)
    name = name or config.get("credsStore")
    return name if isinstance(name, str) and _HELPER_NAME.fullmatch(name) else None


def stored_login(config: Mapping[str, Any], domain: str) -> Credentials | None:
    """Return the login that Docker's *config* holds itself (under "auths"), or None."""
    logins = config.get("auths")
    if not isinstance(logins, Mapping):
        return None
    wanted = {domain, _host(server_key(domain))}  # Podman calls Docker Hub by its name
    # Docker has written keys with and without scheme and path.
    for key in (server_key(domain), *logins):
        entry = logins.get(key)
        if isinstance(entry, Mapping) and _host(key) in wanted and (login := _login(entry)):
            return login
    return None


def login_of_helper(answer: Mapping[str, Any]) -> Credentials | None:
    """Return the login in a credential helper's answer."""
    username, secret = str(answer.get("Username") or ""), str(answer.get("Secret") or "")
    if not secret:
        return None
    if username == _TOKEN_USER:
        return Credentials(identity_token=secret)
    return Credentials(username=username, password=secret)


def _login(entry: Mapping[str, Any]) -> Credentials | None:
    if token := entry.get("identitytoken"):
        return Credentials(identity_token=str(token))
    username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    if auth := entry.get("auth"):
        try:
            text = base64.b64decode(str(auth), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None
        username, _, password = text.rstrip("\0").partition(":")
    return Credentials(username=username, password=password) if username else None


def _host(key: str) -> str:
    return re.sub(r"^https?://", "", key).partition("/")[0]
