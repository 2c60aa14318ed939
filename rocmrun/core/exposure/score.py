"""The exposure score: how much of a host a container can reach, in one number that ranks configurations.

The sum saturates, so that one bad right is visible among many good ones, and some combinations have a
floor, since they are the host whatever else is closed. It is no probability (docs/exposure.md).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rocmrun.core.create_request import create_request
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.exposure.container_rights import ContainerRights, Surroundings
from rocmrun.core.exposure.row import NotApplicable
from rocmrun.core.exposure.rows import ROWS, engine_sockets, wildcard_rule
from rocmrun.core.host import HostFacts
from rocmrun.core.host_paths import is_raw_device
from rocmrun.core.plan import Plan

VERSION = "rocmrun-score/1"
HIGHEST = 10.0
SCALE = 8000

Band = Literal["tight", "good", "Docker default", "exposed", "unsafe", "host-equivalent"]
_BANDS: tuple[tuple[float, Band], ...] = (
    (1, "tight"), (3, "good"), (5, "Docker default"), (7, "exposed"), (8.9, "unsafe"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of right.

    Attributes:
        sentence: What the container has, in plain words; for a row that does not apply, why.
        applies: Whether the row has anything to say of this container here.
        contribution: Its share of the total.
        gain: By how much the total falls when this right alone is gone, floors included.
    """

    id: str
    sentence: str
    applies: bool
    contribution: float
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A combination of rights under which the total cannot fall."""

    value: float
    reason: str
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """A container's score, with one decimal, and what it is made of.

    Attributes:
        floor: The floor that decides the total; None where the sum does.
        rows: By contribution, largest first; rows that add nothing and rows that do not apply follow.
    """

    version: str
    total: float
    band: Band
    floor: Floor | None
    rows: tuple[Row, ...]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def score_request(request: Mapping[str, Any], surroundings: Surroundings) -> Exposure:
    """Return the exposure of a create request: the body of POST /containers/create."""
    return score(ContainerRights.of(request, surroundings))


def score_inspected(record: Mapping[str, Any], surroundings: Surroundings) -> Exposure:
    """Return the exposure of an inspected container: GET /containers/{id}/json."""
    return score(ContainerRights.of_inspected(record, surroundings))


def score_plan(plan: Plan, host: HostFacts, engine: EngineFacts | None) -> Exposure:
    """Return the exposure of the container that *plan* makes on *host*."""
    own = frozenset(mount.source for mount in plan.mounts if mount.cache)
    return score_request(
        create_request(plan, role="workload"), Surroundings.of(host, engine, own_sources=own)
    )


def score(container: ContainerRights) -> Exposure:
    """Return the exposure of *container*."""
    findings = [(kind, kind.assess(container)) for kind in ROWS]
    points = {
        kind.id: 0.0 if isinstance(finding, NotApplicable) else kind.weight * finding.badness
        for kind, finding in findings
    }
    floors = _floors(container)
    weighed = sum(points.values())
    exact = _total(weighed, floors)
    rows = [
        Row(
            id=kind.id,
            sentence=finding.sentence,
            applies=not isinstance(finding, NotApplicable),
            contribution=_round(exact * points[kind.id] / weighed if weighed else 0, 2),
            gain=_round(exact - _without(kind.id, points, floors), 2),
        )
        for kind, finding in findings
    ]
    total = _round(exact, 1)
    deciding = max(floors, key=lambda floor: floor.value, default=None)
    return Exposure(
        version=VERSION,
        total=total,
        band=band(total),
        floor=deciding if deciding and deciding.value >= exact else None,
        rows=tuple(sorted(rows, key=lambda row: (-row.contribution, not row.applies, row.id))),
    )


def band(total: float) -> Band:
    """Return the word for a total with one decimal."""
    return next((word for most, word in _BANDS if total <= most), "host-equivalent")


def _total(points: float, floors: list[Floor]) -> float:
    sum_ = HIGHEST * (1 - math.exp(-points / SCALE))
    return max(sum_, *(floor.value for floor in floors)) if floors else sum_


def _without(row: str, points: Mapping[str, float], floors: list[Floor]) -> float:
    rest = sum(points.values()) - points[row]
    return _total(rest, [floor for floor in floors if row not in floor.rows])


def _round(value: float, digits: int) -> float:
    return round(value, digits) + 0.0  # no negative zero


def _floors(c: ContainerRights) -> list[Floor]:
    """Return the floors that hold: with each the rows without which it would not."""
    found = [
        (c.privileged, 10.0, "privileged", ("privileged",)),
        (bool(engine_sockets(c)), 10.0, "an engine's socket", ("engine_socket",)),
        (any(m.bind and m.source == "/" and not m.read_only for m in c.mounts), 10.0,
         "the host's / writable", ("binds",)),
        ("SYS_MODULE" in c.effective, 10.0, "may load kernel modules", ("cap_kernel",)),
        (wildcard_rule(c) and c.root, 10.0, "every device with root", ("device_rules", "user_root")),
        (any(map(is_raw_device, c.devices)), 9.5, "the host's memory or a disk", ("devices",)),
        ("SYS_ADMIN" in c.effective, 9.0, "SYS_ADMIN is effective", ("cap_admin",)),
        (bool({"SYS_RAWIO", "BPF"} & c.effective), 9.0, "SYS_RAWIO or BPF is effective", ("cap_kernel",)),
        (c.get("PidMode") == "host" and c.root, 9.0, "the host's processes with root", ("pid", "user_root")),
        ("DAC_READ_SEARCH" in c.effective, 8.5, "may read every file of the host's file systems", ("cap_dac",)),
        (c.masks == "none" and c.root, 8.0, "kernel settings with root", ("masks", "user_root")),
    ]  # fmt: skip
    return [
        Floor(value=value, reason=reason, rows=rows)
        for holds, value, reason, rows in found
        if holds
    ]
