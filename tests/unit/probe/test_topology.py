"""KFD's topology and xGMI from inside, on trees as the kernel writes them."""

from pathlib import Path
from typing import Any

import pytest

from rocmrun.probe.parts.tools_links import check_xgmi
from rocmrun.probe.parts.topology import check_kfd_topology, topology_nodes
from tests.hosts import FakeGpu, build_host, topology_node
from tests.unit.probe.examined import examined

FIRST, SECOND = "0000:05:00.0", "0000:26:00.0"
PLANNED: list[dict[str, Any]] = [
    {"index": 0, "pci_address": FIRST, "partition": None, "xgmi_peers": [1]},
    {"index": 1, "pci_address": SECOND, "partition": None, "xgmi_peers": [0]},
]


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Two GPUs of one hive; KFD numbers them 1 and 2."""
    gpus = [FakeGpu(address=a, minor=128 + n, hive_id=7) for n, a in enumerate((FIRST, SECOND))]
    return build_host(tmp_path, gpus) / "sys/class/kfd/kfd/topology/nodes"


def smi(address: str, **values: Any) -> dict[str, Any]:
    rates = {"xgmi_bit_rate": None, "xgmi_bandwidth": None}
    return {"pci_address": address, "links": [], **rates, **values}


def test_every_planned_gpu_is_found(nodes: Path) -> None:
    check = examined(check_kfd_topology, PLANNED, str(nodes))

    assert (check.status, check.evidence["nodes"]) == ("pass", 3)
    assert [gpu["pci_address"] for gpu in check.evidence["gpus"]] == ["0000:05:00", "0000:26:00"]
    assert check.evidence["gpus"][0]["gfx"] == "gfx942"


def test_a_gpu_that_is_not_there_fails(nodes: Path) -> None:
    other = {"index": 2, "pci_address": "0000:e3:00.0", "partition": None}
    check = examined(check_kfd_topology, [*PLANNED, other], str(nodes))

    assert check.status == "fail"
    assert check.reason.startswith("KFD's topology lacks 0000:e3:00.0: 1 of 3 planned GPUs")


def test_a_gpu_that_was_not_passed_and_is_not_hidden_degrades(nodes: Path) -> None:
    """As under a rootless engine, which has no device cgroup."""
    check = examined(check_kfd_topology, PLANNED[:1], str(nodes))

    assert check.status == "degraded"
    assert check.reason.startswith("KFD also shows 0000:26:00, which the plan does not pass")


def test_no_topology_fails_a_plan_with_gpus(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")

    assert examined(check_kfd_topology, PLANNED, absent).reason.startswith(
        "KFD shows no topology here: 2 of 2"
    )
    assert examined(check_kfd_topology, [], absent).status == "pass"


def test_partitions_are_told_apart_by_the_low_bits(tmp_path: Path) -> None:
    gpus = [
        FakeGpu(address=FIRST, minor=128 + n, partition=n, compute_partition="DPX")
        for n in range(2)
    ]
    root = str(build_host(tmp_path, gpus) / "sys/class/kfd/kfd/topology/nodes")
    planned = [{"index": n, "pci_address": FIRST, "partition": n} for n in range(2)]

    assert [node.partition for node in topology_nodes(root) if node.is_gpu] == [0, 1]
    assert examined(check_kfd_topology, planned, root).status == "pass"
    assert "which the plan does not pass" in examined(check_kfd_topology, planned[:1], root).reason


def test_planned_links_that_are_there_pass_with_their_figures(nodes: Path) -> None:
    check = examined(check_xgmi, PLANNED, [], str(nodes))

    assert (check.status, check.reason) == ("pass", "")
    assert check.evidence["links"][0] == {
        "from": FIRST,
        "to": SECOND,
        "weight": 15,
        "min_bandwidth": None,
        "max_bandwidth": 64000,
    }


def test_a_lost_link_degrades_and_is_named(nodes: Path) -> None:
    for link in topology_node(nodes.parents[5], 2).glob("io_links/*/properties"):
        link.write_text(link.read_text().replace("type 11", "type 2"))
    check = examined(check_xgmi, PLANNED, [], str(nodes))

    assert (check.status, check.reason) == (
        "degraded",
        f"{SECOND} has no xGMI link to {FIRST} here",
    )


def test_directions_that_differ_degrade(nodes: Path) -> None:
    for link in topology_node(nodes.parents[5], 2).glob("io_links/*/properties"):
        link.write_text(link.read_text().replace("64000", "32000"))
    check = examined(check_xgmi, PLANNED, [], str(nodes))

    assert check.reason == f"xGMI from {FIRST} to {SECOND} has 64000 MB/s, back 32000 MB/s"


def test_what_amd_smi_says_against_the_links_degrades(nodes: Path) -> None:
    """A link that is not enabled, and a GPU whose lanes are slower than the other's."""
    link = {"bdf": SECOND, "link_type": "XGMI", "link_status": "DISABLED"}
    gpus = [smi(FIRST, links=[link], xgmi_bit_rate=32), smi(SECOND, xgmi_bit_rate=16)]
    check = examined(check_xgmi, PLANNED, gpus, str(nodes))

    assert check.status == "degraded"
    assert f"the xGMI link of {FIRST} to {SECOND} is DISABLED" in check.reason
    assert f"xGMI of {SECOND} runs at 16 Gb/s a lane, of others at 32" in check.reason


def test_without_planned_links_it_is_skipped_with_the_reason() -> None:
    none = [{**gpu, "xgmi_peers": []} for gpu in PLANNED]
    unknown = [{**gpu, "xgmi_peers": None} for gpu in PLANNED]

    assert examined(check_xgmi, none, []).reason == "the host has no xGMI between the plan's GPUs"
    assert examined(check_xgmi, unknown, []).reason.startswith("the plan does not know of xGMI")
    assert examined(check_xgmi, [], []).status == "skipped"
