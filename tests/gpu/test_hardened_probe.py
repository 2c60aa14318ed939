"""The ordinary commands on real GPUs: the probe is right about them, in a container with next to no rights."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.conftest import IMAGE
from tests.workspace import Workspace

ALL = '[[devices]]\npath = "/dev/nvidia[0-9]*"\nreason = "one node for each GPU"\n'
FIRST = '[[devices]]\npath = "/dev/nvidia0"\nreason = "the first GPU alone"\n'


def checks(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the checks of one name."""
    return [check for check in record["probe"]["checks"] if check["name"] == name]


def probed(workspace: Workspace, profile: str, level: str) -> dict[str, Any]:
    """Probe and return the record, which has to say that all is well."""
    done = workspace.rocmrun("probe", profile, "--level", level, "--json", timeout=300)
    record: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, record["probe"]["status"]) == (0, "pass"), done.stderr
    return record


@pytest.mark.parametrize("level", ["quick", "standard"])
def test_every_gpu_is_proved_alone_and_together(
    workspace: Workspace, gpu_tables: str, gpu_count: int, level: str
) -> None:
    """One identity and one set of products a GPU, and a sum over all of them."""
    record = probed(
        workspace, workspace.profile(IMAGE, gpu_tables + ALL, accelerator="cuda"), level
    )

    addresses = {check["evidence"]["pci_address"] for check in checks(record, "identity")}
    assert gpu_count == len(addresses)
    for name in ("matmul_fp32", "matmul_fp16", "matmul_bf16", "repeat_fp32"):
        assert gpu_count == len(checks(record, name))
    (together,) = checks(record, "all_reduce") if gpu_count > 1 else ({"status": "pass"},)
    assert together["status"] == "pass"


def test_the_proof_was_made_without_rights(workspace: Workspace, gpu_tables: str) -> None:
    """No capability, no new privileges, a seccomp filter, a read-only root, a user that is nobody."""
    record = probed(
        workspace, workspace.profile(IMAGE, gpu_tables + ALL, accelerator="cuda"), "quick"
    )

    (capabilities,) = checks(record, "capabilities")
    (user,) = checks(record, "user")
    (root,) = checks(record, "root_filesystem")
    assert {"0" * 16} == {capabilities["evidence"][name] for name in ("CapEff", "CapBnd", "CapPrm")}
    assert user["evidence"]["uid"] != 0
    assert root["evidence"]["read_only"] is True


def test_nothing_else_of_the_host_is_reached(workspace: Workspace, gpu_tables: str) -> None:
    """The GPUs' nodes open because they are granted; mounts and limits are those of the plan."""
    record = probed(
        workspace, workspace.profile(IMAGE, gpu_tables + ALL, accelerator="cuda"), "quick"
    )

    isolation = [check for check in record["probe"]["checks"] if check["group"] == "isolation"]
    assert {
        check["name"]: check["reason"] for check in isolation if check["status"] != "pass"
    } == {}
    assert len(isolation) == 13
    (nodes,) = checks(record, "other_gpu_nodes")
    assert nodes["evidence"]["reached"] == []
    assert any(str(text).endswith("granted rw") for text in nodes["evidence"].values())
    for name in ("mounts", "limits"):
        assert [check["status"] for check in checks(record, name)] == ["pass"]
    assert sum(check["seconds"] for check in isolation) < 0.3


def test_one_node_is_one_gpu(workspace: Workspace, gpu_tables: str, gpu_count: int) -> None:
    """A GPU whose node is not passed is not there, without any variable that hides it."""
    if gpu_count < 2:
        pytest.skip("this machine has one GPU")
    record = probed(
        workspace, workspace.profile(IMAGE, gpu_tables + FIRST, accelerator="cuda"), "quick"
    )

    (count,) = checks(record, "device_count")
    assert count["evidence"]["device_count"] == 1
    assert len(checks(record, "identity")) == 1


def test_a_cuda_build_of_torch_is_no_rocm(workspace: Workspace, gpu_tables: str) -> None:
    """What the profile promises must be what is found."""
    profile = workspace.profile(IMAGE, gpu_tables + ALL, accelerator="rocm")

    done = workspace.rocmrun("launch", profile, "--", "true", timeout=300)

    assert done.returncode == 125
    assert "error[probe-failed]" in done.stderr
    assert "this is a CUDA build of torch" in done.stderr


def test_the_workload_computes_and_its_code_is_relayed(
    workspace: Workspace, gpu_tables: str, tmp_path: Path
) -> None:
    """Launch probes, runs, relays, and keeps a record of what was proved."""
    profile = workspace.profile(IMAGE, gpu_tables + ALL, accelerator="cuda")
    program = (
        "import torch; assert torch.ones(3, device='cuda').sum().item() == 3; raise SystemExit(7)"
    )
    report = tmp_path / "report.json"

    done = workspace.rocmrun(
        "launch", profile, "--report", str(report), "--", sys.executable, "-c", program, timeout=300
    )

    record = json.loads(report.read_text())
    assert done.returncode == 7, done.stderr
    assert (record["exit_code"], record["probe_outcome"]) == (7, "passed")
    assert record["cuda_version"]
