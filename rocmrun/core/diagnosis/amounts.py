"""Amounts of memory that a text tells, as numbers: whether a request would fit, how large shared memory is."""

import re
from collections.abc import Iterator

from rocmrun.core.diagnosis.body import Quotes
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.log_text import Line

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_AMOUNT = r"(\d{1,12}(?:\.\d{1,4})?) ?([kmgt])i?b"
_REQUEST = rf"tried to allocate {_AMOUNT}\b[^\n]{{0,120}}?(?:total capacity of {_AMOUNT}[^\n]{{0,20}})?of which {_AMOUNT} is free"
_SHARED = rf"^[^\n]{{0,40}}\bshm\w*\W{{1,4}}{_AMOUNT[:-3]}(?:i?b)?\b"
# A request this much smaller than what is free was refused for another reason: by far, or where much of the card is free.
_FAR_BELOW, _BELOW = 4, 1.25
_MUCH = 0.1
# What is left of a card that is used up lies in pieces, of which none may be as large.
_USED_UP, _IN_PIECES = 0.05, 16
# No worker of a DataLoader fills this much in passing.
_LARGE_SHARED = 8 * 2**30


def request_fits(seen: Evidence) -> Quotes | None:
    """Return the lines that refuse a request although more is free, if no line tells of a real shortage."""
    fitting: list[Line] = []
    for match, line in seen.log.matches(_REQUEST):
        asked, free = _bytes(match[1], match[2]), _bytes(match[5], match[6])
        share = free / _bytes(match[3], match[4]) if match[3] else None
        if asked * _times(share) > free:
            return None
        fitting.append(line)
    return tuple(fitting[:3]) or None


def _times(share: float | None) -> float:
    """Return how many times a request must fit into what is free, for the *share* of the card that is free."""
    if share is None:
        return _FAR_BELOW
    return _BELOW if share >= _MUCH else _IN_PIECES if share < _USED_UP else _FAR_BELOW


def shared_memory_large(seen: Evidence) -> Quotes | None:
    """Return what tells that shared memory is far larger than an engine's default."""
    return tuple(line for size, line in _shared(seen) if size >= _LARGE_SHARED)[:3] or None


def _shared(seen: Evidence) -> Iterator[tuple[float, Line]]:
    for match, line in seen.told.matches(_SHARED):
        yield _bytes(match[1], match[2]), line
    for name, line in seen.flags:
        if found := re.match(rf"--shm-size={_AMOUNT[:-3]}", name.lower()):
            yield _bytes(found[1], found[2]), line


def _bytes(number: str, unit: str) -> float:
    return float(number) * _UNITS[unit]
