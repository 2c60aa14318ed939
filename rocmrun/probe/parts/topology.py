"""KFD's topology as this container sees it, and the planned GPUs in it."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed

KFD_NODES = "/sys/class/kfd/kfd/topology/nodes"
KFD_PROPERTY = re.compile(r"^(\w+) (\d+)$", re.MULTILINE)
XGMI_LINK = 11  # CRAT_IOLINK_TYPE_XGMI, in the kernel's amdkfd/kfd_crat.h


class TopologyNode:
    """One node of the topology; *hidden* is one that the device cgroup keeps (EPERM on reading)."""

    def __init__(self, folder: Path) -> None:
        self.number = int(folder.name)
        self.hidden = False
        self.values: dict[str, int] = {}
        self.links: list[dict[str, int]] = []
        try:
            self.values = kfd_properties(folder / "properties")
        except PermissionError:
            self.hidden = True
        except OSError:
            return
        for link in sorted(folder.glob("io_links/*/properties")):
            with contextlib.suppress(OSError):
                self.links.append(kfd_properties(link))

    @property
    def is_gpu(self) -> bool:
        """Whether it computes: the kernel prints simd_count 0 for processors."""
        return self.values.get("simd_count", 0) > 0

    @property
    def render_minor(self) -> int | None:
        """The number in the name of its render node; None where it has none."""
        return self.values.get("drm_render_minor") or None

    @property
    def address(self) -> str | None:
        """The PCI address without its function, which in partition mode is no function."""
        place, domain = self.values.get("location_id"), self.values.get("domain", 0)
        if not place and not domain:
            return None
        place = place or 0
        return f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}"

    @property
    def partition(self) -> int:
        """The partition number: in the top bits of location_id, or in place of the function."""
        place = self.values.get("location_id", 0)
        return place >> 28 & 0xF or place & 7

    def is_planned(self, gpu: dict[str, Any]) -> bool:
        """Whether this is a GPU of the plan; an unknown address is told apart by its unique id."""
        address = gpu.get("pci_address")
        if address and self.address:
            same = address.lower().rpartition(".")[0] == self.address
            return same and gpu.get("partition") in (None, self.partition)
        unique = gpu.get("unique_id")
        return unique is not None and int(unique, 16) == self.values.get("unique_id")

    def described(self) -> dict[str, Any]:
        """Return what evidence keeps of a GPU."""
        version = self.values.get("gfx_target_version", 0)
        return {
            "node": self.number,
            "gfx": f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
            if version
            else None,
            "pci_address": self.address,
            "render_minor": self.render_minor,
            "hive_id": f"{self.values.get('hive_id', 0):016x}",
        }


def kfd_properties(path: Path) -> dict[str, int]:
    """Return the "key number" lines of a file of the topology; others are left out."""
    text = path.read_text(errors="replace")
    return {key: int(value) for key, value in KFD_PROPERTY.findall(text)}


def topology_nodes(root: str = KFD_NODES) -> list[TopologyNode]:
    """Return the nodes in numeric order, which is HIP's order of the GPUs among them."""
    with contextlib.suppress(OSError):
        folders = [path for path in Path(root).iterdir() if path.name.isdigit()]
        return [TopologyNode(path) for path in sorted(folders, key=lambda path: int(path.name))]
    return []


def check_kfd_topology(check: Check, planned: list[dict[str, Any]], root: str = KFD_NODES) -> None:
    """Find every planned GPU in the topology, which ROCm reads before it opens anything."""
    nodes = topology_nodes(root)
    gpus = [node for node in nodes if node.is_gpu]
    hidden = [node.number for node in nodes if node.hidden]
    check.evidence.update(
        nodes=len(nodes), gpus=[node.described() for node in gpus], hidden_nodes=hidden
    )
    missing = [gpu for gpu in planned if not any(node.is_planned(gpu) for node in gpus)]
    if missing:
        names = ", ".join(str(gpu.get("pci_address") or gpu.get("index")) for gpu in missing)
        where = "KFD shows no topology here" if not nodes else f"KFD's topology lacks {names}"
        msg = f"{where}: {len(missing)} of {len(planned)} planned GPUs cannot be found by ROCm"
        raise CheckFailed(msg)
    others = [node for node in gpus if not any(node.is_planned(gpu) for gpu in planned)]
    if planned and others:
        names = ", ".join(node.address or f"node {node.number}" for node in others)
        check.degrade(
            f"KFD also shows {names}, which the plan does not pass: no device cgroup hides them, "
            "and ROCm's tools will list or try them"
        )
