"""An engine as plans show it."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.engine_report import engine_line, engine_to_json
from tests.builders import ENGINE, host


def test_the_usual_engine_in_one_line() -> None:
    assert engine_line(ENGINE, host()) == (
        "docker 20.10.24 (API 1.41), runc, cgroup v2, seccomp default, no LSM, on this kernel"
    )


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"cgroup_driver": "systemd"}, "cgroup v2 (systemd)"),
        ({"cgroup_version": None, "default_runtime": None}, "runtime unknown, cgroup unknown"),
        ({"security_options": ()}, "seccomp none"),
        ({"security_options": ("name=apparmor", "name=selinux")}, "apparmor, selinux"),
        ({"security_options": ("name=rootless", "name=userns")}, "rootless, userns-remap"),
        ({"operating_system": "Docker Desktop"}, "Docker Desktop"),
        ({"root_directory": "/var/snap/docker/common"}, "snap"),
        ({"cdi_spec_dirs": ("/etc/cdi",), "cdi_devices": ("amd.com/gpu=0",)}, "CDI (1 device)"),
        ({"cdi_spec_dirs": ("/etc/cdi",)}, "CDI (0 devices)"),
        ({"kernel": "5.15.0"}, "on another kernel (5.15.0)"),
        ({"kernel": None}, "kernel not compared"),
    ],
)
def test_what_is_unusual_is_in_the_line(facts: dict[str, Any], said: str) -> None:
    assert said in engine_line(replace(ENGINE, **facts), host())


def test_scripts_get_the_judgements_too() -> None:
    told = engine_to_json(ENGINE, host())

    assert (told["version"], told["seccomp_profile"], told["rootless"]) == ("20.10.24", "default", False)  # fmt: skip
    assert (told["cdi"], told["snap"], told["desktop"], told["same_kernel"]) == (False, False, False, True)  # fmt: skip
    assert engine_to_json(ENGINE, host(root="/tmp/tree"))["same_kernel"] is None
