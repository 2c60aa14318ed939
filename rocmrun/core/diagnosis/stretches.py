"""How a long log is looked at: piece by piece, since what explains an error stands near it or is told as a fact."""

import re
from collections.abc import Iterator

from rocmrun.core.diagnosis.body import Stretches
from rocmrun.core.diagnosis.evidence import Evidence

# A text of at most so many lines is one report, and looked at as a whole.
SHORT = 120
# Each piece has so many lines; the next begins in its middle, so that neighbours stand in one.
PIECE = 60
# A line that may be a fact although its key is a program's name.
_KEYED = re.compile(r"[a-z][\w.-]{0,59}: \S")
# Facts at the start and the end of a log are told of all of it: at most so many lines, with gaps of so many.
_MOST_FACTS, _GAP = 40, 2


def pieces(seen: Evidence) -> tuple[Evidence, ...]:
    """Return what is judged by itself: the whole of a short text, or each piece of a long one with the facts at its ends."""
    lines = {line.number for body in (seen.log, seen.told, seen.remedies) for line in body.lines}
    if len(lines) <= SHORT:
        return (seen,)
    numbers = sorted(lines)
    facts = {value.line.number for value in seen.values}
    facts |= {line.number for line in seen.log.lines if _KEYED.match(line.text)}
    head, tail = _facts(numbers, facts), _facts(numbers[::-1], facts)
    return tuple(
        seen.near(_joined([*head, (numbers[start], numbers[end]), *tail]))
        for start, end in _places(len(numbers))
    )


def _places(size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, size - PIECE // 2, PIECE // 2):
        yield start, min(start + PIECE, size) - 1


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
