"""A model on every GPU, and checks of a profile's own that see one GPU each or all of them."""

import json
from typing import Any

import pytest

from tests.gpu.conftest import IMAGE
from tests.gpu.test_hardened_probe import ALL
from tests.workspace import Workspace

MODEL = ("load", "short_input", "long_input", "batch", "greedy_decode", "memory_growth")
SEES = """
import json, torch
left = torch.rand(512, 512, dtype=torch.float64, device="cuda:0")
assert ((left @ left).cpu() - left.cpu() @ left.cpu()).abs().max() < 1e-9
print(json.dumps({"gpus": torch.cuda.device_count()}))
"""
CHECKS = """
[[probe.checks]]
name    = "alone"
file    = "sees.py"
level   = "quick"
device  = "each"
timeout = 240
metrics = {{ gpus = {{ min = 1, max = 1 }} }}
[[probe.checks]]
name    = "together"
file    = "sees.py"
level   = "quick"
timeout = 240
metrics = {{ gpus = {{ min = {count}, max = {count} }} }}
"""


@pytest.fixture
def profile(workspace: Workspace, gpu_tables: str, gpu_count: int) -> str:
    """All GPUs, with both checks."""
    tables = gpu_tables + ALL + CHECKS.format(count=gpu_count)
    name = workspace.profile(IMAGE, tables, accelerator="cuda")
    (workspace.profiles / "sees.py").write_text(SEES, encoding="utf-8")
    return name


def record_of(workspace: Workspace, profile: str, level: str) -> dict[str, Any]:
    done = workspace.rocmrun("probe", profile, "--level", level, "--json", timeout=590)
    record: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0, (record["probe"]["reason"], done.stderr)
    return record


def checks(record: dict[str, Any], group: str, name: str) -> list[dict[str, Any]]:
    return [
        check
        for check in record["probe"]["checks"]
        if (check["group"], check["name"]) == (group, name)
    ]


def test_checks_of_the_profile_see_what_they_ask_for(
    workspace: Workspace, profile: str, gpu_count: int
) -> None:
    """One GPU with no other in sight, or all; in a container with next to no rights."""
    record = record_of(workspace, profile, "quick")

    alone, together = checks(record, "own", "alone"), checks(record, "own", "together")
    assert sorted(check["device"] for check in alone) == list(range(gpu_count))
    assert {check["status"] for check in (*alone, *together)} == {"pass"}
    assert together[0]["evidence"]["metrics"] == {"gpus": gpu_count}


def test_a_model_is_right_on_every_gpu(workspace: Workspace, profile: str, gpu_count: int) -> None:
    """Every logit within the bound that rounding sets, every token the likeliest, no growth."""
    record = record_of(workspace, profile, "full")

    for name in MODEL:
        found = checks(record, "model", name)
        assert [check["device"] for check in sorted(found, key=lambda c: c["device"])] == list(
            range(gpu_count)
        )
        assert {check["status"] for check in found} == {"pass"}, found
    for name in ("short_input", "long_input", "batch"):
        for check in checks(record, "model", name):
            assert 0 < check["evidence"]["worst_share_of_bound"] < 0.5, check
    for check in checks(record, "model", "greedy_decode"):
        evidence = check["evidence"]
        assert evidence["equal"] + evidence["undecided"] == evidence["tokens"]
        assert evidence["repeated"] is True
    for check in checks(record, "model", "memory_growth"):
        assert check["evidence"]["device_bytes"] == 0


def test_a_gpu_that_is_too_slow_for_the_profile_stops_a_launch(
    workspace: Workspace, gpu_tables: str
) -> None:
    """The bound is one that no GPU meets; its number is told, and no work starts."""
    tables = (
        gpu_tables
        + ALL
        + (
            '[[probe.checks]]\nname = "fast"\nlevel = "quick"\ndevice = "each"\n'
            'command = ["echo", \'{"tps": 5}\']\nmetrics = { tps = { min = 6 } }\n'
        )
    )
    name = workspace.profile(IMAGE, tables, accelerator="cuda")

    done = workspace.rocmrun("launch", name, "--", "true", timeout=300)

    assert done.returncode == 125
    assert "its metric tps is 5, less than 6" in done.stderr
