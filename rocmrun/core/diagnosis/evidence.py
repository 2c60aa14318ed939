"""What a diagnosis rests on: facts that were read or told, and the text they came with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from rocmrun.core.diagnosis.body import Body, Quotes, Stretches
from rocmrun.core.diagnosis.log_text import Line
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts

IdRow = tuple[int, int, int]
# Something that is told, with the line that tells it.
_Told = TypeVar("_Told", tuple[str, Line], tuple[IdRow, Line])


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
        targets: Targets of the GPUs that are named.
        memberships: Groups of the process as told: numbers and names.
        id_rows: (inside, outside, count) rows of /proc/self/uid_map.
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
    targets: tuple[tuple[str, Line], ...] = ()
    memberships: tuple[tuple[str, Line], ...] = ()
    id_rows: tuple[tuple[IdRow, Line], ...] = ()
    host: HostFacts | None = None
    engine: EngineFacts | None = None

    @property
    def gfx(self) -> tuple[str, ...]:
        """Targets that are named, in order."""
        return tuple(dict.fromkeys(target for target, _ in self.targets))

    @property
    def groups(self) -> frozenset[str]:
        """Groups of the process."""
        return frozenset(group for group, _ in self.memberships)

    @property
    def uid_map(self) -> tuple[IdRow, ...]:
        """The rows of the map of ids."""
        return tuple(row for row, _ in self.id_rows)

    @property
    def empty(self) -> bool:
        """Whether there is no text at all."""
        return not self.log.lines and not self.told.lines

    def find(self, pattern: str) -> Quotes:
        """Return where *pattern* stands in the log or in what was told."""
        return self.log.find(pattern) or self.told.find(pattern)

    def near(self, stretches: Stretches) -> "Evidence":
        """Return what stands in *stretches*; of the process and its devices what is told elsewhere, where nothing is told there."""

        def inside(line: Line) -> bool:
            return any(low <= line.number <= high for low, high in stretches)

        def told_of(facts: tuple[_Told, ...]) -> tuple[_Told, ...]:
            return tuple(fact for fact in facts if inside(fact[1])) or facts

        return replace(
            self,
            log=self.log.near(stretches),
            told=self.told.near(stretches),
            remedies=self.remedies.near(stretches),
            opened=tuple(each for each in self.opened if inside(each.line)),
            nodes=tuple(node for node in self.nodes if inside(node.line)) or self.nodes,
            flags=told_of(self.flags),
            targets=told_of(self.targets),
            memberships=told_of(self.memberships),
            id_rows=told_of(self.id_rows),
        )
