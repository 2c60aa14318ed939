"""ROCm's tools: recorded outputs, real failure texts, and tools that misbehave."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.report.model import ProbeCheck
from rocmrun.probe.parts.tools_amdsmi import judge_amdsmi, last_object
from rocmrun.probe.parts.tools_ras import check_ras
from rocmrun.probe.parts.tools_rocminfo import parse_rocminfo
from rocmrun.probe.parts.tools_run import MOST_OUTPUT, TOOL_SECONDS, ToolBudget, plain, run_tool
from rocmrun.probe.parts.tools_smi import (
    amd_smi_gpu,
    amd_smi_rows,
    hex_digits,
    merged_rows,
    parse_rocm_smi,
    quantity,
)
from tests.unit.probe.examined import examined
from tests.unit.probe.runs import run_probe

RECORDED = Path(__file__).parent / "recorded"
FIRST, SECOND = "0000:03:00.0", "0000:04:00.0"
PLANNED: list[dict[str, Any]] = [
    {"index": 0, "pci_address": FIRST, "gfx": "gfx942", "partition": None},
    {"index": 1, "pci_address": SECOND, "gfx": "gfx942", "partition": None},
]


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def checks(folder: Path, modules: Path, **settings: Any) -> dict[str, ProbeCheck]:
    """Run the whole probe at standard with tools of the test's own; return what they came to."""
    report = run_probe(
        torch=False,
        level="standard",
        environment={"PATH": f"{folder}:{os.defpath}", "PYTHONPATH": str(modules)},
        expect={"gpus": PLANNED},
        **settings,
    )
    return {check.name: check for check in report.checks if check.group == "tools"}


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    folder = tmp_path / "modules"
    folder.mkdir()
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def working_tools(folder: Path) -> None:
    """Tools that print what the real ones printed for two emulated GPUs."""
    tool(folder, "rocminfo", f"cat {RECORDED}/rocminfo-7.2.4-emulated.txt")
    tool(folder, "rocm-smi", f"cat {RECORDED}/rocm-smi-6.4.1-emulated.txt")
    known = f"{RECORDED}/amd-smi-10.1-$1-emulated.json"
    tool(folder, "amd-smi", f'[ -e "{known}" ] && cat "{known}" || echo "no $1 here" >&2')


def amdsmi_module(folder: Path, *addresses: str) -> None:
    (folder / "amdsmi.py").write_text(
        "def amdsmi_init(): print('a line of the library')\n"
        f"def amdsmi_get_processor_handles(): return {list(addresses)!r}\n"
        "def amdsmi_get_gpu_device_bdf(handle): return handle\n"
        "def amdsmi_get_gpu_device_uuid(handle): raise RuntimeError('not supported')\n"
    )


def test_tools_that_work_are_recorded(programs: Path, modules: Path) -> None:
    """Agents, cards, GPUs and error counts; what an emulator does not know is absent and not zero."""
    working_tools(programs)
    amdsmi_module(modules, FIRST, SECOND)
    found = checks(programs, modules)

    assert {name: found[name].status for name in ("rocminfo", "rocm_smi", "amd_smi", "ras")} == (
        dict.fromkeys(("rocminfo", "rocm_smi", "amd_smi", "ras"), "pass")
    )
    agents = found["rocminfo"].evidence["gpus"]
    assert [agent["bdf_no_domain"] for agent in agents] == ["03:00.0", "04:00.0"]
    assert agents[0]["isas"][0] == "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"
    assert found["rocm_smi"].evidence["cards"]["card1"]["unique_id"] == "0000000000000001"
    gpus = found["amd_smi"].evidence["gpus"]
    assert [(gpu["pci_address"], gpu["gfx"], gpu["serial"]) for gpu in gpus] == [
        (FIRST, "gfx942", None),
        (SECOND, "gfx942", None),
    ]
    assert set(found["amd_smi"].evidence["not_answered"]) == {"firmware", "xgmi"}
    assert found["ras"].evidence["counts"][FIRST]["amd-smi uncorrectable"] == 0
    assert (found["amdsmi"].status, found["amdsmi"].evidence["planned"]) == ("pass", 2)
    assert found["amdsmi"].evidence["vllm"].startswith("vLLM will choose ROCm")


