"""Outputs of ROCm's tools that other people published, parsed to what `expected.json` beside them says.

The collection lies beside the project (../shared/fixtures) and is not part of it; what is recorded in
tests/unit/probe/recorded shows the same on outputs of our own.
"""

import json
from pathlib import Path

import pytest

from rocmrun.probe.parts.tools_rocminfo import parse_rocminfo
from rocmrun.probe.parts.tools_smi import amd_smi_gpu, amd_smi_rows, merged_rows, parse_rocm_smi

FIXTURES = Path(__file__).parents[3] / "shared/fixtures"

pytestmark = pytest.mark.skipif(
    not FIXTURES.is_dir(), reason="the collection of published outputs is not beside the project"
)


def names(pattern: str) -> list[str]:
    return sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.glob(pattern))


@pytest.mark.parametrize("name", names("rocminfo/*.txt"))
def test_published_agents_are_read_right(name: str) -> None:
    """Every agent, processors and an NPU too; what was not printed is null."""
    path = FIXTURES / name
    expected = json.loads((path.parent / "expected.json").read_text())[path.name]

    assert parse_rocminfo(path.read_text()) == expected


@pytest.mark.parametrize("name", names("rocm-smi/[!e]*.json"))
def test_published_cards_are_read_right(name: str) -> None:
    path = FIXTURES / name
    expected = json.loads((path.parent / "expected.json").read_text())[path.name]
    cards = parse_rocm_smi(path.read_text())

    assert len(cards) == expected["cards"]
    assert expected["details"] == {
        name: {
            "device_id": cards[name]["device_id"],
            "pci_bus": cards[name]["pci_address"],
            "unique_id": cards[name]["unique_id"],
            "vram_total_bytes": cards[name]["vram_bytes"],
            "gfx": cards[name]["gfx"],
        }
        for name in expected["details"]
    }


@pytest.mark.parametrize("name", names("*/failures/*.txt"))
def test_a_published_failure_is_no_gpu(name: str) -> None:
    """ "ROCk module is loaded" stands in half of them."""
    text = (FIXTURES / name).read_text()

    assert (parse_rocminfo(text), parse_rocm_smi(text), amd_smi_rows(text)) == ([], {}, [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "static-mi210-gpu_data-wrapper.json",
            [("AMD Instinct MI210", "0x740f", "gfx90a", 104, 300)],
        ),
        (
            "static-asic-igpu-only-as-service-user.json",
            [("Granite Ridge [Radeon Graphics]", "0x13c0", "gfx1036", 2, None)],
        ),
        ("static-asic-7900xtx-hand-redacted-INVALID.json", []),
        ("topology-new-changelog-sample-INVALID.json", []),
    ],
)
def test_published_amd_smi_is_read_right(name: str, expected: list[tuple[object, ...]]) -> None:
    """Both shapes of the top level; what is no JSON gives nothing, rather than a part of it."""
    gpus = map(amd_smi_gpu, amd_smi_rows((FIXTURES / "amd-smi" / name).read_text()))

    keys = ("name", "device_id", "gfx", "compute_units", "power_cap_watts")
    assert [tuple(gpu[key] for key in keys) for gpu in gpus] == expected


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("metric-power-units.json", [[]]),
        ("process-two-processes.json", [[]]),
        ("static-clock-bare-list-mi355x-excerpt.json", [[]]),
        ("topology-new-a-t-only-2gpu-pcie.json", [["SELF", "PCIE"], ["PCIE", "SELF"]]),
    ],
)
def test_sections_without_our_values_still_give_their_gpus(
    name: str, links: list[list[str]]
) -> None:
    """A number inside a section is no GPU of its own, and what is not told is None."""
    rows = merged_rows([(FIXTURES / "amd-smi" / name).read_text()])
    gpus = [amd_smi_gpu(rows[number]) for number in sorted(rows)]

    assert [[link["link_type"] for link in gpu["links"]] for gpu in gpus] == links
    assert {gpu[key] for gpu in gpus for key in ("unique_id", "serial", "vbios", "name")} == {None}


def test_eight_emulated_gpus_are_joined_over_all_commands() -> None:
    texts = [
        (FIXTURES / f"emulated/mini_x8.amd_smi_{command}.json").read_text()
        for command in ("static", "list", "firmware", "metric", "topology")
    ]
    gpus = [amd_smi_gpu(row) for _, row in sorted(merged_rows(texts).items())]

    assert [gpu["pci_address"] for gpu in gpus] == [f"0000:{n:02x}:00.0" for n in range(3, 11)]
    assert {gpu["uncorrectable_errors"] for gpu in gpus} == {0}
    assert {sum(link["link_type"] == "XGMI" for link in gpu["links"]) for gpu in gpus} == {7}
