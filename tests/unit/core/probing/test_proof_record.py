"""When an earlier probe counts, and when it must run again."""

from dataclasses import replace
from typing import Any, Literal

import pytest

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.plan import Plan, ProbeSettings
from rocmrun.core.probing.proof_record import DAY_SECONDS, ProofRecord, proof_key, reusable
from rocmrun.core.report.model import ProbeReport
from tests.builders import DIGEST, ENGINE, PLANNED_IMAGE, gpu, host, plan, privileges

PASSED = ProbeReport(status="pass")
KEY = "k"


def key(
    job: Plan | None = None,
    *,
    level: str = "quick",
    gpus: Any = 2,
    engine: EngineFacts | None = ENGINE,
    **facts: Any,
) -> str:
    return proof_key(job or plan(), host(gpus, **facts), engine, level)


def why(
    *,
    age: float = 60,
    reuse: str = "boot",
    boot: str = "b",
    report: ProbeReport = PASSED,
    other_key: str = KEY,
) -> str | None:
    record = ProofRecord(key=KEY, boot_id="b", at_seconds=1000.0, report=report)
    return reusable(record, key=other_key, reuse=reuse, boot_id=boot, now_seconds=1000.0 + age)


def test_the_same_plan_on_the_same_host_has_the_same_key() -> None:
    assert key() == key()


@pytest.mark.parametrize(
    "tables",
    [
        privileges("ipc:host"),
        {"container": {"shm_size": "3GiB"}},
        {"container": {"env": {"HIP_VISIBLE_DEVICES": "1"}}},
        {"mounts": [{"source": "/srv", "target": "/srv"}]},
        {"probe": {"python": "python3.12"}},
        {"probe": {"operators": ["flash_attn"]}},
        {"probe": {"checks": [{"name": "a", "command": ["true"], "level": "quick"}]}},
        {"accelerator": "cpu", "gpus": {"select": ["none"]}},
    ],
)
def test_another_right_or_another_probe_is_another_proof(tables: dict[str, Any]) -> None:
    assert key(plan(tables)) != key()


def test_another_image_level_kernel_driver_or_gpu_is_another_proof() -> None:
    other_gpu = gpu(0, unique_id="00000000000000ff")
    firmware = gpu(0, firmware=(("mec", "0x2"),))

    keys = {
        key(),
        key(plan(image=replace(PLANNED_IMAGE, digest=DIGEST.replace("7f", "80")))),
        key(level="full"),
        key(kernel="6.9"),
        key(driver_version="6.14.5"),
        key(driver_source="dkms"),
        key(gpus=(other_gpu, gpu(1))),
        key(gpus=(firmware, gpu(1))),
    }

    assert len(keys) == 8


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "28.5.2"},
        {"identity": "AAAA:BBBB"},
        {"components": ("containerd 1.6.20", "runc 1.1.6")},
        {"default_runtime": "crun"},
        {"security_options": ("name=seccomp,profile=/etc/docker/seccomp.json",)},
        {"security_options": (*ENGINE.security_options, "name=apparmor")},
        {"cgroup_version": 1},
        {"cgroup_driver": "cgroupfs"},
    ],
)
def test_another_engine_or_one_set_up_anew_is_another_proof(changes: dict[str, Any]) -> None:
    """The plan says what is asked of an engine; what it adds by itself is its own."""
    assert key(engine=replace(ENGINE, **changes)) != key()


def test_an_engine_that_is_called_by_another_address_is_the_same() -> None:
    assert key(engine=replace(ENGINE, address="tcp://127.0.0.1:2375", mirrors=("m",))) == key()


def test_a_gpu_that_is_not_passed_does_not_matter() -> None:
    assert key(gpus=(gpu(0), gpu(1, vbios="new"))) == key()


@pytest.mark.parametrize(
    "tables",
    [
        {"container": {"command": ["other"]}},
        {"container": {"workdir": "/w"}},
        {"container": {"env_from": ["HF_TOKEN"]}},
        {"container": {"restart": "on-failure:1", "stop_timeout": 3, "log_size": "1MiB"}},
        {"probe": {"reuse": "never", "timeout_seconds": 5}},
    ],
)
def test_what_the_probe_never_sees_does_not_matter(tables: dict[str, Any]) -> None:
    assert key(plan(tables)) == key()


def test_a_probe_settings_level_is_not_the_level_that_ran() -> None:
    job = plan().with_changes(probe=ProbeSettings(level="full"))

    assert key(job, level="quick") == key()


@pytest.mark.parametrize(
    ("reuse", "age", "boot", "expected"),
    [
        ("boot", 5, "b", "passed 5 s ago, since this boot"),
        ("boot", 300, "b", "passed 5 min ago, since this boot"),
        ("boot", 10 * DAY_SECONDS, "b", "passed 240 h ago, since this boot"),
        ("boot", 60, "other", None),
        ("boot", 60, "", None),
        ("24h", 7200, "other", "passed 2 h ago"),
        ("24h", DAY_SECONDS, "b", "passed 24 h ago"),
        ("24h", DAY_SECONDS + 1, "b", None),
        ("never", 1, "b", None),
    ],
)
def test_a_proof_counts_for_a_time(
    reuse: Literal["boot", "24h", "never"], age: float, boot: str, expected: str | None
) -> None:
    assert why(reuse=reuse, age=age, boot=boot) == expected


def test_a_proof_from_the_future_is_none() -> None:
    """The clock was set back: nobody knows how old it is."""
    assert why(age=-1) is None
    assert why(age=-1, reuse="24h") is None


def test_a_proof_of_something_else_is_none() -> None:
    assert why(other_key="other") is None


@pytest.mark.parametrize(
    ("status", "counts"), [("pass", True), ("degraded", True), ("fail", False), ("broken", False)]
)
def test_only_a_probe_that_passed_counts(
    status: Literal["pass", "degraded", "fail", "broken"], *, counts: bool
) -> None:
    assert bool(why(report=ProbeReport(status=status))) == counts


def test_a_record_survives_the_way_to_disk() -> None:
    record = ProofRecord(key=KEY, boot_id="b", at_seconds=1.5, report=PASSED)

    assert ProofRecord.model_validate_json(record.model_dump_json()) == record


def test_another_probe_proves_again() -> None:
    """One that learned to look for more must look."""
    job, machine = plan(), host()

    first, second = (proof_key(job, machine, ENGINE, "quick", source) for source in (b"1", b"2"))
    assert first != second
