"""Each GPU alone, on real ones: everything of `full`, speed beside plain torch, and a fault of one GPU only."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults import faulty_torch
from tests.gpu.conftest import IMAGE
from tests.gpu.test_hardened_probe import ALL, FIRST
from tests.workspace import Workspace

ANCHOR = 'NCCL_NVLS_ENABLE = "0"\n'
LEAST_SHARE_OF_PLAIN = 0.95
# What the probe multiplies, by torch alone: the same size, format and kind of numbers, at its best.
PLAIN = """
import time, torch
size = 8192
left, right = (
    (torch.rand(size, size, device="cuda") * 1.5 - 0.75).to(torch.bfloat16) for _ in range(2)
)
best = 0.0
for _ in range(6):
    torch.cuda.synchronize()
    begin = time.monotonic()
    for _ in range(40):
        torch.matmul(left, right)
    torch.cuda.synchronize()
    best = max(best, 40 * 2 * size**3 / (time.monotonic() - begin) / 1e12)
print(best)
"""


def probed(workspace: Workspace, tables: str, level: str) -> tuple[int, list[dict[str, Any]]]:
    """Probe; return the exit code and the checks of group device."""
    profile = workspace.profile(IMAGE, tables, accelerator="cuda")
    done = workspace.rocmrun("probe", profile, "--level", level, "--json", timeout=590)
    printed = json.loads(done.stdout)
    assert "probe" in printed, done.stderr
    checks = printed["probe"]["checks"]
    return done.returncode, [check for check in checks if check["group"] == "device"]


def found(checks: list[dict[str, Any]], name: str, device: int = 0) -> dict[str, Any]:
    """Return the one check of that name and device."""
    (check,) = (c for c in checks if (c["name"], c["device"]) == (name, device))
    return check


def with_faults(tables: str, folder: Path, *faults: str, device: str) -> str:
    """Return *tables* with a torch that has *faults* in the process of one device."""
    made = faulty_torch(folder, *faults, device=device)
    assert ANCHOR in tables
    mount = f'[[mounts]]\nsource = "{made}"\ntarget = "/faulty"\n'
    return tables.replace(ANCHOR, f'{ANCHOR}PYTHONPATH = "/faulty"\n') + mount


@pytest.mark.timeout(600)
def test_a_good_gpu_passes_everything_of_full(workspace: Workspace, gpu_tables: str) -> None:
    """Nothing fails; what is skipped says why; most of the free memory holds each word's own address."""
    code, checks = probed(workspace, gpu_tables + FIRST, "full")

    wrong = [(c["name"], c["reason"]) for c in checks if c["status"] in ("fail", "degraded")]
    assert (code, wrong) == (0, [])
    assert [c["name"] for c in checks if c["status"] == "skipped" and not c["reason"]] == []
    for name in ("fp32", "fp64", "fp16", "bf16"):
        assert found(checks, f"matmul_{name}")["status"] == "pass"
        assert found(checks, f"speed_{name}")["evidence"]["tflops"] > 0
    for name in ("convolution", "repeat_convolution", "reduction", "attention", "attention:math"):
        assert found(checks, name)["status"] == "pass"
    sweep = found(checks, "memory_pattern")["evidence"]
    assert sweep["swept_bytes"] > 0.85 * sweep["free_bytes"]
    assert len(sweep["patterns"]) == 6
    assert found(checks, "memory_bandwidth")["evidence"]["copy_gb_per_s"] > 0
    copies = found(checks, "copy")["evidence"]
    assert copies["pinned_to_device_gb_per_s"] > 0
    compiled = found(checks, "compile")
    assert compiled["status"] == "pass" or compiled["reason"].startswith("there is no ")


@pytest.mark.timeout(600)
def test_the_speed_is_that_of_plain_torch(workspace: Workspace, gpu_tables: str) -> None:
    """In a container of the same profile: what the probe calls the GPU's speed is what a workload gets."""
    tables = gpu_tables + FIRST
    profile = workspace.profile(IMAGE, tables, name="plain", accelerator="cuda")
    words = ("launch", profile, "--no-probe", "--", sys.executable, "-c", PLAIN)
    plain = float(workspace.rocmrun(*words, timeout=200, check=True).stdout)

    _, checks = probed(workspace, tables, "full")

    speed = found(checks, "speed_bf16")["evidence"]["tflops"]
    assert speed >= LEAST_SHARE_OF_PLAIN * plain


@pytest.mark.timeout(600)
def test_a_fault_of_one_gpu_is_that_gpus_result(
    workspace: Workspace, gpu_tables: str, gpu_count: int, tmp_path: Path
) -> None:
    """Each check names what is wrong with GPU 1; GPU 0 finishes all of its own."""
    if gpu_count < 2:
        pytest.skip("this machine has one GPU")
    faults = ("convolution", "reduction", "attention", "memory", "product", "nan", "bit")
    tables = with_faults(gpu_tables + ALL, tmp_path, *faults, device="1")
    code, checks = probed(workspace, tables, "standard")

    failed = {(c["device"], c["name"]) for c in checks if c["status"] == "fail"}
    assert code == 9
    assert failed == {
        (1, name)
        for name in (
            *("convolution", "reduction", "attention", "memory_pattern"),
            *("matmul_bf16", "matmul_fp16", "repeat_fp32"),
        )
    }
    assert found(checks, "peak_memory", 0)["status"] == "pass"
    assert found(checks, "matmul_fp64", 1)["status"] == "pass"


@pytest.mark.timeout(600)
def test_a_gpu_at_a_third_of_its_siblings_speed_is_degraded(
    workspace: Workspace, gpu_tables: str, gpu_count: int, tmp_path: Path
) -> None:
    """Slow is not wrong: work may start, and the numbers are there."""
    if gpu_count < 2:
        pytest.skip("this machine has one GPU")
    tables = with_faults(gpu_tables + ALL, tmp_path, "slow", device="1")
    code, checks = probed(workspace, tables, "standard")

    slow = found(checks, "siblings", 1)
    assert code == 0
    assert slow["status"] == "degraded"
    assert 0.2 < slow["evidence"]["share_of_others_median"]["speed_fp32"] < 0.5
    assert found(checks, "siblings", 0)["status"] == "pass"
