"""The probe's proof holds for a container with the same rights and for no other."""

import copy
from typing import Any

import pytest
from hypothesis import given

from rocmrun.core.create_request import create_request
from rocmrun.core.plan import Plan
from rocmrun.core.rights import RIGHTS, unequal_rights
from tests.builders import plan
from tests.docker_records import RECORDED_HOST_CONFIG, recorded
from tests.strategies import examples, plans

# Fields in which the two may differ, or that are no right.
EXCEPTED = {
    "AutoRemove", "BlkioDeviceReadBps", "BlkioDeviceReadIOps", "BlkioDeviceWriteBps",
    "BlkioDeviceWriteIOps", "BlkioWeight", "BlkioWeightDevice", "ConsoleSize", "ContainerIDFile",
    "CpuCount", "CpuPercent", "CpuRealtimePeriod", "CpuRealtimeRuntime", "CpuShares",
    "IOMaximumBandwidth", "IOMaximumIOps", "Isolation", "KernelMemory", "KernelMemoryTCP",
    "LogConfig", "MemoryReservation", "MemorySwappiness", "PortBindings", "PublishAllPorts",
    "RestartPolicy", "VolumeDriver",
}  # fmt: skip
MODELS = {"source": "/srv/models", "target": "/models"}


def pair(job: Plan | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the records of a plan's probe and workload; without a cache, unless *job* has one."""
    made = job or plan({"cache": {"mode": "tmpfs"}, "mounts": [MODELS]})
    probe = create_request(made, role="probe", command=("python3", "-c", "1"))
    workload = create_request(made, role="workload", secrets={"HF_TOKEN": "x"}, keep_log=True)
    return recorded(probe), recorded(workload)


@examples(80)
@given(plans())
def test_probe_and_workload_of_one_plan_have_equal_rights(plan: Plan) -> None:
    cache = plan.cache.target if plan.cache else None

    assert unequal_rights(*pair(plan), cache=cache) == ()


def test_only_where_the_workload_has_its_cache_may_the_probe_have_memory() -> None:
    probe, workload = pair(plan())

    found = unequal_rights(probe, workload)

    assert [sentence.partition(":")[0] for sentence in found] == ["Tmpfs", "Mounts"]
    assert unequal_rights(probe, workload, cache="/home/rocmrun") == ()
    workload["HostConfig"]["Tmpfs"]["/x"] = "rw"
    assert len(unequal_rights(probe, workload, cache="/home/rocmrun")) == 1


def test_only_where_the_profile_names_a_probe_image_may_the_images_differ() -> None:
    probe, workload = pair()
    probe["Image"] = "sha256:" + "5" * 64

    assert unequal_rights(probe, workload, same_image=False) == ()
    assert len(unequal_rights(probe, workload)) == 1
    workload["AppArmorProfile"] = "unconfined"
    assert len(unequal_rights(probe, workload, same_image=False)) == 1


@pytest.mark.parametrize("field", RIGHTS)
def test_a_right_that_only_the_workload_has_is_found(field: str) -> None:
    probe, workload = pair()
    value = [{"Name": "memlock", "Soft": -1, "Hard": -1}] if field == "Ulimits" else ["other"]

    workload["HostConfig"][field] = value

    (found,) = unequal_rights(probe, workload)
    assert found.startswith(f"{field}: the probe had ")


def test_every_field_is_a_right_or_excepted_by_name() -> None:
    """Mounts and binds are compared in their own way."""
    assert RECORDED_HOST_CONFIG.keys() - set(RIGHTS) - {"Binds", "Mounts", "Init"} == EXCEPTED
    assert not set(RIGHTS) & EXCEPTED


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Source": "/"}, "Mounts"),
        ({"Target": "/x"}, "Mounts"),
        ({"Type": "volume"}, "Mounts"),
        ({"BindOptions": {"Propagation": "rshared"}}, "Mounts"),
        ({"BindOptions": None}, "Mounts"),
    ],
)
def test_a_mount_that_only_the_workload_has_is_found(change: dict[str, Any], said: str) -> None:
    probe, workload = pair()

    workload["HostConfig"]["Mounts"][0] |= change

    (found,) = unequal_rights(probe, workload)
    assert found.startswith(said)


@pytest.mark.parametrize(
    "bind", ["/etc:/y:ro,Z,rprivate", "/srv/y:/y:ro,z,rprivate", "/srv/y:/y:ro,Z,rshared"]
)
def test_a_bind_that_only_the_workload_has_is_found(bind: str) -> None:
    tables = {"mounts": [{"source": "/srv/y", "target": "/y", "mode": "rw", "selinux": "private"}]}
    probe, workload = pair(plan(tables | {"cache": {"mode": "tmpfs"}}))
    assert unequal_rights(probe, workload) == ()

    workload["HostConfig"]["Binds"] = [bind]

    assert len(unequal_rights(probe, workload)) == 1


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (("Config", "User"), "User: the probe had '1000:1000', the workload has 'other'"),
        (("Image",), "Image: the probe had 'sha256:1d"),
        (("AppArmorProfile",), "AppArmorProfile: the probe had '', the workload has 'other'"),
    ],
)
def test_what_stands_beside_the_host_config_is_compared(path: tuple[str, ...], said: str) -> None:
    probe, workload = pair()
    place = workload
    for key in path[:-1]:
        place = place[key]

    place[path[-1]] = "other"

    (found,) = unequal_rights(probe, workload)
    assert found.startswith(said)


def test_order_and_empty_values_are_no_difference() -> None:
    """The daemon lists ulimits in random order, and a field may be there or not."""
    probe, workload = pair()
    workload = copy.deepcopy(workload)

    workload["HostConfig"]["Ulimits"].reverse()
    workload["HostConfig"] |= {"Links": [], "CgroupParent": None}
    del workload["HostConfig"]["DnsSearch"]

    assert unequal_rights(probe, workload) == ()


def test_masks_are_told_apart_when_they_are_empty() -> None:
    probe, workload = pair()

    probe["HostConfig"]["MaskedPaths"], workload["HostConfig"]["MaskedPaths"] = None, []

    assert unequal_rights(probe, workload) == (
        "MaskedPaths: the probe had None, the workload has []",
    )
