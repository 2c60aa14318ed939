"""AMD's usual line on real GPUs: what of it the probe needs, which is what a profile with the nodes alone has."""

import json
from typing import Any

import pytest

from tests.gpu.conftest import IMAGE
from tests.gpu.test_hardened_probe import ALL
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
