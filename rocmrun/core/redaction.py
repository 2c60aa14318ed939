"""Take out of values and texts what is somebody's, so that they can be shown to strangers. The one place that decides it.

What stands in its place is the same wherever the same thing stood: "<user-1>", "<path-3>". Numbers of users and
groups, modes, errors, versions and the names of directories that every machine has stay: they decide.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rocmrun.core.diagnosis.masking import MASK
from rocmrun.core.diagnosis.masking import RULES as MASKING
from rocmrun.core.known_strings import Personal, forms_of
from rocmrun.core.public_words import is_public
from rocmrun.core.redacted_paths import ALIAS, PATH, QUOTED_PATH, redacted_path
from rocmrun.core.redaction_rules import RULES, redacted_image
from rocmrun.core.secret_names import names_secret, without_secrets
from rocmrun.core.text import printable

HIDDEN = "<masked>"
# Names of keys whose value tells one thing from all others in the world.
_IDENTITY = re.compile(r"(?i)unique_?id|serial|hive_?id|uuid|machine_?id|boot_?id|mac_?addr")
_NO_LIMIT = 1 << 62
# A line that is JSON may hold names in escapes that only its reader sees.
_LONGEST_JSON = 64 * 1024


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
        key = (kind, text.lower())
        if key not in self._aliases:
            self._count[kind] += 1
            self._aliases[key] = f"<{kind}-{self._count[kind]}>"
        return self._aliases[key]

    @property
    def learned(self) -> Personal:
        """Who was named in what was read: the same names may stand elsewhere without a sign."""
        found: dict[str, list[str]] = {"user": [], "host": []}
        for kind, text in self._aliases:
            if kind in found:
                found[kind].append(text)
        return Personal(users=tuple(found["user"]), hosts=tuple(found["host"]))

    def text(self, text: str) -> str:
        """Return *text* without what is private; it has as many lines as before."""
        lines = printable(text.replace("\r\n", "\n").replace("\r", "\n"), _NO_LIMIT).split("\n")
        plain = "\n".join(self._json_line(line) for line in lines)
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
        return self.text(redacted_path(self._without_known(path), self._words, self.alias))

    def image(self, reference: str) -> str:
        """Return an image's reference."""
        return redacted_image(self._without_known(reference), self._words, self.alias)

    def is_public(self, text: str) -> bool:
        """Whether nothing in *text* is anybody's."""
        return is_public(text, self._words) and self._without_known(text) == text

    def gpu(self, unique_id: str) -> str:
        """Return what stands for a GPU's unique id."""
        return self.alias("gpu", unique_id)

    def _json_line(self, line: str) -> str:
        if not line.startswith("{") or "\\" not in line or len(line) > _LONGEST_JSON:
            return line
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return line
        return json.dumps(value, ensure_ascii=False).replace("\n", "\\n")

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
        text = without_secrets(text)
        for pattern, replace in RULES:
            text = pattern.sub(lambda match: replace(match, self._words, self.alias), text)  # noqa: B023  # used at once
        for pattern in (QUOTED_PATH, PATH):
            text = pattern.sub(self._path_match, text)
        for pattern, instead in MASKING:
            text = pattern.sub(lambda match: self._masked(match, instead), text)  # noqa: B023  # used at once
        return text

    def _masked(self, match: re.Match[str], instead: str) -> str:
        # What is an alias by now needs no mask: it says which of several it is.
        if ALIAS.search(match[0]) and match.re.search(ALIAS.sub("", match[0])) is None:
            return match[0]
        self.replaced["masked"] += 1
        return match.expand(instead).replace(MASK, HIDDEN)

    def _path_match(self, match: re.Match[str]) -> str:
        return redacted_path(match[0], self._words, self.alias)
