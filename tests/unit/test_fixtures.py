"""Topologies that other people published, parsed to what `expected.json` beside each says.

The collection lies beside the project (../shared/fixtures) and is not part of it; everything that
it shows is tested on trees of our own too (tests/hosts.py).
"""

import json
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.host import HostFacts
from rocmrun.core.host_json import host_to_json
from rocmrun.core.pci import parse_uevent
from rocmrun.system.sysfs import read_host
from rocmrun.system.sysfs.gpus import read_pci_device
from rocmrun.system.sysfs.tree import Tree

FIXTURES = Path(__file__).parents[3] / "shared/fixtures"
TOPOLOGIES = sorted(FIXTURES.glob("kfd-topology/*/expected.json"))

pytestmark = pytest.mark.skipif(
    not FIXTURES.is_dir(), reason="the collection of published outputs is not beside the project"
)

# Compared one to one with the GPU objects of `rocmrun host --json`.
SAME_KEYS = (
    "node",
    "gfx",
    "device_id",
    "pci_bdf",
    "domain_known",
    "partition",
    "kfd_gpu_id",
    "render_minor",
    "unique_id",
    "hive_id",
    "vram_bytes",
    "compute_units",
    "num_xcc",
    "xgmi_peers",
)


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.parent.name)
def test_a_published_topology_is_read_right(path: Path, tmp_path: Path) -> None:
    """Every GPU node, and every key of it; null stays null."""
    expected = json.loads(path.read_text())

    host = read_topology(path.parent / "topology", tmp_path)

    gpus = json.loads(json.dumps(host_to_json(host)))["gpus"]
    assert [{key: gpu[key] for key in SAME_KEYS} for gpu in gpus] == [
        {key: node[key] for key in SAME_KEYS} for node in expected["nodes"] if node["kind"] == "gpu"
    ]
    assert [gpu["cpu_node"] for gpu in gpus] == [
        cpu_node(node) for node in expected["nodes"] if node["kind"] == "gpu"
    ]
    assert [gpu["index"] for gpu in gpus] == list(range(len(gpus)))
    assert any(gpu.partition is not None for gpu in host.gpus) is expected["partitioned"]
    if expected["gpu_nodes"] is None:
        # simd_count 0 beside a render minor and a target, which no kernel prints: no GPU, says our rule.
        assert host.gpus == ()
    else:
        assert len(gpus) == expected["gpu_nodes"]
    if expected["distinct_pci_addresses"] is not None:
        addresses = {gpu["pci_bdf"] for gpu in gpus}
        assert len(addresses) == expected["distinct_pci_addresses"]


def test_a_published_card_is_read_right() -> None:
    """A Vega 56 whose firmware names no NUMA node."""
    card = "/class-drm/card0/device"
    tree = Tree(FIXTURES / "drm/vega56-card0")

    facts = read_pci_device(tree, card)

    assert (facts.vendor_id, facts.device_id, facts.revision) == ("0x1002", "0x687f", "0xc1")
    assert facts.numa_node is None
    assert facts.unique_id == "0123456789abcdef"
    assert facts.vram_bytes == 8573157376
    gpu = parse_uevent(tree.text(f"{card}/uevent") or "")
    assert gpu is not None
    assert (gpu.address, gpu.device_id, gpu.driver) == ("0000:09:00.0", "0x687f", "amdgpu")


def read_topology(topology: Path, root: Path) -> HostFacts:
    kfd = root / "sys/class/kfd/kfd"
    kfd.mkdir(parents=True)
    (kfd / "topology").symlink_to(topology)
    return read_host(root)


def cpu_node(node: dict[str, Any]) -> Any:
    own = node["cpu_nodes_own_links"]
    return own[0] if own else node["cpu_node_from_cpu_links"]
