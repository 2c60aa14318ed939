"""How a long log is looked at: piece by piece, since what explains an error stands near it or is told as a fact."""

import re
from bisect import bisect_left
from collections.abc import Iterator

from rocmrun.core.diagnosis.body import Stretches
from rocmrun.core.diagnosis.evidence import Evidence

# A text of at most so many lines is one report, and looked at as a whole.
SHORT = 120
# Each piece has so many lines; the next begins in its middle, so that neighbours stand in one.
PIECE = 60
# A line that may be a fact although its key is a program's name.
_KEYED = re.compile(r"[a-z/][\w./-]{0,59}: \S")
# Facts at the start and the end of a log are told of all of it: at most so many lines, with gaps of so many.
_MOST_FACTS, _GAP = 40, 2


class Pieces:
    """What is judged by itself: the whole of a short text, or each piece of a long one with the facts at its ends."""

    def __init__(self, seen: Evidence) -> None:
        bodies = (seen.log, seen.told, seen.remedies)
        self._seen = seen
        self._numbers = sorted({line.number for body in bodies for line in body.lines})
        self.whole = len(self._numbers) <= SHORT
        self._ends = () if self.whole else self._facts_at_both_ends()
        self._known: dict[tuple[int, int], Evidence] = {}

    def all_(self) -> Iterator[Evidence]:
        """Yield every piece, each with its half in common with the next."""
        if self.whole:
            yield self._seen
            return
        for start in range(0, len(self._numbers) - PIECE // 2, PIECE // 2):
            yield self._piece(start)

    def around(self, number: int) -> Evidence:
        """Return the piece in whose middle a line stands: what belongs to it is not cut off."""
        return self._piece(bisect_left(self._numbers, number) - PIECE // 2)

    def at_an_end(self, number: int) -> bool:
        """Whether a line is one of the facts that stand in every piece."""
        return any(low <= number <= high for low, high in self._ends)

    def _piece(self, start: int) -> Evidence:
        last = min(start + PIECE, len(self._numbers)) - 1
        piece = (self._numbers[max(start, 0)], self._numbers[last])
        if piece not in self._known:
            self._known[piece] = self._seen.near(_joined([piece, *self._ends]))
        return self._known[piece]

    def _facts_at_both_ends(self) -> Stretches:
        facts = {value.line.number for value in self._seen.values}
        facts |= {line.number for line in self._seen.log.lines if _KEYED.match(line.text)}
        return (*_facts(self._numbers, facts), *_facts(self._numbers[::-1], facts))


def _facts(numbers: list[int], facts: set[int]) -> Stretches:
    """Return the stretch of facts that *numbers* begin with, none where a line of the log comes first."""
    last, gap = None, 0
    for number in numbers[:_MOST_FACTS]:
        if number in facts:
            last, gap = number, 0
        elif last is None or (gap := gap + 1) > _GAP:
            break
    return () if last is None else ((min(numbers[0], last), max(numbers[0], last)),)


def _joined(stretches: list[tuple[int, int]]) -> Stretches:
    """Return *stretches* in order, those that overlap as one."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(stretches):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)
