"""Whole plans of the shipped profiles on machines of several kinds: the plan, the docker line, the create request.

A change here is a change of what people get. Look at it, then: pytest tests/golden --snapshot-update
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from rocmrun import __version__
from rocmrun.core.create_request import create_request
from rocmrun.core.docker_run.line import docker_run_arguments
from rocmrun.core.host import HostFacts
from rocmrun.core.lock import Lock, parse_lock
from rocmrun.core.plan import Plan, PlannedImage
from rocmrun.core.planning.draft import PlanRequest
from rocmrun.core.planning.planner import make_plan
from rocmrun.core.reference import parse_reference
from rocmrun.system.profile_search import default_search
from rocmrun.system.sysfs import read_host
from rocmrun.usecases.images import planned_image
from rocmrun.usecases.profiles import load_profile
from tests.builders import CALLER, ENGINE, IMAGE, node, on_another_host
from tests.hosts import (
    IGPU_AND_DGPU,
    MI210_X8,
    MI300A,
    FakeGpu,
    build_host,
    mi300x_partitions,
)

ROOT = Path(__file__).parents[2]
NVIDIA = tuple(node(f"/dev/nvidia{name}", gid=0, mode=0o666) for name in ("0", "1", "ctl", "-uvm"))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A profile, how it is called, and the machine."""

    profile: str
    gpus: Sequence[FakeGpu] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "demo, no GPU": Case(profile="demo", host={"kfd": None}),
    "prod-inference, 8 MI210": Case(profile="prod-inference", gpus=MI210_X8, host={"cpu_nodes": 2}),
    "train-multi-gpu, 4 MI300A": Case(
        profile="train-multi-gpu",
        gpus=MI300A,
        host={"cpu_nodes": 4},
        settings={"work_dir": "/srv/train"},
    ),
    "vllm-serve, MI300X in 8 partitions": Case(
        profile="vllm-serve",
        gpus=mi300x_partitions(2, 4),
        host={"cpu_nodes": 2},
        settings={"model_dir": "/srv/models/x", "port": "9000"},
    ),
    "dev-shell --debug, card beside an iGPU": Case(
        profile="dev-shell",
        gpus=IGPU_AND_DGPU,
        settings={"work_dir": "/home/me/src"},
        asked={"debug": True, "interactive": True, "tty": True},
    ),
    "cuda-check, 2 NVIDIA GPUs": Case(
        profile="cuda-check",
        settings={"image": "docker.io/pytorch/pytorch:2.8", "driver_dir": "/opt/driver"},
        host={"kfd": None},
        facts={"devices": NVIDIA},
    ),
}


def host_of(case: Case, root: Path) -> HostFacts:
    """Return the machine as itself, whoever runs the tests and wherever the tree stands."""
    found = on_another_host(read_host(build_host(root, case.gpus, **case.host)), str(root))
    return replace(found, memlock_bytes=None, nofile_limit=None, nproc_limit=None, **case.facts)


def plan_of(case: Case, root: Path) -> Plan:
    search = default_search(
        environ={}, working_directory=ROOT, system_directory=ROOT / "no-such-directory"
    )
    loaded = load_profile(case.profile, search=search, settings=case.settings)
    ref = parse_reference(loaded.profile.image.ref or "").canonical
    pin = shipped_lock().get(ref)
    return make_plan(
        PlanRequest(
            name=loaded.name,
            profile=loaded.profile,
            provenance=loaded.provenance,
            image=planned_image(pin, None) if pin else PlannedImage(ref=ref),
            image_facts=IMAGE,
            host=host_of(case, root),
            engine=ENGINE,
            caller=CALLER,
            **case.asked,
        )
    )


def shipped_lock() -> Lock:
    return parse_lock((ROOT / "rocmrun.lock").read_text(), "rocmrun.lock")


def as_text(value: Any) -> str:
    """Return JSON in which nothing depends on the version."""
    return json.dumps(value, indent=1, sort_keys=True).replace(f'"{__version__}"', '"VERSION"')


@pytest.fixture(params=CASES, ids=list(CASES))
def plan(request: pytest.FixtureRequest, tmp_path: Path) -> Plan:
    return plan_of(CASES[request.param], tmp_path)


def test_plan(plan: Plan, snapshot: SnapshotAssertion) -> None:
    assert as_text(asdict(plan)) == snapshot


def test_docker_line(plan: Plan, snapshot: SnapshotAssertion) -> None:
    """One argument a line."""
    assert "\n".join(docker_run_arguments(plan)) == snapshot


def test_create_request_of_the_workload(plan: Plan, snapshot: SnapshotAssertion) -> None:
    assert as_text(create_request(plan, role="workload")) == snapshot


def test_create_request_of_the_probe_differs_in_what_it_must_not_have(
    plan: Plan, snapshot: SnapshotAssertion
) -> None:
    """Only the fields that differ from the workload's."""
    workload = create_request(plan, role="workload")
    probe = create_request(plan, role="probe", command=("python3",))
    differing = {
        key: probe.get(key) for key in {*probe, *workload} if probe.get(key) != workload.get(key)
    }
    config, other = probe["HostConfig"], workload["HostConfig"]
    differing.pop("HostConfig", None)
    differing |= {
        f"HostConfig.{key}": config.get(key)
        for key in {*config, *other}
        if config.get(key) != other.get(key)
    }

    assert as_text(differing) == snapshot
