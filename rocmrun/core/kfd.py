"""The text that KFD prints under /sys/class/kfd/kfd/topology, as values. Reads nothing itself.

The formats are those of the kernel's drivers/gpu/drm/amd/amdkfd/kfd_topology.c.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rocmrun.core.host import Link
from rocmrun.core.text import printable

_U32_MAX, _U64_MAX = 2**32 - 1, 2**64 - 1
_HEX_DIGIT_MAX, _GFX_MAJOR_MAX = 15, 99
_PROPERTY = re.compile(r"^([A-Za-z_]\w*) ([0-9]{1,20})$", re.ASCII | re.MULTILINE)
# The lines that matter in the order in which the kernel prints them: 64 partitions have 4000 links.
_LINK = re.compile(
    r"type ([0-9]{1,20})\n(?:\w+ [0-9]+\n)*?node_to ([0-9]{1,20})\n(?:weight ([0-9]{1,20})\n)?",
    re.ASCII,
)
_SKIPPED_LINES, _SKIPPED_LENGTH = 8, 80

_HEAP_TYPES_OF_VRAM = (1, 2)  # HSA_MEM_HEAP_TYPE_FB_PUBLIC, _FB_PRIVATE
_LINK_KINDS = {"2": "pcie", "11": "xgmi"}

# Client APUs by target: class "apu" of the GPU table (libhsakmt's device table, kernel, pci.ids),
# and gfx909, gfx1037 and gfx801 as LLVM's AMDGPU usage page and libhsakmt name them.
APU_TARGETS = frozenset(
    {"gfx801", "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1037"}
    | {"gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"}
)
# Cards and modules of their own, from the same table.
DISCRETE_TARGETS = frozenset(
    {"gfx803", "gfx900", "gfx904", "gfx906", "gfx908", "gfx90a", "gfx950", "gfx1250"}
    | {"gfx1010", "gfx1011", "gfx1012", "gfx1030", "gfx1031", "gfx1032", "gfx1034"}
    | {"gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"}
)
MI300_TARGET = "gfx942"
MI300A_DEVICE_ID = 0x74A0


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PciLocation:
    """A PCI address in numbers, so that it sorts as amd-smi sorts it."""

    domain: int
    bus: int
    device: int
    function: int

    @property
    def address(self) -> str:
        """The address as sysfs names it: "0000:63:00.0"."""
        return f"{self.domain:04x}:{self.bus:02x}:{self.device:02x}.{self.function:x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """The "key number" lines of a KFD file, and the lines that were no such thing."""

    values: Mapping[str, int]
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KfdNode:
    """One node of the topology, CPU or GPU.

    Attributes:
        hidden: The device cgroup refused the properties (EPERM). KFD asks it for GPU nodes only.
        banks: The values of each memory bank; None when there is no such directory.
    """

    number: int
    hidden: bool = False
    values: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    gpu_id: int | None = None
    name: str | None = None
    banks: tuple[Mapping[str, int], ...] | None = None
    links: tuple[Link, ...] = ()

    @property
    def is_gpu(self) -> bool:
        """Whether the node computes on a GPU: simd_count decides, where there is one.

        The kernel prints simd_count 0 for processors. A render minor or a target is no test: test
        data and scrubbed trees carry both on other nodes.
        """
        if self.hidden:
            return True
        if "simd_count" in self.values:
            return self.values["simd_count"] > 0
        return bool(self.gpu_id)

    @property
    def is_cpu(self) -> bool:
        """Whether the node has processors; an old APU is both."""
        return self.values.get("cpu_cores_count", 0) > 0 and not self.hidden


def parse_properties(text: str) -> Properties:
    """Return the "key number" lines of *text*; lines that are cut, joined or too large are skipped, not guessed."""
    found = _PROPERTY.findall(text)
    values = {key: value for key, digits in found if (value := int(digits)) <= _U64_MAX}
    lines = text.count("\n") + (not text.endswith("\n") and text != "")
    if len(found) == lines and len(values) == lines:
        return Properties(values=values)
    return Properties(values=values, skipped=_skipped_lines(text.split("\n"), values))


def _skipped_lines(lines: Iterable[str], values: Mapping[str, int]) -> tuple[str, ...]:
    skipped = []
    for line in lines:
        match = _PROPERTY.match(line)
        if line and not (match and match[1] in values and match.end() == len(line)):
            skipped.append(printable(line, _SKIPPED_LENGTH))
            if len(skipped) == _SKIPPED_LINES:
                break
    return tuple(skipped)


def parse_link(text: str, *, peer_to_peer: bool) -> Link | None:
    """Return the io_link or p2p_link that *text* describes; None when it does not say where it goes."""
    match = _LINK.match(text)
    if match:
        return _link(match[1], match[2], match[3], peer_to_peer)
    values = {key: str(value) for key, value in parse_properties(text).values.items()}
    if "type" not in values or "node_to" not in values:
        return None
    return _link(values["type"], values["node_to"], values.get("weight"), peer_to_peer)


@lru_cache(maxsize=1024)  # every GPU has a link of the same kind to each of the others
def _link(kind: str, to_node: str, weight: str | None, peer_to_peer: bool) -> Link:  # noqa: FBT001
    return Link(
        to_node=int(to_node),
        kind=_LINK_KINDS.get(kind, kind),
        weight=int(weight) if weight else None,
        peer_to_peer=peer_to_peer,
    )


def gfx_name(version: int | None) -> str | None:
    """Return "gfx942" for gfx_target_version 90402; None for 0, no line, or a number that names none.

    The number is decimal, major * 10000 + minor * 100 + step; the name has minor and step in hexadecimal.
    """
    if not version:
        return None
    major, minor, step = version // 10000, version // 100 % 100, version % 100
    if not 0 < major <= _GFX_MAJOR_MAX or max(minor, step) > _HEX_DIGIT_MAX:
        return None
    return f"gfx{major}{minor:x}{step:x}"


def pci_location(values: Mapping[str, int]) -> PciLocation | None:
    """Return where a node sits on the PCI bus, as its location_id says; in partition mode see partition_bits.

    All zero is the host bridge, which is no GPU: scrubbed trees print it for "not known".
    """
    place, domain = values.get("location_id"), values.get("domain", 0)
    if place is None or place & 0x0FFF0000 or max(place, domain) > _U32_MAX:
        return None
    if not place & 0xFFFF and not domain:
        return None
    return PciLocation(
        domain=domain, bus=place >> 8 & 0xFF, device=place >> 3 & 0x1F, function=place & 7
    )


def partition_bits(values: Mapping[str, int]) -> int:
    """Return the partition number in the top four bits of location_id, where some kernels put it.

    Others add it to the PCI function; the revert of "drm/amdkfd: Add partition id field to
    location_id" shows both.
    """
    return values.get("location_id", 0) >> 28 & 0xF


def vram_bytes(banks: tuple[Mapping[str, int], ...] | None) -> int | None:
    """Return the device memory that a GPU node's *banks* add up to; None when they do not say.

    A bank without a type counts: only an old APU, processor and GPU in one node, has others.
    """
    sizes = [
        bank.get("size_in_bytes", 0)
        for bank in banks or ()
        if bank.get("heap_type", _HEAP_TYPES_OF_VRAM[0]) in _HEAP_TYPES_OF_VRAM
    ]
    return sum(sizes) if sizes and all(sizes) else None


def compute_units(values: Mapping[str, int]) -> int | None:
    """Return the number of compute units: SIMDs divided by SIMDs a unit (4 on CDNA, 2 on RDNA)."""
    per_unit = values.get("simd_per_cu", 0)
    return values["simd_count"] // per_unit if per_unit and "simd_count" in values else None


def hex_id(number: int | None) -> str | None:
    """Return a unique or hive id as 16 hex digits; 0 means that there is none."""
    return f"{number:016x}" if number else None


def is_apu(gfx: str | None, values: Mapping[str, int]) -> bool | None:
    """Return whether a GPU shares package and memory with processors; None when its target is not known."""
    if values.get("cpu_cores_count", 0) > 0 or gfx in APU_TARGETS:
        return True
    if gfx in DISCRETE_TARGETS:
        return False
    if gfx == MI300_TARGET and "device_id" in values:
        return values["device_id"] == MI300A_DEVICE_ID
    return None
