"""What a diagnosis rests on: facts that were read or told, and the text they came with."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from rocmrun.core.diagnosis.log_text import Line
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts

Quotes = tuple[Line, ...]
MOST_QUOTES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """One attempt to open or map a device node and how it ended.

    Attributes:
        errno: Its name, such as "EACCES".
    """

    path: str
    errno: str
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A device node as a listing shows it.

    Attributes:
        mode: Permission bits; None when not shown.
        owner: Owner and group as printed: names or numbers.
        major: None when not shown.
    """

    path: str
    mode: int | None
    owner: str
    group: str
    line: Line
    major: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One `key: value`, nested keys joined with dots, all in lower case.

    Attributes:
        remedy: Whether it tells what somebody tried or what helped: no fact about the failure.
    """

    key: str
    text: str
    line: Line
    remedy: bool = False


class Body:
    """Lines in one text, searched by pattern; each pattern is looked for once."""

    def __init__(self, lines: tuple[Line, ...]) -> None:
        self.lines = lines
        self._text = "\n".join(line.lower for line in lines)
        self._starts: list[int] = []
        position = 0
        for line in lines:
            self._starts.append(position)
            position += len(line.lower) + 1
        self._found: dict[str, Quotes] = {}
        self._matches: dict[str, list[tuple[re.Match[str], Line]]] = {}

    def find(self, pattern: str) -> Quotes:
        """Return the first few lines that *pattern* (lower case) is found in."""
        found = self._found.get(pattern)
        if found is None:
            found = self._found[pattern] = self._search(compiled(pattern))
        return found

    def matches(self, pattern: str) -> list[tuple[re.Match[str], Line]]:
        """Return every match with its line, at most a thousand."""
        known = self._matches.get(pattern)
        if known is not None:
            return known
        found = self._matches[pattern] = []
        for match in compiled(pattern).finditer(self._text):
            found.append((match, self._line_at(match.start())))
            if len(found) >= 1000:  # enough to judge by
                break
        return found

    def _search(self, pattern: re.Pattern[str]) -> Quotes:
        found: dict[int, Line] = {}
        for match in pattern.finditer(self._text):
            place = bisect_right(self._starts, match.start()) - 1
            found.setdefault(place, self.lines[place])
            if len(found) >= MOST_QUOTES:
                break
        return tuple(found.values())

    def _line_at(self, position: int) -> Line:
        return self.lines[bisect_right(self._starts, position) - 1]


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return *pattern* compiled, with ^ and $ at lines."""
    return re.compile(pattern, re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known about one failure.

    Attributes:
        log: The text, without noise.
        noise: Lines that are never the cause, by the kind that explains them.
        told: `key: value` facts as lines, remedies apart.
        remedies: What somebody tried, or what helped.
        flags: Options of the container's command line, joined: "--device=/dev/kfd".
        env: Environment inside: NAME → value.
        gfx: Targets of the GPUs that are named, in order.
        groups: Groups of the process as told: numbers and names.
        uid_map: (inside, outside, count) rows of /proc/self/uid_map.
        host: Facts about this host; None when the failure may be another's.
        engine: What the engine says of itself.
    """

    log: Body
    told: Body
    remedies: Body
    noise: Mapping[str, Quotes] = field(default_factory=dict)
    values: tuple[Value, ...] = ()
    opened: tuple[Opened, ...] = ()
    nodes: tuple[Node, ...] = ()
    flags: tuple[tuple[str, Line], ...] = ()
    env: Mapping[str, tuple[str, Line]] = field(default_factory=dict)
    gfx: tuple[str, ...] = ()
    groups: frozenset[str] = frozenset()
    uid_map: tuple[tuple[int, int, int], ...] = ()
    host: HostFacts | None = None
    engine: EngineFacts | None = None

    @property
    def empty(self) -> bool:
        """Whether there is no text at all."""
        return not self.log.lines and not self.told.lines

    def find(self, pattern: str) -> Quotes:
        """Return where *pattern* stands in the log or in what was told."""
        return self.log.find(pattern) or self.told.find(pattern)
