"""What the probe is told follows from the plan alone."""

import json
from dataclasses import replace

import pytest

from rocmrun.core.gpu_table import parse_gpu_table
from rocmrun.core.plan import PlannedDevice, ProbeSettings
from rocmrun.core.probing.protocol import bootstrap_command, expectation, probe_input
from rocmrun.system.package_data import read_gpu_table
from tests.unit.core.plan_values import a_plan


def test_the_command_line_is_short_and_holds_no_setting() -> None:
    """Everybody on the host can read a command line, and one argument has a size limit."""
    python, *options, bootstrap = bootstrap_command("python3.12")

    assert (python, options) == ("python3.12", ["-s", "-c"])
    assert len(bootstrap) < 300


def test_the_input_is_one_line_of_settings_and_then_the_source() -> None:
    data = probe_input(a_plan(), b"print(1)\nprint(2)\n", level="full")

    line, _, source = data.partition(b"\n")
    settings = json.loads(line)
    assert source == b"print(1)\nprint(2)\n"
    assert (settings["v"], settings["level"], settings["accelerator"]) == (1, "full", "rocm")
    assert settings["expect"]["uid"] == 65532


@pytest.mark.parametrize(("given", "told"), [(600, 590.0), (20, 18.0), (1, 1.0)])
def test_the_probe_has_less_time_than_its_container(given: int, told: float) -> None:
    """What hangs is then reported by the probe, which knows what it was."""
    plan = a_plan(probe=ProbeSettings(timeout_seconds=given))

    assert json.loads(probe_input(plan, b"").partition(b"\n")[0])["timeout_seconds"] == told


def test_the_baseline_expects_no_capability_and_a_filter() -> None:
    expected = expectation(a_plan())

    assert (expected["cap_eff"], expected["cap_bnd"]) == ("0" * 16, "0" * 16)
    assert (expected["seccomp_mode"], expected["no_new_privileges"]) == (2, True)
    assert expected["groups"] == [44, 992]


@pytest.mark.parametrize(
    ("uid", "effective"), [(0, "0000000000080001"), (1000, "0000000000000000")]
)
def test_a_capability_is_effective_for_root_only(uid: int, effective: str) -> None:
    """CHOWN is bit 0 and SYS_PTRACE bit 19; both stand in everybody's bounding set."""
    expected = expectation(a_plan(uid=uid, cap_add=("CHOWN", "SYS_PTRACE")))

    assert expected["cap_eff"] == effective
    assert expected["cap_bnd"] == "0000000000080001"


def test_unconfined_seccomp_and_host_ipc_are_not_judged() -> None:
    expected = expectation(a_plan(seccomp="unconfined", ipc="host"))

    assert (expected["seccomp_mode"], expected["shm_size_bytes"]) == (None, None)


def test_only_gpu_nodes_that_are_passed_for_writing_are_opened() -> None:
    """Opening acts on some devices; a node passed read-only would refuse."""
    read_only = PlannedDevice(
        path="/dev/dri/renderD140", host_path="/dev/dri/renderD140", permissions="r"
    )
    plan = a_plan()
    plan = plan.with_changes(devices=(*plan.devices, read_only))

    assert expectation(plan)["devices"] == ["/dev/dri/renderD131", "/dev/kfd"]


def test_the_probe_is_told_what_each_gpu_can_do_at_most() -> None:
    """From the table, by the model that device id and revision name; without a table, nothing."""
    plan = a_plan()
    (gpu,) = plan.gpus
    plan = plan.with_changes(gpus=(replace(gpu, device_id="0x74a1", revision="0x00"),))

    (told,) = expectation(plan, parse_gpu_table(read_gpu_table()))["gpus"]
    assert told["peaks"]["tflops"]["fp16"] == 1307.4
    assert expectation(plan)["gpus"][0]["peaks"] is None
