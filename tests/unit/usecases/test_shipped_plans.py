"""Every shipped profile becomes a plan on a host that has what it asks for, with no right that nobody granted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.create_request import create_request
from rocmrun.core.plan import Plan, PlannedImage
from rocmrun.core.planning.draft import PlanRequest
from rocmrun.core.planning.planner import make_plan
from rocmrun.core.reference import parse_reference
from rocmrun.core.ungranted import ungranted
from rocmrun.system.profile_search import ProfileDirectory, ProfileSearch, shipped_directory
from rocmrun.usecases.profiles import load_profile
from tests.builders import CALLER, ENGINE, IMAGE, host, node
from tests.unit.usecases.test_load_profile import SETTINGS, SHIPPED

NODES = tuple(
    node(path, mode=0o666)
    for path in ("/dev/infiniband/uverbs0", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
)
LAUNCHED = [name for name in SHIPPED if name != "base"]
# Rights that are the point of a profile; every other one is the baseline's, or a mount's or port's.
BEYOND = {"rdma-train": {"network:host", "ulimit:memlock=-1"}}
ORDINARY = ("device:", "group:", "mount:", "network:bridge", "port:127.0.0.1:", "shm:", "tmpfs", "ulimit:nofile")  # fmt: skip


def shipped_plan(name: str) -> Plan:
    """Return its plan on two MI300X with every extra node."""
    search = ProfileSearch(
        directories=(ProfileDirectory(path=shipped_directory(), origin="shipped"),),
        working_directory=Path("/"),
        home="/home/me",
    )
    loaded = load_profile(name, search=search, settings=SETTINGS.get(name, {}))
    ref = parse_reference(loaded.profile.image.ref or "").canonical
    values: dict[str, Any] = {
        "name": name,
        "profile": loaded.profile,
        "provenance": loaded.provenance,
        "image": PlannedImage(ref=ref, image_id=IMAGE.image_id),
        "image_facts": IMAGE,
        "host": replace(host(2), devices=NODES),
        "engine": ENGINE,
        "caller": CALLER,
    }
    return make_plan(PlanRequest(**values))


@pytest.mark.parametrize("name", LAUNCHED)
def test_a_shipped_profile_becomes_a_plan(name: str) -> None:
    """What it grants beyond the ordinary is what the table above says, and the request has nothing more."""
    made = shipped_plan(name)

    grants = {grant.what for grant in made.grants}
    assert {what for what in grants if not what.startswith(ORDINARY)} == BEYOND.get(name, set())
    assert ungranted(create_request(made, role="workload"), made) == ()


def test_a_server_in_isolation_has_no_network() -> None:
    """Its parent's port is gone with it."""
    made = shipped_plan("vllm-serve-isolated")

    assert (made.network, made.ports) == ("none", ())
    assert made.command == ("/model", "--uds", "/socket/vllm.sock")
    assert {m.target: m.read_only for m in made.mounts if not m.cache} == {"/model": True, "/socket": False}  # fmt: skip