def test_tools_that_fail_degrade_with_their_own_words(programs: Path, modules: Path) -> None:
    """The texts of Debian's real tools in a container without a GPU; none of them fails the probe."""
    tool(programs, "rocminfo", f"cat {RECORDED}/rocminfo-7.2.4-without-a-gpu.txt; exit 1")
    tool(programs, "rocm-smi", f"cat {RECORDED}/rocm-smi-6.4.1-without-a-gpu.txt >&2")
    tool(programs, "amd-smi", f"cat {RECORDED}/amd-smi-10.1-without-a-gpu.txt >&2; exit 255")
    words = recorded("amdsmi-27.1.0-without-a-gpu.txt").partition(": ")[2]
    (modules / "amdsmi.py").write_text(f"def amdsmi_init(): raise RuntimeError({words!r})\n")
    found = checks(programs, modules)

    for name, reason in (
        ("rocminfo", "ROCk module is NOT loaded, possibly no GPU devices"),
        ("rocm_smi", "Driver not initialized (amdgpu not found in modules)"),
        ("amd_smi", "exit code 255: ERROR:root:Drivers not loaded (amdgpu, amd_hsmp"),
        ("amdsmi", "34 | AMDSMI_STATUS_DRIVER_NOT_LOADED - Driver not loaded. vLLM takes"),
    ):
        assert found[name].status == "degraded"
        assert reason in found[name].reason
    assert "it is no proof that compute fails" in found["amd_smi"].reason
    assert found["ras"].status == "skipped"


def test_tools_that_are_not_there_are_skipped(programs: Path, modules: Path) -> None:
    """But a server without amdsmi finds no ROCm; it is only looked for, for to import it takes a minute."""
    (modules / "vllm.py").write_text("raise SystemExit('imported')\n")
    found = checks(programs, modules)

    assert {(found[name].status, found[name].reason) for name in ("rocminfo", "amd_smi")} == {
        ("skipped", "this image has no rocminfo"),
        ("skipped", "this image has no amd-smi"),
    }
    assert found["rocm_smi"].reason == "this image has no rocm-smi"
    assert found["amdsmi"].status == "degraded"
    assert found["amdsmi"].reason.startswith("vllm is here and amdsmi is not. vLLM takes a machine")


def test_the_quick_level_and_other_accelerators_ask_no_tool(programs: Path, modules: Path) -> None:
    tool(programs, "rocminfo", f"touch {programs}/asked")

    assert checks(programs, modules, accelerator="cpu") == {}
    assert not (programs / "asked").exists()


def test_an_amdsmi_that_aborts_its_process_is_told(programs: Path, modules: Path) -> None:
    (modules / "amdsmi.py").write_text("import os\nos.abort()\n")
    found = checks(programs, modules)

    assert found["amdsmi"].status == "degraded"
    assert found["amdsmi"].reason.startswith("amdsmi ended its process: SIGABRT")


def amdsmi_says(*addresses: str) -> Any:
    devices = [{"pci_address": address} for address in addresses]
    return examined(judge_amdsmi, {"devices": devices}, PLANNED)


def test_the_order_of_amdsmi_is_compared_with_hips() -> None:
    """By PCI address; more GPUs than were passed shift every number."""
    swapped = amdsmi_says(SECOND, FIRST)
    more = amdsmi_says("0000:01:00.0", FIRST, SECOND)
    fewer = amdsmi_says(SECOND)

    assert amdsmi_says(FIRST, SECOND).status == "pass"
    assert swapped.status == "degraded"
    assert "HIP 0 is amdsmi 1, HIP 1 is amdsmi 0" in swapped.reason
    assert more.reason.startswith("amdsmi lists 1 GPUs that were not passed (HIP 0 is amdsmi 1")
    assert fewer.reason.startswith(f"amdsmi does not list {FIRST[:-2]}")
    assert "no GPU" in amdsmi_says().reason
    nothing = examined(judge_amdsmi, {"absent": True, "servers": []}, PLANNED)
    assert nothing.status == "skipped"
    # What amdsmi 7.0.2 says where its library is missing.
    broken = examined(judge_amdsmi, {"error": "import: KeyError: 'libamd_smi.so'"}, PLANNED)
    assert broken.reason.startswith("amdsmi does not work: import: KeyError: 'libamd_smi.so'. vLLM")


def test_an_uncorrectable_error_degrades_with_its_number(tmp_path: Path) -> None:
    """From the driver's counters and from amd-smi; a card that sleeps counts nothing real."""
    folder = tmp_path / FIRST / "ras"
    folder.mkdir(parents=True)
    (folder / "umc_err_count").write_text("ue: 2\nce: 5\n")
    (folder / "gfx_err_count").write_text("ue: 1048560\nce: 0\n")
    gpus = [
        {"pci_address": FIRST, "uncorrectable_errors": 0},
        {"pci_address": SECOND, "uncorrectable_errors": 1, "correctable_errors": 9},
    ]
    check = examined(check_ras, PLANNED, gpus, str(tmp_path))

    assert check.status == "degraded"
    assert f"{FIRST}: 2 in umc uncorrectable" in check.reason
    assert f"{SECOND}: 1 in amd-smi uncorrectable" in check.reason
    assert check.evidence["counts"][FIRST]["umc correctable"] == 5
    assert "gfx uncorrectable" not in check.evidence["counts"][FIRST]


