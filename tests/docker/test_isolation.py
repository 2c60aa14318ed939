"""What the probe finds within reach: nothing on the baseline, what a profile grants, and what nobody granted."""

import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest

from rocmrun.core.report.model import ProbeCheck, ProbeReport
from tests.docker.by_hand import bare_plan, by_hand
from tests.workspace import Workspace

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")
GPU_NUMBER = (226, 250)  # a render node that no machine has
GRANTED = """
[container]
network = "host"
[[privileges]]
grant = "user:root"
reason = "test"
[[privileges]]
grant = "rootfs:rw"
reason = "test"
[[privileges]]
grant = "masks:off"
reason = "test"
[[privileges]]
grant = "cap:NET_RAW"
reason = "test"
[[privileges]]
grant = "seccomp:unconfined"
reason = "test"
[[privileges]]
grant = "pid:host"
reason = "test"
[[privileges]]
grant = "ipc:host"
reason = "test"
[[privileges]]
grant = "network:host"
reason = "test"
"""
# A filter, so that the process is confined, and one that lets everything pass but one call.
OPEN_FILTER = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [{"names": ["kexec_load"], "action": "SCMP_ACT_ERRNO"}],
}


def isolation(report: ProbeReport) -> dict[str, ProbeCheck]:
    """Return the checks of the group by name."""
    return {check.name: check for check in report.checks if check.group == "isolation"}


def probed(workspace: Workspace, profile: str) -> ProbeReport:
    """Return the report of `rocmrun probe`, which fails where the image holds no torch."""
    done = workspace.rocmrun("probe", profile, "--level", "quick", "--json")
    return ProbeReport.model_validate(json.loads(done.stdout)["probe"])


@contextmanager
def node_of_a_gpu(folder: Path) -> Iterator[Path]:
    """Make a node of a GPU that everybody may open, where the device cgroup lets them."""
    path = folder / "renderD250"
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(*GPU_NUMBER))
    path.chmod(0o666)
    try:
        yield path
    finally:
        path.unlink()


@ROOT_ONLY
def test_the_baseline_reaches_nothing(workspace: Workspace, python_image: str) -> None:
    """Neither a GPU's node that a mount brings along, open to all, nor anything else; its socket is no engine's."""
    folder = workspace.path / "mounted"
    folder.mkdir()
    profile = workspace.profile(
        python_image, f'[[mounts]]\nsource = "{folder}"\ntarget = "/mounted"\n'
    )
    with node_of_a_gpu(folder), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "other.sock"))
        listener.listen()
        (folder / "other.sock").chmod(0o777)
        report = probed(workspace, profile)

    checks = isolation(report)
    assert {name: check.reason for name, check in checks.items() if check.status != "pass"} == {}
    assert len(checks) == 13
    assert checks["other_gpu_nodes"].evidence["/mounted/renderD250 (c 226:250)"] == "EPERM"
    assert checks["new_device_nodes"].evidence["c 1:1"] == "EPERM"
    assert checks["engine_sockets"].evidence["/mounted/other.sock"].startswith("connected")
    assert checks["network"].evidence["route"] == "ENETUNREACH"
    around = [check for check in report.checks if check.group == "environment"]
    assert [check.label for check in around if check.status != "pass"] == []
    (limits,) = (check for check in around if check.name == "limits")
    assert limits.evidence["pids"] == 4096
    assert limits.evidence["memory_bytes"] > 0


def test_what_a_profile_grants_is_reached_and_passes(
    workspace: Workspace, python_image: str
) -> None:
    """The evidence says both: that it was reached, and that the plan has it."""
    checks = isolation(probed(workspace, workspace.profile(python_image, GRANTED)))

    for name in (
        "raw_sockets",
        "user_namespaces",
        "root_writes",
        "masked_paths",
        "processes",
        "network",
    ):
        check = checks[name]
        assert (check.status, check.reason, check.evidence["granted"]) == ("pass", "", True)
        assert check.evidence["reached"]
    assert checks["kernel_settings"].evidence["unmasked_as_planned"] is True
    assert checks["namespaces"].evidence["ipc"]["is_the_hosts"] is True
    assert {check.status for check in checks.values()} == {"pass"}


@ROOT_ONLY
def test_what_nobody_granted_is_found(python_image: str, tmp_path: Path) -> None:
    """A container with next to every right, and a plan with none: every check names what is open."""
    with node_of_a_gpu(tmp_path) as node:
        report = by_hand(
            python_image,
            bare_plan(),
            *("--network=host", "--pid=host", "--ipc=host", "--uts=host", "--cgroupns=host"),
            *("--security-opt=seccomp=unconfined", "--security-opt=systempaths=unconfined"),
            *(f"--device={node}:/dev/dri/renderD250", "--device=/dev/kmsg"),
            "--device-cgroup-rule=c 226:* rwm",
            "--volume=/var/run/docker.sock:/elsewhere/any.name",
        )

    reasons = {n: check.reason for n, check in isolation(report).items() if check.status == "fail"}
    assert reasons.keys() == isolation(report).keys() - {"ptrace_pid_1"}
    for name, words in (
        ("other_gpu_nodes", "/dev/dri/renderD250 (c 226:250) can be opened (rw)"),
        ("host_devices", "/dev/kmsg (c 1:11) can be opened (rw)"),
        ("new_device_nodes", "a node for c 226:128 can be made and opened (rw)"),
        ("engine_sockets", "the engine's socket /elsewhere/any.name can be reached"),
        ("raw_sockets", "a raw packet socket can be opened"),
        ("user_namespaces", "a user namespace can be made, with no seccomp filter"),
        ("root_writes", "a file can be created in /usr"),
        ("kernel_settings", "/proc/sys is mounted writable"),
        ("masked_paths", "/proc/keys can be read"),
        ("processes", "the host's processes are visible"),
        ("network", "the host's interface "),
        ("namespaces", "the uts namespace is the host's"),
    ):
        assert words in reasons[name]
        assert reasons[name].endswith(": the plan does not grant it")
    mounts, limits = report.find("environment", "mounts"), report.find("environment", "limits")
    assert mounts is not None
    assert limits is not None
    assert "/elsewhere/any.name (" in mounts.reason
    assert "/tmp is not mounted" in mounts.reason
    assert "memory_bytes is unlimited, not 1073741824" in limits.reason


def test_a_stronger_pid_1_and_a_filter_that_is_wide_open_are_found(
    engine: docker.DockerClient, python_image: str, tmp_path: Path
) -> None:
    """Another container's init has rights that ours has not; a filter that allows namespaces degrades."""
    filter_file = tmp_path / "filter.json"
    filter_file.write_text(json.dumps(OPEN_FILTER))
    other = engine.containers.run(python_image, ["sleep", "1000"], detach=True, network="none")
    try:
        report = by_hand(
            python_image,
            bare_plan(uid=0, gid=0, cap_add=()),
            *(f"--pid=container:{other.id}", "--user=0:0", "--network=none", "--read-only"),
            *("--cap-drop=ALL", "--cap-add=SYS_PTRACE", "--tmpfs=/tmp:exec"),
            f"--security-opt=seccomp={filter_file}",
        )
    finally:
        other.remove(force=True)

    checks = isolation(report)
    assert checks["ptrace_pid_1"].status == "fail"
    assert "PID 1 can be traced, and it has capabilities that are not ours" in (
        checks["ptrace_pid_1"].reason
    )
    assert "processes of another container are visible" in checks["processes"].reason
    assert checks["user_namespaces"].status == "degraded"
    assert "this engine's seccomp filter allows it" in checks["user_namespaces"].reason
