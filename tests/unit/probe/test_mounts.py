"""Mounts against the plan, from the lines that the kernel prints."""

from typing import Any

import pytest

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.mounts import check_mounts, judge_mounts, mount_points
from tests.unit.probe.examined import examined

BASE = """\
79 51 0:39 / / ro,relatime master:4 - overlay overlay rw,lowerdir=/l
80 79 0:42 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
81 79 0:43 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
83 79 0:45 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
96 79 254:0 /usr/bin/tini /usr/sbin/docker-init ro,relatime - ext4 /dev/vda rw
97 79 254:0 /x/hosts /etc/hosts ro,relatime - ext4 /dev/vda rw
57 80 0:43 /null /proc/keys rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
98 79 0:50 / /tmp rw,nosuid,nodev,relatime - tmpfs tmpfs rw
99 79 254:0 /srv/my\\040models /models ro,relatime - ext4 /dev/vda rw
"""
GRANTED = {"devices": {}, "mounts": {"/models": "ro"}, "tmpfs": {"/tmp": "exec"}}


def judged(text: str, granted: dict[str, Any]) -> Check:
    return examined(judge_mounts, mount_points(text), granted)


def test_what_the_plan_has_and_what_every_container_has_passes() -> None:
    check = judged(BASE, GRANTED)

    assert (check.status, check.reason) == ("pass", "")
    assert "/srv/my models" in {mount.root for mount in mount_points(BASE)}


@pytest.mark.parametrize(
    ("line", "status", "reason"),
    [
        (
            "100 79 0:60 / /extra rw,relatime - ext4 /dev/vda rw",
            "fail",
            "/extra (ext4) is mounted, which the plan does not have",
        ),
        (
            "100 79 0:60 / /extra ro,relatime - ext4 /dev/vda rw",
            "degraded",
            "/extra (ext4) is mounted, which the plan does not have",
        ),
        (
            "100 99 0:60 / /models/sub rw,relatime - ext4 /dev/vdb rw",
            "degraded",
            "/models/sub is writable under /models, which is read-only",
        ),
        (
            "100 99 0:60 / /models rw,relatime - ext4 /dev/vdb rw",
            "fail",
            "/models is writable, not read-only as planned",
        ),
        (
            "100 98 0:60 / /tmp rw,relatime - tmpfs tmpfs rw",
            "fail",
            "/tmp is mounted without nodev, nosuid",
        ),
    ],
)
def test_each_difference_is_named(line: str, status: str, reason: str) -> None:
    """What is mounted over another counts, for it is what the job sees."""
    check = judged(f"{BASE}{line}\n", GRANTED)

    assert (check.status, check.reason) == (status, reason)


def test_what_is_missing_fails() -> None:
    check = judged(
        BASE, {"devices": {}, "mounts": {"/data": "rw"}, "tmpfs": {"/tmp": "noexec", "/x": "exec"}}
    )

    assert check.status == "fail"
    assert "/data is not mounted; /x is not mounted" in check.reason
    assert "/tmp is mounted without noexec" in check.reason


def test_without_a_plan_the_mounts_of_this_machine_are_recorded() -> None:
    check = examined(check_mounts, {})

    assert check.status == "pass"
    assert "/" not in check.evidence["mounts"]


def test_podmans_own_user_list_is_expected_of_podman_alone() -> None:
    """It gives a user whom the image does not know a line there; elsewhere such a mount is a stranger."""
    users = BASE + "101 79 254:0 /x/passwd /etc/passwd ro,nosuid - ext4 /dev/vda rw\n"
    init = "102 79 254:0 /usr/bin/catatonit /run/podman-init ro,relatime - ext4 /dev/vda rw\n"
    own = {**GRANTED, "mounts": {**GRANTED["mounts"], "/etc/passwd": "ro"}}

    assert judged(users + init, GRANTED).status == "pass"
    assert judged(users, GRANTED).status == "degraded"
    assert judged(users + init, own).status == "pass"
    assert judged(BASE + init, own).reason == "/etc/passwd is not mounted"
