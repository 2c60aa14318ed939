"""Take out of values and texts what is somebody's, so that they can be shown to strangers. The one place that decides it.

What stands in its place is the same wherever the same thing stood: "USER-1", "PATH-3". Numbers of users and
groups, modes, errors, versions and the names of directories that every machine has stay: they decide.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rocmrun.core.diagnosis.masking import MASK
from rocmrun.core.diagnosis.masking import RULES as MASKING
from rocmrun.core.known_strings import Personal, forms_of
from rocmrun.core.public_words import is_public
from rocmrun.core.redacted_paths import ALIAS, EVERYBODYS, PATH, QUOTED_PATH, redacted_path
from rocmrun.core.redaction_rules import RULES, redacted_image
from rocmrun.core.secret_forms import BUNDLES, without
from rocmrun.core.secret_words import names_secret
from rocmrun.core.text import printable

HIDDEN = "<masked>"
# Names of keys whose value tells one thing from all others in the world.
_IDENTITY = re.compile(r"(?i)unique_?id|serial|hive_?id|uuid|machine_?id|boot_?id|mac_?addr")
# Of 64 bits: what is longer, and of digits alone, is decimal.
_HEX_DIGITS = 16
_NO_LIMIT = 1 << 62
# JSON and Python's quotes may hold names in escapes that only their reader sees.
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([89a-fA-F][0-9a-fA-F]))")


class Redactor:
    """Replaces what is private, and remembers what stands for what as long as it lives."""

    def __init__(self, personal: Personal, words: frozenset[str]) -> None:
        """Make one.

        Args:
            personal: What is known to be private.
            words: What is known to be public: see `public_words`.
        """
        self._forms = forms_of(personal, words)
        self._words = words
        self._aliases: dict[tuple[str, str], str] = {}
        self._count: Counter[str] = Counter()
        self.replaced: Counter[str] = Counter()

    def alias(self, kind: str, text: str) -> str:
        """Return what stands for *text*: the same each time."""
        self.replaced[kind] += 1
        if kind == "secret":
            return "<secret>"
        key = (kind, _canonical_id(text) if kind == "gpu" else text.lower())
        if key not in self._aliases:
            self._count[kind] += 1
            self._aliases[key] = f"{kind.upper()}-{self._count[kind]}"
        return self._aliases[key]

    def learn(self) -> None:
        """Know from now on who was named in what was read: the same names may stand elsewhere without a sign."""
        found: dict[str, list[str]] = {"user": [], "host": []}
        for kind, text in self._aliases:
            if kind in found:
                found[kind].append(text)
        learned = Personal(users=tuple(found["user"]), hosts=tuple(found["host"]))
        self._forms = forms_of(learned, self._words)

    def known(self, value: Any) -> Any:
        """Return JSON values without what is known by now, and leave alone what only its form tells."""
        if isinstance(value, str):
            return self._without_known(value)
        if isinstance(value, Mapping):
            return {self._without_known(str(key)): self.known(held) for key, held in value.items()}
        return [self.known(held) for held in value] if isinstance(value, list | tuple) else value

    def text(self, text: str) -> str:
        """Return *text* without what is private; it has as many lines as before."""
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        plain = _ESCAPED.sub(_letter, printable(lines, _NO_LIMIT))
        return self._by_form(self._without_known(plain))

    def value(self, value: Any) -> Any:
        """Return JSON values without what is private, names of keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): self._of_key(str(key), held) for key, held in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(held) for held in value]
        return value

    def _of_key(self, key: str, held: Any) -> Any:
        if isinstance(held, str) and held and names_secret(key):
            return self.alias("secret", held)
        if _IDENTITY.search(key) and isinstance(held, str | int) and not isinstance(held, bool):
            shown = str(held)
            return held if not shown or ALIAS.fullmatch(shown) else self.alias("id", shown)
        return self.value(held)

    def path(self, path: str) -> str:
        """Return one path, whatever blanks are in it."""
        parts = "/".join(map(self._without_known, path.split("/")))
        return self.text(redacted_path(parts, self._words, self.alias))

    def image(self, reference: str) -> str:
        """Return an image's reference."""
        pieces = re.split(r"([/:@])", reference)
        return redacted_image("".join(map(self._without_known, pieces)), self._words, self.alias)

    def is_public(self, text: str) -> bool:
        """Whether nothing in *text* is anybody's."""
        return is_public(text, self._words) and self._without_known(text) == text

    def gpu(self, unique_id: str) -> str:
        """Return what stands for a GPU's unique id."""
        return self.alias("gpu", unique_id)

    def _without_known(self, text: str) -> str:
        lower = text.lower()
        for form in self._forms:
            if form.needle not in (lower if form.folded else text):
                continue
            instead = self.alias(form.kind, form.string)
            text, count = form.pattern.subn(lambda _: instead, text)  # noqa: B023  # used at once
            self.replaced[form.kind] += count - 1
            lower = text.lower()
        return text

    def _by_form(self, text: str) -> str:
        text = without(text, BUNDLES, self._secret)
        for pattern, replace in RULES:
            text = pattern.sub(lambda match: replace(match, self._words, self.alias), text)  # noqa: B023  # used at once
        for pattern in (QUOTED_PATH, PATH):
            text = pattern.sub(self._path_match, text)
        for pattern, instead in MASKING:
            text = pattern.sub(lambda match: self._masked(match, instead), text)  # noqa: B023  # used at once
        return text

    def _secret(self, text: str) -> str:
        return text if ALIAS.fullmatch(text) else self.alias("secret", text)

    def _masked(self, match: re.Match[str], instead: str) -> str:
        # What is an alias by now needs no mask: it says which of several it is.
        if match[0].rpartition("/")[2] in EVERYBODYS:
            return match[0]
        if ALIAS.search(match[0]) and match.re.search(ALIAS.sub("", match[0])) is None:
            return match[0]
        self.replaced["masked"] += 1
        return match.expand(instead).replace(MASK, HIDDEN)

    def _path_match(self, match: re.Match[str]) -> str:
        return redacted_path(match[0], self._words, self.alias)


def _canonical_id(text: str) -> str:
    """Return one spelling of a GPU's unique id: tools write it in hex, with marks before it, and in decimal."""
    plain = text.lower().removeprefix("gpu-").removeprefix("0x").lstrip("0")
    return f"{int(plain):x}" if plain.isdigit() and len(plain) > _HEX_DIGITS else plain


def _letter(match: re.Match[str]) -> str:
    letter = chr(int(match[1] or match[2], 16))
    return letter if letter.isalnum() else match[0]
