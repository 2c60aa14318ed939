"""Image references by the distribution grammar: domain, path, tag and digest. Resolves nothing."""

import ipaddress
import re
from dataclasses import dataclass

from rocmrun.errors import ReferenceInvalid

DEFAULT_DOMAIN = "docker.io"
OFFICIAL = "library"
DEFAULT_TAG = "latest"
MOVING_TAGS = frozenset({"latest", "nightly", "main", "master", "stable"})
PATH_LIMIT = 255

_HOST_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = re.compile(rf"(?:{_HOST_LABEL}(?:\.{_HOST_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ALGORITHM = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*")
_IMAGE_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A parsed image reference, with the defaults of docker.io filled in.

    Attributes:
        domain: Registry host, with its port where one was written ("docker.io", "127.0.0.1:5000").
        path: Repository below the domain ("rocm/pytorch", "library/python").
        tag: None when none was written.
        digest: "sha256:…", None when none was written. It outranks the tag.
    """

    domain: str
    path: str
    tag: str | None = None
    digest: str | None = None

    @property
    def name(self) -> str:
        """The repository with its domain: "docker.io/rocm/pytorch"."""
        return f"{self.domain}/{self.path}"

    @property
    def canonical(self) -> str:
        """The one spelling that locks use: nothing is left to defaults."""
        tag = self.tag or (None if self.digest else DEFAULT_TAG)
        return self.name + (f":{tag}" if tag else "") + (f"@{self.digest}" if self.digest else "")

    @property
    def familiar(self) -> str:
        """The short spelling that people use, as `docker images` prints it; parses to the same reference."""
        short = self._familiar_name() + self.canonical.removeprefix(self.name)
        return self.canonical if _IMAGE_ID.fullmatch(short) else short

    @property
    def moving(self) -> bool:
        """Whether what it names is expected to change: a rolling tag or none at all, and no digest."""
        return self.digest is None and (self.tag is None or self.tag in MOVING_TAGS)

    @property
    def loopback(self) -> bool:
        """Whether the registry is on this machine, where engines and rocmrun speak plain HTTP."""
        host = re.sub(r":[0-9]+$", "", self.domain).strip("[]")
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host.lower() == "localhost"

    def at(self, digest: str) -> "Reference":
        """Return the same repository at *digest*, without a tag: what is pulled and launched."""
        return Reference(domain=self.domain, path=self.path, digest=digest)

    def without_digest(self) -> "Reference":
        """Return the reference by tag alone."""
        return Reference(domain=self.domain, path=self.path, tag=self.tag)

    def _familiar_name(self) -> str:
        if self.domain != DEFAULT_DOMAIN:
            return self.name
        short = self.path
        if short.count("/") == 1:
            short = short.removeprefix(f"{OFFICIAL}/")
        # "docker.io/foo.bar/x" without its domain would read as a registry called foo.bar.
        return short if _split_domain(short) == (DEFAULT_DOMAIN, self.path) else self.name


def parse_reference(text: str) -> Reference:
    """Parse *text* by the grammar of github.com/distribution/reference, defaults of docker.io included.

    Raises:
        ReferenceInvalid: with the part that is wrong and, where it can be guessed, the right spelling.
    """
    _refuse_what_is_no_name(text)
    rest, at_sign, digest = text.partition("@")
    if at_sign:
        _check_digest(digest, text)
    name, tag = _split_tag(rest)
    if tag is not None and not _TAG.fullmatch(tag):
        msg = f"'{text}' is not an image reference: '{tag}' is not a tag (letters, digits, '_', '.', '-'; at most 128)"
        raise ReferenceInvalid(msg)
    domain, path = _split_domain(name)
    _check_name(domain, path, text)
    return Reference(domain=domain, path=path, tag=tag, digest=digest or None)


def _refuse_what_is_no_name(text: str) -> None:
    if not text:
        msg = "the image reference is empty"
        raise ReferenceInvalid(msg, hint="write one such as docker.io/rocm/pytorch:TAG")
    if text != text.strip() or any(character.isspace() for character in text):
        msg = f"{text!r} is not an image reference: it holds blanks"
        raise ReferenceInvalid(msg)
    scheme, separator, rest = text.partition("://")
    if separator:
        msg = f"'{text}' is not an image reference: it starts with '{scheme}://'"
        raise ReferenceInvalid(msg, hint=f"write it without the scheme: {rest}")
    if _IMAGE_ID.fullmatch(text):
        msg = f"'{text}' is an image id or a digest without a name"
        raise ReferenceInvalid(msg, hint="write NAME@sha256:…")


def _split_tag(rest: str) -> tuple[str, str | None]:
    """Split at the last colon that stands after the last slash: others belong to a port or an address."""
    head, slash, last = rest.rpartition("/")
    name, colon, tag = last.partition(":")
    return f"{head}{slash}{name}", tag if colon else None


def _split_domain(name: str) -> tuple[str, str]:
    """Split off the registry: a first part with a dot, a port or an upper-case letter, or "localhost"."""
    first, slash, rest = name.partition("/")
    is_domain = slash and (
        "." in first or ":" in first or first == "localhost" or first != first.lower()
    )
    domain, path = (first, rest) if is_domain else (DEFAULT_DOMAIN, name)
    if domain == f"index.{DEFAULT_DOMAIN}":
        domain = DEFAULT_DOMAIN
    if domain == DEFAULT_DOMAIN and path and "/" not in path:
        path = f"{OFFICIAL}/{path}"
    return domain, path


def _check_digest(digest: str, text: str) -> None:
    algorithm, _, digits = digest.partition(":")
    if _DIGEST.fullmatch(digest):
        return
    if algorithm != "sha256" and digits and _ALGORITHM.fullmatch(algorithm):
        # The grammar allows others; engines and locks name images by SHA-256 only.
        msg = f"'{text}' is not usable: its digest is {algorithm}, and images are locked by sha256"
    else:
        msg = f"'{text}' is not an image reference: after '@' must stand 'sha256:' and 64 hex digits in lower case"
    raise ReferenceInvalid(msg)


def _check_name(domain: str, path: str, text: str) -> None:
    if not _DOMAIN.fullmatch(domain):
        msg = f"'{text}' is not an image reference: '{domain}' is not a registry host"
        raise ReferenceInvalid(msg)
    if not path:
        msg = f"'{text}' is not an image reference: no repository after '{domain}/'"
        raise ReferenceInvalid(msg)
    if path != path.lower():
        msg = f"'{text}' is not an image reference: the repository must be in lower case"
        raise ReferenceInvalid(msg, hint=f"did you mean {text.replace(path, path.lower(), 1)}?")
    for component in path.split("/"):
        if not _COMPONENT.fullmatch(component):
            msg = f"'{text}' is not an image reference: '{component}' is not a part of a repository name"
            raise ReferenceInvalid(
                msg, hint="parts are a-z and 0-9, joined by '.', '_', '__' or dashes"
            )
    if len(path) > PATH_LIMIT:
        msg = f"'{text[:40]}…' is not an image reference: its repository is longer than {PATH_LIMIT} characters"
        raise ReferenceInvalid(msg)
