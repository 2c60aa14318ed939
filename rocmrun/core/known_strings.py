"""Strings that are known to be somebody's, and every form in which they may stand in a text."""

import base64
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from rocmrun.core.public_words import is_public

# Shorter ones stand in too many words by accident.
SHORTEST = 3
_ANYWHERE = 5
# A piece of base64 that is shorter is found everywhere.
_SHORTEST_ENCODED = 5
# Of these a public word of some length is none the less.
_SECRET = 8
# Made of numbers as versions are; 127.0.0.1 and 0.0.0.0 are everybody's.
_ADDRESS = re.compile(r"(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}")
_ALWAYS = frozenset({"secret", "gpu"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Personal:
    """What is known to be private before any text is read.

    Attributes:
        secrets: Values of secrets: nothing is shown in their place but that one was there.
        users: Login names, and names of people.
        hosts: Names of machines.
        gpus: Unique ids.
        words: All else: values of variables, parameters, parts of paths, of images, of commands.
    """

    secrets: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def __or__(self, other: "Personal") -> "Personal":
        """Return what either knows."""
        return Personal(
            secrets=(*self.secrets, *other.secrets),
            users=(*self.users, *other.users),
            hosts=(*self.hosts, *other.hosts),
            gpus=(*self.gpus, *other.gpus),
            words=(*self.words, *other.words),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way in which a known string may be written.

    Attributes:
        kind: What stands in its place.
        needle: What a text has where it is there; in lower case when *folded*.
        folded: Whether case does not matter.
    """

    kind: str
    string: str
    needle: str
    folded: bool
    pattern: re.Pattern[str]


def forms_of(personal: Personal, words: frozenset[str]) -> tuple[Form, ...]:
    """Return every form of every string, longest first; public *words* tell nobody anything, unless they are a secret."""
    found: dict[str, Form] = {}
    for kind, strings in (
        ("secret", personal.secrets),
        ("gpu", personal.gpus),
        ("user", personal.users),
        ("host", personal.hosts),
        ("word", personal.words),
    ):
        for string in strings:
            if len(string) < SHORTEST or _tells_nothing(kind, string, words):
                continue
            for form in _forms(kind, string):
                found.setdefault(form.needle, form)
    return tuple(sorted(found.values(), key=lambda form: (-len(form.needle), form.needle)))


def _tells_nothing(kind: str, string: str, words: frozenset[str]) -> bool:
    public = is_public(string, words) and not _ADDRESS.fullmatch(string)
    return public and (kind not in _ALWAYS or len(string) < _SECRET)


def _forms(kind: str, string: str) -> Iterator[Form]:
    before, after = "", ""
    if len(string) < _ANYWHERE:
        # "max" is no part of "maximum"; what follows "%2F" is a name again.
        before = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-F][0-9A-F]))"
        after = r"(?![A-Za-z0-9])"
    # An accent may be a letter's, or a character after it: file systems and terminals differ.
    composed = (unicodedata.normalize(form, string) for form in ("NFC", "NFD"))
    for written in sorted({string, percent_encoded(string), string.replace(" ", "+"), *composed}):
        pattern = re.compile(f"(?i){before}{re.escape(written)}{after}")
        yield Form(kind=kind, string=string, needle=written.lower(), folded=True, pattern=pattern)
    for core in sorted(base64_cores(string)):
        if len(core) >= _SHORTEST_ENCODED:
            yield Form(
                kind=kind,
                string=string,
                needle=core,
                folded=False,
                pattern=re.compile(re.escape(core)),
            )


def percent_encoded(text: str) -> str:
    """Return *text* as a URL's part holds it: all but letters, digits and "-._~" as %XX."""
    plain = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
    return "".join(
        chr(byte) if byte in plain else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogatepass")
    )


def base64_cores(text: str) -> frozenset[str]:
    """Return what stands in base64 of any text with *text* in it, at each of three places, in both alphabets."""
    body = text.encode("utf-8", "surrogatepass")
    cores = set()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + body).decode().rstrip("=")
        # The first and last digits also hold bits of the neighbours.
        first = (0, 2, 3)[before]
        last = len(encoded) - (1 if (before + len(body)) % 3 else 0)
        core = encoded[first:last]
        cores |= {core, core.replace("+", "-").replace("/", "_")}
    return frozenset(cores)
