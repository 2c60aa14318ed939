"""A process of a container, as /proc shows it. Reads nothing itself."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from rocmrun.core.os_text import number
from rocmrun.core.text import GIB, KIB, MIB

_KFD = "/dev/kfd"
_RENDER = re.compile(r"/dev/dri/renderD(\d{1,6})")
_KEY = re.compile(r"^(drm-[\w-]+):\s*(\S+)(?:[ \t]+(\w+))?[ \t]*$", re.MULTILINE)
_ENGINE = "drm-engine-"
_UNITS = {"": 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}
# The name stands in parentheses and may hold anything; state, 10 fields, then utime and stime (proc(5)).
_STAT = re.compile(r"^\d+ \((.*)\) (\S)(?: -?\d+){10} (\d{1,20}) (\d{1,20})", re.DOTALL)
# How a GPU's memory is called in fdinfo: the older key first (the kernel's drm-usage-stats.rst).
_VRAM_KEYS = ("drm-memory-vram", "drm-resident-vram", "drm-total-vram")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrmClient:
    """One open file of a render node, as its fdinfo tells (the kernel's drm-usage-stats.rst).

    Attributes:
        device: PCI address of the GPU.
        engine_seconds: Time that its jobs kept engines busy. Queues that KFD gives to HIP are not in it:
            amdgpu_fdinfo.c counts what was submitted through the render node alone.
        vram_bytes: Memory of the GPU that it holds.
    """

    device: str
    client: str
    engine_seconds: float = 0.0
    vram_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process at one moment.

    Attributes:
        cpu_seconds: Processor time since its start.
        runnable: Whether its first thread runs, or has work and waits for a CPU.
        nodes: GPU nodes that it holds open, by their paths inside; None where this user may not look.
        clients: What fdinfo says of them, one a client.
    """

    pid: int
    name: str
    cpu_seconds: float
    runnable: bool = False
    nodes: frozenset[str] | None = None
    clients: tuple[DrmClient, ...] = field(default=())

    @property
    def holds_kfd(self) -> bool:
        """Whether it has /dev/kfd open."""
        return _KFD in (self.nodes or ())

    @property
    def minors(self) -> frozenset[int]:
        """The render nodes that it has open, by number."""
        found = (_RENDER.fullmatch(node) for node in self.nodes or ())
        return frozenset(int(match[1]) for match in found if match)


def parse_stat(text: str, ticks: int) -> tuple[str, float, bool] | None:
    """Return name, processor seconds and whether it is runnable from /proc/PID/stat; None for one that has ended."""
    match = _STAT.match(text)
    if match is None or match[2] in "ZX":
        return None
    return match[1], (int(match[3]) + int(match[4])) / ticks, match[2] == "R"


def is_gpu_node(path: str) -> bool:
    """Whether a path is one of the nodes through which a GPU is used."""
    return path == _KFD or _RENDER.fullmatch(path) is not None


def parse_fdinfo(text: str) -> DrmClient | None:
    """Return the client that a file of /proc/PID/fdinfo describes; None for a file that is no GPU's."""
    values = {key: (value, unit) for key, value, unit in _KEY.findall(text)}
    if "drm-driver" not in values:
        return None
    engines = (
        number(value) or 0
        for key, (value, unit) in values.items()
        if key.startswith(_ENGINE) and unit == "ns"
    )
    vram = next((values[key] for key in _VRAM_KEYS if key in values), ("0", ""))
    return DrmClient(
        device=values.get("drm-pdev", ("", ""))[0],
        client=values.get("drm-client-id", ("", ""))[0],
        engine_seconds=sum(engines) / 1e9,
        vram_bytes=(number(vram[0]) or 0) * _UNITS.get(vram[1], 1),
    )


def distinct(clients: Iterable[DrmClient]) -> tuple[DrmClient, ...]:
    """Return each client once: a descriptor that was duplicated shows the same one."""
    return tuple({(each.device, each.client): each for each in clients}.values())
