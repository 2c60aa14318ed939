"""Overrides of a GPU's target: which one is for which GPU, on topologies as a container sees them."""

from pathlib import Path
from typing import Any

import pytest

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.overrides import (
    OVERRIDE,
    answers_as,
    check_override,
    deciding,
    overridden,
    overrides,
    usable_nodes,
)
from rocmrun.probe.parts.topology import TopologyNode
from tests.hosts import FakeGpu, build_host
from tests.unit.probe.examined import examined

DISCRETE, INTEGRATED = "0000:03:00.0", "0000:0c:00.0"
PLANNED: list[dict[str, Any]] = [
    {"index": 0, "gfx": "gfx1101", "pci_address": DISCRETE, "partition": None},
    {"index": 1, "gfx": "gfx1036", "pci_address": INTEGRATED, "partition": None},
]


def nodes(folder: Path, *passed: int) -> list[TopologyNode]:
    """Return the nodes of a host with one processor and two GPUs, of which some render nodes are here."""
    gpus = [
        FakeGpu(address=DISCRETE, minor=128, gfx_version=110001),
        FakeGpu(address=INTEGRATED, minor=129, gfx_version=100306),
    ]
    render_nodes = folder / "dri"
    render_nodes.mkdir()
    for minor in passed:
        (render_nodes / f"renderD{minor}").touch()
    root = build_host(folder / "host", gpus) / "sys/class/kfd/kfd/topology/nodes"
    return usable_nodes(str(root), str(render_nodes))


def judged(
    seen: list[TopologyNode], planned: list[dict[str, Any]] = PLANNED, **environment: str
) -> Check:
    return examined(check_override, ["gfx1100", "gfx1101"], planned, environment, seen)


@pytest.mark.parametrize(
    ("version", "gfx"),
    [
        ("10.3.0", "gfx1030"),
        ("9.0.10", "gfx90a"),
        ("9.0.12", "gfx90c"),
        ("11.5.1", "gfx1151"),
        ("10.3", None),
        ("gfx1030", None),
        ("10.3.x", None),
        ("10.3.\u00b2", None),
        ("10.3.0 ", None),  # what stands behind the number makes it invalid, a blank too
        ("64.0.0", None),
        ("10.3.256", None),
        ("", None),
    ],
)
def test_versions_are_decimal_and_names_hexadecimal(version: str, gfx: str | None) -> None:
    assert overridden(version) == gfx


def test_an_empty_override_is_one() -> None:
    """The runtime takes it for an invalid version, and fails."""
    assert overrides({OVERRIDE: "", f"{OVERRIDE}_2": "11.0.0", "OTHER": "1"}) == {
        OVERRIDE: None,
        f"{OVERRIDE}_2": "gfx1100",
    }
    check = judged([], HSA_OVERRIDE_GFX_VERSION="")
    assert check.reason.startswith("HSA_OVERRIDE_GFX_VERSION= is not major.minor.step")


def test_a_number_counts_processors_first(tmp_path: Path) -> None:
    """Node 0 is the processor; the override of one GPU leaves the other its own name."""
    seen = nodes(tmp_path, 128, 129)
    check = judged(seen, HSA_OVERRIDE_GFX_VERSION_2="10.3.0")

    assert check.evidence["deciding"] == {0: [], 1: ["HSA_OVERRIDE_GFX_VERSION_2"]}
    assert (check.status, check.reason) == (
        "degraded",
        "HSA_OVERRIDE_GFX_VERSION_2=10.3.0: GPUs gfx1036 answer as gfx1030, which AMD does not support",
    )
    environment = {"HSA_OVERRIDE_GFX_VERSION_2": "10.3.0"}
    assert answers_as(PLANNED[0], environment, seen) == ("gfx1101",)
    assert answers_as(PLANNED[1], environment, seen) == ("gfx1036", "gfx1030")


def test_the_number_is_that_of_the_container(tmp_path: Path) -> None:
    """The host's second GPU is node 1 where only it was passed: the host's number is nobody's here."""
    seen = nodes(tmp_path, 129)
    alone = [{**PLANNED[1], "index": 0}]

    assert [node.number for node in seen] == [0, 2]
    assert deciding(alone[0], {"HSA_OVERRIDE_GFX_VERSION_1": "10.3.0"}, seen) == [
        "HSA_OVERRIDE_GFX_VERSION_1"
    ]
    check = judged(seen, alone, HSA_OVERRIDE_GFX_VERSION_2="10.3.0")
    assert check.status == "degraded"
    assert check.reason.startswith("HSA_OVERRIDE_GFX_VERSION_2 is for no GPU here: numbers count")
    assert check.evidence["needed"] is False


def test_the_one_of_a_gpu_goes_before_the_one_of_all(tmp_path: Path) -> None:
    """And an override of a GPU that torch has code for is said to be superfluous."""
    check = judged(
        nodes(tmp_path, 128, 129),
        HSA_OVERRIDE_GFX_VERSION="11.0.0",
        HSA_OVERRIDE_GFX_VERSION_2="10.3.6",
    )

    assert check.reason == (
        "HSA_OVERRIDE_GFX_VERSION=11.0.0, HSA_OVERRIDE_GFX_VERSION_2=10.3.6: GPUs gfx1101 answer as "
        "gfx1100, which AMD does not support; this torch has code for gfx1101: unset it"
    )


def test_one_that_nobody_reads_does_no_harm(tmp_path: Path) -> None:
    """Every GPU has its own, so that the broken one for all of them is never looked at."""
    check = judged(
        nodes(tmp_path, 128, 129),
        HSA_OVERRIDE_GFX_VERSION="none",
        HSA_OVERRIDE_GFX_VERSION_1="11.0.1",
        HSA_OVERRIDE_GFX_VERSION_2="10.3.6",
    )

    assert (check.status, check.reason) == ("pass", "")


def test_without_a_topology_any_of_them_may_be_the_one() -> None:
    environment = {OVERRIDE: "10.3.0", f"{OVERRIDE}_1": "11.0.0"}

    assert answers_as(PLANNED[0], environment) == ("gfx1101", "gfx1030", "gfx1100")
