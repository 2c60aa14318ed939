"""What AMD's usual line has and a plan has not: each thing named only where it is true."""

import pytest

from rocmrun.core.recipe import left_out
from tests.builders import plan, privileges

CPU = {"gpus": {"select": ["none"]}, "accelerator": "cpu"}


def names(*grants: str, **tables: object) -> list[str]:
    return [item.what for item in plan({**privileges(*grants), **tables}).left_out]


def test_the_baseline_leaves_out_the_whole_recipe() -> None:
    assert names() == [
        "user root",
        "device /dev/dri (the whole directory)",
        "group video (by name)",
        "ipc host",
        "seccomp unconfined",
        "capability SYS_PTRACE",
        "the 14 default capabilities",
        "gaining rights through setuid programs",
        "a writable root file system",
        "the default bridge network",
    ]


@pytest.mark.parametrize(
    ("grant", "gone"),
    [
        ("user:root", "user root"),
        ("ipc:host", "ipc host"),
        ("seccomp:unconfined", "seccomp unconfined"),
        ("cap:SYS_PTRACE", "capability SYS_PTRACE"),
        ("seccomp:+pidfd", "capability SYS_PTRACE"),
        ("nnp:off", "gaining rights through setuid programs"),
        ("rootfs:rw", "a writable root file system"),
    ],
)
def test_what_a_plan_has_is_not_left_out(grant: str, gone: str) -> None:
    assert set(names()) - set(names(grant)) == {gone}


def test_a_job_without_gpus_leaves_no_gpu_out() -> None:
    assert not [what for what in names(**CPU) if "dri" in what or "video" in what]


def test_a_bridge_that_is_asked_for_is_not_left_out() -> None:
    assert "the default bridge network" not in names(container={"network": "bridge"})


def test_what_is_left_out_follows_from_the_plan_alone() -> None:
    made = plan()

    assert left_out(made) == made.left_out