def test_corrected_errors_pass(tmp_path: Path) -> None:
    gpus = [{"pci_address": FIRST, "uncorrectable_errors": 0, "correctable_errors": 9}]

    assert examined(check_ras, PLANNED, gpus, str(tmp_path)).status == "pass"


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.glob("*without-a-gpu.txt")))
def test_a_failure_text_is_no_gpu(name: str) -> None:
    text = recorded(name)

    assert (parse_rocminfo(text), parse_rocm_smi(text), amd_smi_rows(text)) == ([], {}, [])


def test_a_tool_is_ended_at_its_limits() -> None:
    """A time, and an amount of output: the rest of its words is not read."""
    slow = run_tool([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.3)
    loud = run_tool([sys.executable, "-c", "while True: print('x' * 65536)"])
    deaf = run_tool(["/proc/version"])

    assert slow.reason == "it did not end within 0.3 s"
    assert loud.ended == f"it printed more than {MOST_OUTPUT >> 20} MiB"
    assert deaf.ended.startswith("it cannot be started")
    assert slow.seconds < 30


def test_a_tool_that_only_closes_its_output_is_ended_too() -> None:
    program = "import os, time; os.close(1); os.close(2); time.sleep(60)"
    run = run_tool([sys.executable, "-c", program], seconds=30)

    assert (run.ended, run.code) == ("it closed its output and did not end", -9)


def test_tools_share_the_time_of_their_stage() -> None:
    """Each gets what is left, and a little when nothing is: the stage itself must not run out."""
    assert 9 < ToolBudget(10).seconds <= 10
    assert ToolBudget(1000).seconds == TOOL_SECONDS
    assert ToolBudget(-5).seconds == 1


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('[{"gpu": 0}, {"gpu": 1}]', 2),
        ('{"gpu_data": [{"gpu": 0}]}', 1),
        ('[WARN] a group is missing\n[{"gpu": 0}]\nLegend:\n  SELF = self', 1),
        ('[{"gpu": 0}]\n[{"gpu": 1}]\n', 2),
        ('[\n  {\n    "gpu": 0,\n    "links": [\n      {"gpu": 1}\n    ],\n  ...\n', 0),
        ("no JSON at all", 0),
    ],
)
def test_every_shape_of_amd_smi(text: str, rows: int) -> None:
    """A broken document is not replaced by what is whole inside it."""
    assert len(amd_smi_rows(text)) == rows


def test_values_of_every_shape() -> None:
    """A number, a word of absence, a number with its unit in one string or apart."""
    assert [quantity(value) for value in (5, "500 MHz", {"value": 300, "unit": "W"}, "N/A")] == [
        5,
        500,
        300,
        None,
    ]
    assert hex_digits("0x2150ed85e16d2d5") == "02150ed85e16d2d5"
    assert [hex_digits(value) for value in ("0x0", "N/A", None)] == [None, None, None]
    assert plain("\x1b[31mred\x1b[0m\x07") == "red"
    assert last_object('noise\n{"a": 1}\n{"b": \n') == {"a": 1}


def test_names_of_rocm_smi_that_changed() -> None:
    """GPU ID became Device ID; gfx9010 is gfx90a; a serial of 0 is none."""
    old = json.dumps(
        {"card0": {"GPU ID": "0x738c", "Serial Number": "0", "PCI Bus": "0000:1E:00.0"}}
    )
    new = json.dumps(
        {"card0": {"Device ID": "0x740f", "GFX Version": "gfx9010", "SDMA firmware version": "8"}}
    )
    first, second = parse_rocm_smi(old)["card0"], parse_rocm_smi(f"WARNING: asleep\n{new}")["card0"]

    assert (first["device_id"], first["serial"], first["pci_address"]) == (
        "0x738c",
        None,
        "0000:1e:00.0",
    )
    assert (second["device_id"], second["gfx"], second["firmware"]) == (
        "0x740f",
        "gfx90a",
        {"sdma": "8"},
    )


def test_power_caps_partitions_and_firmware_wherever_they_stand() -> None:
    rows = merged_rows(
        [
            '[{"gpu": 0, "limit": {"ppt0": {"socket_power_limit": {"value": 750, "unit": "W"}}}}]',
            '[{"gpu": 0, "partition": {"accelerator_partition": "SPX", "memory_partition": "NPS1"}}]',
            '[{"gpu": 0, "fw_list": [{"fw_id": "SMC", "fw_version": "85.1"}]}]',
            '{"xgmi_metric": [{"gpu": 0, "link_metrics": {"bit_rate": "32 Gb/s"}}]}',
        ]
    )
    gpu = amd_smi_gpu(rows[0])

    assert (gpu["power_cap_watts"], gpu["compute_partition"], gpu["memory_partition"]) == (
        750,
        "SPX",
        "NPS1",
    )
    assert (gpu["firmware"], gpu["xgmi_bit_rate"]) == ({"SMC": "85.1"}, 32)
    assert amd_smi_gpu({"gpu": 0, "limit": {"max_power": {"value": 300}}})["power_cap_watts"] == 300
