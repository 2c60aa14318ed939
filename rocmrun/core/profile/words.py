"""Words of a profile, a command line and an image that may be somebody's: to be looked for in every text."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rocmrun.core.bundle_facts import is_gpu_variable

# Sentences for people: they are in no bundle, and their words are in every log.
_PROSE = frozenset({"description", "reason", "help"})
# Names of variables stay, their values do not.
_NAMES = frozenset({"env_from"})
_SEPARATORS = re.compile(r"[\s,;:=/@'\"()\[\]{}<>|&]+")
# In a script a word of letters alone is the language's, most of the time.
_TELLING = re.compile(r"[^A-Za-z]")
_LONGEST, _SHORTEST_VALUE = 400, 6


def profile_words(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield what stands in a profile's values; sentences, names of variables and settings of GPU libraries apart."""
    for key, value in data.items():
        if key in _PROSE or key in _NAMES or is_gpu_variable(key):
            continue
        if isinstance(value, Mapping):
            yield from profile_words(value)
        else:
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, Mapping):
                    yield from profile_words(each)
                elif isinstance(each, str):
                    yield from words_of(each)


def words_of(text: str) -> Iterator[str]:
    """Yield what *text* is made of, whether it is a path, a reference, a script or a word; options' names apart."""
    whole = text.strip()
    # Of a path the parts alone: what is around them says where it is.
    parts = whole.split("/")
    yield from (part.strip() for part in parts if len(part) <= _LONGEST and "\n" not in part)
    script = any(mark in whole for mark in "\n;") or whole.count(" ") > 1
    for piece in _SEPARATORS.split(whole):
        if piece.startswith("-"):
            continue
        stripped = piece.strip("-.~$#*")
        if not script or _TELLING.search(stripped):
            yield stripped
            yield stripped.partition(".")[0]


def image_words(environment: Mapping[str, str], labels: Iterable[str]) -> Iterator[str]:
    """Yield whole values that an image bakes in: its parts are too common to look for."""
    for name, value in environment.items():
        if not is_gpu_variable(name) and _SHORTEST_VALUE <= len(value) <= _LONGEST:
            yield value
    yield from (value for value in labels if _SHORTEST_VALUE <= len(value) <= _LONGEST)
