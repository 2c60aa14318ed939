"""What the probe says of its surroundings, and of each way in which they are not as planned."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.probing.protocol import bootstrap_command
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from tests.unit.probe.runs import run_probe

# sysfs refuses a writer of a read-only attribute with EACCES, root or not.
REFUSED = "/sys/kernel/uevent_seqnum"


def environment(report: ProbeReport, name: str) -> ProbeCheck:
    check = report.find("environment", name)
    assert check is not None
    return check


def surroundings(expect: dict[str, Any] | None = None, **variables: str) -> ProbeReport:
    """Run without torch: the environment is examined all the same."""
    return run_probe(torch=False, accelerator="cpu", environment=variables, expect=expect or {})


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> ProbeReport:
    folder = tmp_path_factory.mktemp("home")
    (folder / "file").touch()
    return surroundings(
        HOME=str(folder),
        TRITON_CACHE_DIR=str(folder / "absent"),
        TMPDIR=str(folder),
        ROCR_VISIBLE_DEVICES="0",
        GPU_DEVICE_ORDINAL="1",
    )


def test_without_a_plan_everything_is_recorded_and_nothing_judged(seen: ProbeReport) -> None:
    checks = [check for check in seen.checks if check.group == "environment"]

    assert {check.status for check in checks} == {"pass"}
    user = environment(seen, "user").evidence
    assert (user["uid"], user["gid"]) == (os.getuid(), os.getgid())
    assert set(environment(seen, "groups").evidence["groups"]) == set(os.getgroups()) - {
        os.getgid()
    }
    assert environment(seen, "kernel").evidence["executable"] == sys.executable
    assert environment(seen, "shared_memory").evidence["total_bytes"] > 0
    assert environment(seen, "limits").evidence["usable_cpus"] == len(os.sched_getaffinity(0))


def test_capabilities_and_seccomp_are_those_of_the_kernel(seen: ProbeReport) -> None:
    lines = Path("/proc/self/status").read_text().splitlines()
    own = {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    assert environment(seen, "capabilities").evidence["CapBnd"] == own["CapBnd"]
    assert environment(seen, "seccomp").evidence["mode"] == int(own["Seccomp"])


def test_the_temporary_directory_is_written_and_mapped(seen: ProbeReport) -> None:
    evidence = environment(seen, "temporary_directory").evidence

    assert evidence["path"] == environment(seen, "home").evidence["HOME"]["path"]
    assert evidence["executable"] is True


def test_caches_that_are_not_there_say_so(seen: ProbeReport) -> None:
    evidence = environment(seen, "home").evidence

    assert evidence["HOME"]["create"] == "created"
    assert evidence["TRITON_CACHE_DIR"]["create"] == "ENOENT"


def test_every_variable_that_hides_devices_is_recorded(seen: ProbeReport) -> None:
    assert environment(seen, "visibility").evidence == {
        "ROCR_VISIBLE_DEVICES": "0",
        "GPU_DEVICE_ORDINAL": "1",
    }


@pytest.mark.parametrize(
    ("expect", "check", "reason"),
    [
        ({"uid": 12345}, "user", f"the user id is {os.getuid()}, not 12345 as planned"),
        ({"gid": 12345}, "user", f"the group id is {os.getgid()}, not 12345 as planned"),
        ({"groups": [4242]}, "groups", "not [4242] as planned"),
        ({"cap_eff": "0000000000000123"}, "capabilities", "not 0000000000000123 as planned"),
        ({"cap_bnd": 0x123}, "capabilities", "not 0000000000000123 as planned"),
        ({"seccomp_mode": 1}, "seccomp", "not 1 as planned"),
        ({"shm_size_bytes": 1 << 60}, "shared_memory", f"not {1 << 60} as planned"),
        ({"user_name": "rocmrun"}, "user", "not rocmrun as planned"),
        ({"home": "/elsewhere"}, "home", "not /elsewhere as planned"),
        ({"visibility": {"HIP_VISIBLE_DEVICES": "0"}}, "visibility", "not 0 as planned"),
        ({"ulimits": {"nofile": [1, 2]}}, "limits", "not [1, 2] as planned"),
        ({"limits": {"cpuset_cpus": "9999"}}, "limits", "beside 9999 as planned"),
    ],
)
def test_a_mismatch_fails_under_its_own_name(
    expect: dict[str, Any], check: str, reason: str
) -> None:
    report = surroundings(expect)

    failed = [c for c in report.failures if c.group == "environment"]
    assert [check] == [c.name for c in failed]
    assert failed[0].reason.endswith(reason)


def test_a_privilege_flag_that_differs_fails(seen: ProbeReport) -> None:
    now = environment(seen, "no_new_privileges").evidence["no_new_privileges"]
    report = surroundings({"no_new_privileges": not now})

    assert environment(report, "no_new_privileges").reason == (
        f"no_new_privileges is {now}, not {not now} as planned"
    )


def test_a_writable_root_fails_where_a_read_only_one_was_planned(seen: ProbeReport) -> None:
    """On a machine whose root is read-only the same plan passes."""
    writable = not environment(seen, "root_filesystem").evidence["read_only"]
    check = environment(surroundings({"read_only_root": True}), "root_filesystem")

    assert check.status == ("fail" if writable else "pass")
    assert not Path(f"/.probe-{os.getpid()}").exists()


def test_a_home_that_cannot_be_written_fails_where_a_writable_one_was_planned() -> None:
    check = environment(surroundings({"home_writable": True}, HOME="/proc"), "home")

    assert check.status == "fail"
    assert check.reason.startswith("creating a file in HOME (/proc) is ")


def test_a_temporary_directory_that_is_not_there_fails(tmp_path: Path) -> None:
    check = environment(surroundings(TMPDIR=str(tmp_path / "absent")), "temporary_directory")

    assert check.status == "fail"
    assert "No such file or directory" in check.reason


def test_nodes_are_opened_read_write_and_the_errno_is_explained() -> None:
    """One node opens, one refuses, one was never passed: each has its own name and meaning."""
    report = surroundings({"devices": ["/dev/null", REFUSED, "/dev/dri/renderD250"]})

    assert environment(report, "open:/dev/null").status == "pass"
    assert environment(report, "open:/dev/null").evidence["device"] == "1:3"
    refused = environment(report, f"open:{REFUSED}")
    assert refused.reason.startswith(
        f"cannot open {REFUSED}: EACCES, permission denied: the node's group is not among"
    )
    assert "(mode 0444, group 0; groups [" in refused.reason
    assert environment(report, "open:/dev/dri/renderD250").reason == (
        "cannot open /dev/dri/renderD250: ENOENT, no such node: it was not passed in"
    )


@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="this machine has the node that must miss")
def test_rocm_needs_kfd_whatever_the_plan_says() -> None:
    report = run_probe({"devices": 1})

    assert environment(report, "open:/dev/kfd").status == "fail"


def may_mount() -> bool:
    """Whether this user may mount a tmpfs in a namespace of its own."""
    done = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.skipif(not may_mount(), reason="no mount namespace may be made here")
def test_a_noexec_temporary_directory_is_degraded(tmp_path: Path) -> None:
    """Work can start; kernels that are compiled there cannot be loaded."""
    mount = 'mount -t tmpfs -o noexec none "$0" && exec "$@"'
    report = run_probe(
        torch=False,
        accelerator="cpu",
        environment={"TMPDIR": str(tmp_path)},
        command=(
            "unshare",
            "-rm",
            "sh",
            "-c",
            mount,
            str(tmp_path),
            *bootstrap_command(sys.executable),
        ),
    )

    check = environment(report, "temporary_directory")
    assert (check.status, check.evidence["executable"]) == ("degraded", False)
    assert check.reason.startswith(f"{tmp_path} is mounted noexec (EPERM)")
