"""The table gpu_metrics that amdgpu shows in sysfs: what it says of throttling.

Layouts, header and sizes: drivers/gpu/drm/amd/include/kgd_pp_interface.h (revision 1.6 was laid out anew
before it was used, so a table of another size than is known is not read). Bits of the status that is
the same for all GPUs: drivers/gpu/drm/amd/pm/swsmu/inc/amdgpu_smu.h. Which GPU tells what, and how
residencies are read: https://rocm.docs.amd.com/projects/amdsmi/en/develop/conceptual/gpu-violations.html.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

_HEADER = struct.Struct("<HBB")
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
# The driver fills a table with ones first: a field that the firmware has not is left so.
_UNSET_U32, _UNSET_U64 = 2**32 - 1, 2**64 - 1

# (format, content) → size, where throttle_status is, where indep_throttle_status is.
_STATUS: Mapping[tuple[int, int], tuple[int, int, int | None]] = {
    (1, 0): (80, 68, None),
    (1, 1): (96, 68, None),
    (1, 2): (104, 68, None),
    (1, 3): (120, 68, 112),
    (1, 4): (288, 40, None),
    (1, 5): (360, 104, None),
    (2, 0): (120, 112, None),
    (2, 1): (120, 108, None),
    (2, 2): (128, 108, 120),
    (2, 3): (152, 108, 120),
    (2, 4): (168, 108, 120),
}
# (format, content) → size, where accumulation_counter is; the residencies follow it.
_RESIDENCY: Mapping[tuple[int, int], tuple[int, int]] = {
    (1, 6): (1664, 32),
    (1, 7): (2208, 40),
    (1, 8): (3872, 40),
}
POWER_LIMIT = "power limit"
_RESIDENCIES = ("processor hot", POWER_LIMIT, "socket too hot", "voltage regulator too hot", "memory too hot")  # fmt: skip

# Ranges of SMU_THROTTLER_*_BIT.
_KINDS = (
    (range(16), POWER_LIMIT),
    (range(16, 32), "current limit"),
    (range(32, 48), "too hot"),
    (range(48, 64), "another limit"),
)
_HOT = {34: "memory too hot", 38: "voltage regulator too hot", 39: "voltage regulator too hot", 47: "processor hot"}  # fmt: skip
SOME = "a limit that the table does not name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """What one reading says.

    Attributes:
        now: What holds the clock down at this moment, () for nothing; None where it does not tell.
        cycles: The firmware's counter, beside which residencies are counted; None where it has none.
        residencies: Reason → accumulated cycles.
        problem: Why nothing is known.
    """

    now: tuple[str, ...] | None = None
    cycles: int | None = None
    residencies: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""


def parse_gpu_metrics(data: bytes) -> Throttling:
    """Return what the bytes of gpu_metrics say of throttling."""
    if len(data) < _HEADER.size:
        return Throttling(problem="gpu_metrics is empty")
    size, major, minor = _HEADER.unpack_from(data)
    revision = (major, minor)
    known = _STATUS.get(revision) or _RESIDENCY.get(revision)
    if known is None:
        return Throttling(problem=f"gpu_metrics has revision {major}.{minor}, which is not known")
    if size != known[0] or len(data) < size:
        return Throttling(
            problem=f"gpu_metrics {major}.{minor} has {min(size, len(data))} bytes, not {known[0]}"
        )
    if revision in _STATUS:
        _, at, independent = _STATUS[revision]
        return _status(data, at, independent)
    return _residencies(data, _RESIDENCY[revision][1])


def _status(data: bytes, at: int, independent: int | None) -> Throttling:
    if independent is not None:
        bits = _U64.unpack_from(data, independent)[0]
        if bits != _UNSET_U64:
            return Throttling(now=_reasons(bits))
    bits = _U32.unpack_from(data, at)[0]
    if bits == _UNSET_U32:
        return Throttling(problem="this GPU's firmware does not tell it")
    # What a bit means differs from GPU to GPU here.
    return Throttling(now=(SOME,) if bits else ())


def _reasons(bits: int) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for bit in range(64):
        if bits >> bit & 1:
            kind = next(name for bits_of, name in _KINDS if bit in bits_of)
            found[_HOT.get(bit, kind)] = None
    return tuple(found)


def _residencies(data: bytes, at: int) -> Throttling:
    values = [_U32.unpack_from(data, at + 4 * place)[0] for place in range(1 + len(_RESIDENCIES))]
    if values[0] == _UNSET_U32:
        return Throttling(problem="this GPU's firmware does not tell it")
    counted = zip(_RESIDENCIES, values[1:], strict=True)
    return Throttling(
        cycles=values[0],
        residencies={name: value for name, value in counted if value != _UNSET_U32},
    )


def shares(first: Throttling, last: Throttling) -> dict[str, float] | None:
    """Return reason → percent of the time between two readings; None where residencies are not counted."""
    if first.cycles is None or last.cycles is None:
        return None
    cycles = (last.cycles - first.cycles) % 2**32
    if not cycles:
        return None
    return {
        name: min(100.0, 100 * ((last.residencies[name] - begun) % 2**32) / cycles)
        for name, begun in first.residencies.items()
        if name in last.residencies
    }
