"""Lines as one text that patterns are looked for in, and parts of it that are looked at alone."""

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from rocmrun.core.diagnosis.literals import Words
from rocmrun.core.diagnosis.log_text import Line

Quotes = tuple[Line, ...]
MOST_QUOTES = 3
# Numbers of lines, from and to, both included.
Stretches = tuple[tuple[int, int], ...]
# Enough to judge by.
_MOST_MATCHES = 10_000


class _Text:
    """The whole text; each pattern is looked for once, whoever asks."""

    def __init__(self, lines: tuple[Line, ...]) -> None:
        self.lines = lines
        self.numbers = [line.number for line in lines]
        self._text = "\n".join(line.lower for line in lines)
        self._words = Words(self._text)
        self._starts: list[int] = []
        position = 0
        for line in lines:
            self._starts.append(position)
            position += len(line.lower) + 1
        self._places: dict[str, list[int]] = {}
        self._matches: dict[str, list[tuple[re.Match[str], int]]] = {}

    def places(self, pattern: str) -> list[int]:
        """Return the places of the lines that *pattern* is found in."""
        known = self._places.get(pattern)
        if known is None:
            found = (self._place(match) for match in self._search(pattern))
            known = self._places[pattern] = list(dict.fromkeys(found))
        return known

    def matches(self, pattern: str) -> list[tuple[re.Match[str], int]]:
        """Return every match with the place of its line."""
        known = self._matches.get(pattern)
        if known is None:
            found = itertools.islice(self._search(pattern), _MOST_MATCHES)
            known = self._matches[pattern] = [(match, self._place(match)) for match in found]
        return known

    def _search(self, pattern: str) -> Iterator[re.Match[str]]:
        for start, end in self._words.around(pattern):
            yield from compiled(pattern).finditer(self._text, start, end)

    def _place(self, match: re.Match[str]) -> int:
        return bisect_right(self._starts, match.start()) - 1


@dataclass(frozen=True, slots=True)
class Body:
    """A text, or those of its lines whose places are in *ranges*."""

    _text: _Text
    _ranges: Stretches

    @property
    def lines(self) -> Quotes:
        """All its lines."""
        return tuple(line for low, high in self._ranges for line in self._text.lines[low:high])

    def find(self, pattern: str) -> Quotes:
        """Return the first few lines that *pattern* (lower case) is found in."""
        places = self._text.places(pattern)
        if not places:
            return ()
        found = (
            places[bisect_left(places, low) : bisect_left(places, high)]
            for low, high in self._ranges
        )
        inside = itertools.islice(itertools.chain.from_iterable(found), MOST_QUOTES)
        return tuple(self._text.lines[place] for place in inside)

    def matches(self, pattern: str) -> list[tuple[re.Match[str], Line]]:
        """Return every match with its line, in order."""
        return [
            (match, self._text.lines[place])
            for match, place in self._text.matches(pattern)
            if any(low <= place < high for low, high in self._ranges)
        ]

    def near(self, stretches: Stretches) -> "Body":
        """Return what stands in *stretches*."""
        numbers = self._text.numbers
        return Body(
            self._text,
            tuple((bisect_left(numbers, low), bisect_right(numbers, high)) for low, high in stretches),
        )  # fmt: skip


def body_of(lines: Quotes) -> Body:
    """Return *lines*, in the order of their numbers, as a text."""
    return Body(_Text(lines), ((0, len(lines)),))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return *pattern* compiled, with ^ and $ at lines."""
    return re.compile(pattern, re.MULTILINE)
