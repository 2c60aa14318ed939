"""AMD's usual line on real GPUs: what of it the probe needs, which is what a profile with the nodes alone has."""

import json
from typing import Any

import pytest

from tests.gpu.conftest import IMAGE
from tests.gpu.test_hardened_probe import ALL, FIRST
from tests.workspace import Workspace


@pytest.mark.slow
def test_the_probe_needs_nothing_of_amds_usual_line(
    workspace: Workspace, gpu_tables: str, gpu_count: int
) -> None:
    """Searched at quick, verified at standard; without the GPUs' nodes nothing passes."""
    del gpu_count
    profile = workspace.profile(IMAGE, gpu_tables + ALL, accelerator="cuda")

    done = workspace.rocmrun(
        "diff-privileges", profile, "--recipe", "amd", "--level", "standard", "--json", timeout=590
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    canary, *runs = found["runs"]
    assert (canary["purpose"], canary["result"]["verdict"]) == ("canary", "fail")
    assert all(run["result"]["verdict"] == "pass" for run in runs)
    assert found["minimal"] == []
    assert {verdict["verdict"] for verdict in found["verdicts"]} == {"removable"}
    assert found["exposure"]["permissive"]["total"] > 2 * found["exposure"]["minimal"]["total"]


@pytest.mark.slow
def test_a_probe_of_a_gpu_passes_with_fewer_system_calls(
    workspace: Workspace, gpu_tables: str, gpu_count: int
) -> None:
    """A driver and a runtime for GPUs under a filter of their own: it passed ten times, and passes again as emitted."""
    del gpu_count
    profile = workspace.profile(IMAGE, gpu_tables + FIRST, accelerator="cuda")
    emitted = f"small-{workspace.token}"

    done = workspace.rocmrun(
        "diff-privileges", profile, "--json", "--retries", "1", "--seccomp", str(workspace.profiles / "small.json"),
        "--emit", str(workspace.profiles / f"{emitted}.toml"), timeout=590,
    )  # fmt: skip
    probed = workspace.rocmrun("probe", emitted, "--level", "quick", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    made: dict[str, Any] = json.loads(done.stdout)["seccomp"]
    assert (made["status"], made["one_minimal"]) == ("tailored", True)
    assert made["verification"]["passes"] == made["verification"]["runs"] >= 10
    assert made["calls_after"] < made["calls_before"]
    assert {"@aio", "@32-bit", "@posix-mq"} & set(made["removed"])
    assert probed.returncode == 0, probed.stdout + probed.stderr
