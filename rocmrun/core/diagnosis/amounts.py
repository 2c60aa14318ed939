"""Amounts of memory that a text tells, as numbers: whether a request would fit, how large shared memory is."""

import re
from collections.abc import Iterator

from rocmrun.core.diagnosis.evidence import Evidence, Quotes
from rocmrun.core.diagnosis.log_text import Line

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_AMOUNT = r"(\d{1,12}(?:\.\d{1,4})?) ?([kmgt])i?b"
_REQUEST = rf"tried to allocate {_AMOUNT}\b[^\n]{{0,120}}?of which {_AMOUNT} is free"
_SHARED = rf"^[^\n]{{0,40}}\bshm\w*\W{{1,4}}{_AMOUNT[:-3]}(?:i?b)?\b"
# A request this much smaller than what is free was refused for another reason.
_FAR_BELOW = 4
# No worker of a DataLoader fills this much in passing.
_LARGE_SHARED = 8 * 2**30


def request_fits(seen: Evidence) -> Quotes | None:
    """Return the lines that refuse a request although far more is free, if no line tells of a real shortage."""
    fitting: list[Line] = []
    for match, line in seen.log.matches(_REQUEST):
        asked, free = _bytes(match[1], match[2]), _bytes(match[3], match[4])
        if asked * _FAR_BELOW > free:
            return None
        fitting.append(line)
    return tuple(fitting[:3]) or None


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
