"""Which words a pattern cannot do without: most patterns need not be tried on most texts."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

# What re itself compiles with: there is no public way to see what a pattern is made of.
_parser = import_module("re._parser")

# Of each group at least one word must stand in the text.
Needed = tuple[frozenset[str], ...]
# What a pattern finds may begin or end so many characters before or behind a word's line.
_BESIDE = 1_000
# It takes as long to search a text of this length as to look where to search it.
_SMALL = 4 * _BESIDE
# Shorter words are in nearly every text.
SHORTEST = 3


class Words:
    """Which words stand in one text; each is looked for once."""

    def __init__(self, text: str) -> None:
        self._text = text
        # Most words that are asked for are not there, and most of those have three letters in a row that are not.
        self._parts = {text[at : at + SHORTEST] for at in range(len(text) - SHORTEST + 1)}
        self._known: dict[str, bool] = {}

    def around(self, pattern: str) -> list[tuple[int, int]]:
        """Return the parts of the text, whole lines, that *pattern* can be found in."""
        groups = [[word for word in words if self._has(word)] for words in needed(pattern)]
        if not all(groups):
            return []
        if not groups or len(self._text) < _SMALL:
            return [(0, len(self._text))]
        rarest = min(groups, key=lambda words: sum(map(self._text.count, words)))
        return self._lines_around(sorted(place for word in rarest for place in self._places(word)))

    def _places(self, word: str) -> Iterator[int]:
        place = self._text.find(word)
        while place >= 0:
            yield place
            place = self._text.find(word, place + 1)

    def _lines_around(self, places: list[int]) -> list[tuple[int, int]]:
        parts: list[tuple[int, int]] = []
        for place in places:
            if parts and place + _BESIDE <= parts[-1][1]:
                continue
            line = self._text.rfind("\n", 0, place) + 1
            start = self._text.rfind("\n", 0, max(line - _BESIDE, 0)) + 1
            end = self._text.find("\n", place + _BESIDE)
            end = end if end >= 0 else len(self._text)
            if parts and start <= parts[-1][1] + 1:
                parts[-1] = (parts[-1][0], end)
            else:
                parts.append((start, end))
        return parts

    def _has(self, word: str) -> bool:
        known = self._known.get(word)
        if known is None:
            parts = (word[at : at + SHORTEST] for at in range(len(word) - SHORTEST + 1))
            known = self._known[word] = self._parts.issuperset(parts) and word in self._text
        return known


@cache
def needed(pattern: str) -> Needed:
    """Return the words without which *pattern* is found nowhere; nothing for one that heeds no case."""
    parsed = _parser.parse(pattern)
    return () if parsed.state.flags & re.IGNORECASE else tuple(_of_sequence(parsed))


def _of_sequence(parts: Iterable[tuple[Any, Any]]) -> list[frozenset[str]]:
    groups: list[frozenset[str]] = []
    letters = ""
    for operation, argument in (*parts, (None, None)):
        if str(operation) == "LITERAL":
            letters += chr(argument)
            continue
        if len(letters) >= SHORTEST:
            groups.append(frozenset({letters}))
        letters = ""
        groups += _of_part(str(operation), argument)
    return groups


def _of_part(operation: str, argument: Any) -> list[frozenset[str]]:
    match operation:
        case "SUBPATTERN":
            return _of_sequence(argument[3])
        case "ATOMIC_GROUP":
            return _of_sequence(argument)
        case "ASSERT":
            return _of_sequence(argument[1])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _of_sequence(argument[2]) if argument[0] else []
        case "BRANCH":
            ways = [_of_sequence(way) for way in argument[1]]
            # One group of every way, the one that is likeliest to be missing: together they are a group.
            return (
                [frozenset().union(*(max(way, key=_rarity) for way in ways))] if all(ways) else []
            )
        case _:
            return []


def _rarity(words: frozenset[str]) -> tuple[int, int]:
    return min(map(len, words)), -len(words)
