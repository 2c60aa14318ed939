"""Debian's real rocminfo and rocm-smi in a container without a GPU: what they say when they fail."""

from rocmrun.core.plan import ProbeSettings
from tests.docker.by_hand import bare_plan, by_hand
from tests.unit.core.plan_values import a_plan


def test_real_tools_without_a_gpu_degrade_with_their_own_words(python_image: str) -> None:
    """Their failure never fails the probe; that no topology is there does."""
    plan = bare_plan(
        gpus=a_plan().gpus,
        memory_bytes=None,
        probe=ProbeSettings(accelerator="rocm", level="standard"),
    )
    report = by_hand(
        python_image,
        plan,
        *("--network=none", "--user=65532:65532", "--read-only", "--cap-drop=ALL"),
        *("--tmpfs=/tmp:exec", "--security-opt=no-new-privileges"),
    )

    tools = {check.name: check for check in report.checks if check.group == "tools"}
    assert {name: check.status for name, check in tools.items()} == {
        "rocminfo": "degraded",
        "rocm_smi": "degraded",
        "amd_smi": "skipped",
        "ras": "skipped",
        "amdsmi": "skipped",
        "xgmi": "skipped",
    }
    assert "ROCk module is NOT loaded, possibly no GPU devices" in tools["rocminfo"].reason
    assert tools["rocminfo"].evidence["exit_code"] == 1
    # It ends with 0 all the same, and prints no JSON.
    assert "Driver not initialized (amdgpu not found in modules)" in tools["rocm_smi"].reason
    assert tools["rocm_smi"].evidence["exit_code"] == 0
    topology = report.find("environment", "kfd_topology")
    assert topology is not None
    assert topology.reason.startswith("KFD shows no topology here: 1 of 1 planned GPUs")
