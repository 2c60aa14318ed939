"""Limits, labels and namespaces: what is judged, from values that a test names."""

import os

import pytest

from rocmrun.probe.parts.environment import judge_label
from rocmrun.probe.parts.grants import CAP_NET_RAW, NO_PLAN, Grants
from rocmrun.probe.parts.isolation_kernel import more_rights
from rocmrun.probe.parts.isolation_sockets import (
    check_engine_sockets,
    is_an_engines_by_name,
    listening_sockets,
)
from rocmrun.probe.parts.limits import check_limits, cpu_list
from tests.unit.probe.examined import examined

UNIX_TABLE = """\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 18034 @/containerd-shim/1.sock
0000000000000000: 00000003 00000000 00000000 0001 03 18035 /run/docker.sock
0000000000000000: 00000002 00000000 00010000 0001 01 18036
0000000000000000: 00000002 00000000 00010000 0001 01 18037 /run/podman/podman.sock
"""


def test_processors_in_the_kernels_form() -> None:
    assert cpu_list("0-2,8") == {0, 1, 2, 8}


def test_limits_without_a_plan_are_recorded() -> None:
    check = examined(check_limits, {})

    assert check.status == "pass"
    assert check.evidence["usable_cpus"] == len(os.sched_getaffinity(0))
    assert len(check.evidence["nofile"]) == 2


@pytest.mark.parametrize(
    ("label", "granted", "status"),
    [
        ("docker-default (enforce)", False, "pass"),
        ("unconfined", False, "degraded"),
        ("unconfined", True, "pass"),
        ("unconfined", None, "pass"),
        ("system_u:system_r:container_t:s0:c1,c2", False, "pass"),
        ("system_u:system_r:spc_t:s0", False, "degraded"),
        (None, False, "pass"),
    ],
)
def test_a_label_that_confines_nothing_degrades(
    label: str | None, *, granted: bool | None, status: str
) -> None:
    """Unless the plan grants it, or there is no plan, or the kernel has no such module."""
    assert examined(judge_label, label, granted).status == status


def test_listening_engine_sockets_are_told_from_connected_ones() -> None:
    assert listening_sockets(UNIX_TABLE) == ["@/containerd-shim/1.sock", "/run/podman/podman.sock"]


@pytest.mark.parametrize(
    ("name", "engines"),
    [
        ("/run/docker.sock", True),
        ("/run/containerd/s/5e0f", True),
        ("@/containerd-shim/1.sock", True),
        ("/mnt/docker.sock", True),
        ("/srv/docker/app/redis.sock", False),
        ("/run/app/redis.sock", False),
    ],
)
def test_a_folder_called_after_an_engine_makes_no_socket_its(name: str, *, engines: bool) -> None:
    """A job that mounts its own socket from such a folder must start."""
    assert is_an_engines_by_name(name) is engines


def test_a_process_with_more_rights_is_told() -> None:
    ours = {"Uid": "1000\t1000\t1000\t1000", "CapPrm": "0000000000000001"}
    root = {"Uid": "0\t0\t0\t0", "CapPrm": "0000000000000003"}

    assert more_rights(ours, ours) == ""
    assert more_rights(root, ours) == (
        "another user (0) and capabilities that are not ours (0000000000000002)"
    )


def test_what_is_reached_is_judged_by_the_plan() -> None:
    """Granted passes, not granted fails, and without a plan it is recorded and skipped."""

    def status(expect: dict[str, object], **how: bool) -> tuple[str, str]:
        check = examined(lambda check: Grants(expect).judge(check, ["a door is open"], **how))
        return check.status, check.reason

    planned: dict[str, object] = {"granted": {}}
    assert status(planned, granted=True) == ("pass", "")
    assert status(planned) == ("fail", "a door is open: the plan does not grant it")
    assert status({}) == ("skipped", f"{NO_PLAN} (a door is open)")
    assert Grants({"granted": {}, "cap_eff": "0000000000002000"}).capability(CAP_NET_RAW)
    assert not Grants({"granted": {}, "cap_eff": "0"}).capability(CAP_NET_RAW)


def test_sockets_are_looked_for_without_a_plan() -> None:
    assert examined(check_engine_sockets, Grants({})).status in ("pass", "skipped")
