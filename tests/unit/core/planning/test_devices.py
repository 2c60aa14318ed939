"""Devices and groups: only what is needed, by number, and every reason why something cannot be passed."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.host import Link
from rocmrun.core.plan import PlannedDevice
from rocmrun.core.planning.devices import planned_gpus
from rocmrun.errors import (
    DevicePermission,
    DevicesMissing,
    EngineUnsuitable,
    GpuSelection,
)
from tests.builders import ENGINE, gpu, granted, host, node, plan, privileges

UVERBS = (node("/dev/infiniband/uverbs0", gid=77), node("/dev/infiniband/uverbs1", gid=77))
NO_GPU = {"gpus": {"select": ["none"]}}


def devices(*entries: tuple[str, str]) -> dict[str, Any]:
    return {
        "devices": [
            {"path": path, "permissions": permissions, "reason": f"the job opens {path}"}
            for path, permissions in entries
        ]
    }


def test_two_owners_give_two_groups() -> None:
    """kfd and the render nodes can belong to different groups; both are passed, as numbers."""
    made = plan(host=host(2))

    assert made.groups == (44, 992)
    reasons = {grant.what: grant.reason for grant in made.grants}
    assert reasons["group:44"] == "owns /dev/kfd on this host"
    assert reasons["group:992"] == "owns /dev/dri/renderD128, /dev/dri/renderD129 on this host"


def test_a_node_that_is_open_to_all_needs_no_group() -> None:
    made = plan(host=host(1, kfd=node("/dev/kfd", mode=0o666, gid=0)))

    assert made.groups == (992,)
    assert made.notes == (
        "/dev/kfd is open to everybody on this host (mode 0666): no group is needed",
    )


def test_a_node_of_the_user_itself_needs_no_group() -> None:
    made = plan(host=host(1, kfd=node("/dev/kfd", mode=0o600, uid=1000, gid=0)))

    assert made.groups == (992,)


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "said"),
    [
        (0o600, 0, 992, "0600 and owned by 0:992: no group can open it"),
        (0o640, 0, 992, "no group can open it"),
        (0o600, 5, 5, "no group can open it"),
        (0o660, 0, 0, "belongs to group root"),
        (0o660, 65534, 65534, "not mapped here"),
    ],
)
def test_a_node_that_no_group_opens_is_refused(mode: int, uid: int, gid: int, said: str) -> None:
    with pytest.raises(DevicePermission) as caught:
        plan(host=host(1, kfd=node("/dev/kfd", mode=mode, uid=uid, gid=gid)))

    assert said in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("option", "said"), [("name=rootless", "is rootless"), ("name=userns", "userns-remap")]
)
def test_an_engine_that_maps_ids_cannot_give_the_groups_of_this_host(
    option: str, said: str
) -> None:
    engine = replace(ENGINE, security_options=(*ENGINE.security_options, option))

    with pytest.raises(EngineUnsuitable, match=said):
        plan(engine=engine)
    open_to_all = node("/dev/dri/renderD128", mode=0o666)
    made = plan(
        engine=engine,
        host=host([gpu(render_node=open_to_all)], kfd=node("/dev/kfd", mode=0o666)),
    )
    assert made.groups == ()


def test_only_the_selected_gpus_are_passed() -> None:
    made = plan({"gpus": {"select": ["index:1"]}}, host=host(3))

    assert [device.path for device in made.devices] == ["/dev/dri/renderD129", "/dev/kfd"]
    assert made.render_minors == (129,)
    assert [(found.index, found.unique_id) for found in made.gpus] == [(1, "00000000000000a1")]


def test_the_command_line_narrows_the_selection() -> None:
    made = plan(host=host(3), narrow=("index:2", "index:0"))

    assert made.render_minors == (128, 130)


def test_the_command_line_cannot_widen_the_selection() -> None:
    with pytest.raises(GpuSelection) as caught:
        plan({"gpus": {"select": ["index:0"]}}, host=host(2), narrow=("index:1",))

    assert "GPU 1" in caught.value.message
    with pytest.raises(GpuSelection, match="selects no GPU"):
        plan(NO_GPU, narrow=("index:0",))


def test_a_gpu_that_is_left_out_is_named() -> None:
    hidden = gpu(1, render_node=None)

    made = plan(host=host([gpu(0), hidden]))

    assert made.render_minors == (128,)
    assert made.notes == (f"{hidden.label} is left out: /dev/dri/renderD129 is not there",)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"kfd": None}, "no /dev/kfd"),
        ({"kfd": node("/dev/kfd")}, "no KFD topology"),
        ({"kfd": node("/dev/kfd"), "kfd_topology": True}, "lists no GPU"),
    ],
)
def test_a_host_without_gpus_says_what_is_missing(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(DevicesMissing, match=said):
        plan(host=host(0, **facts))


@pytest.mark.parametrize("accelerator", ["cpu", "cuda"])
def test_a_job_for_another_accelerator_needs_no_amd_gpu(accelerator: str) -> None:
    made = plan({"accelerator": accelerator}, host=host(0))

    assert (made.devices, made.gpus, made.isolation) == ((), (), "no GPU passed")


def test_a_gpu_without_kfd_is_refused() -> None:
    with pytest.raises(DevicesMissing, match="need /dev/kfd"):
        plan(host=host([gpu()], kfd=None))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"render_node": None}, "/dev/dri/renderD128 does not exist"),
        ({"render_node": None, "render_minor": None}, "no render minor"),
    ],
)
def test_a_named_gpu_without_a_render_node_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DevicesMissing, match=said):
        plan({"gpus": {"select": ["index:0"]}}, host=host([gpu(**changes)]))


def test_a_glob_passes_every_node_that_it_matches() -> None:
    made = plan(devices(("/dev/infiniband/uverbs*", "rw")), host=host(1, devices=UVERBS))

    assert {"device:/dev/infiniband/uverbs0:rw", "device:/dev/infiniband/uverbs1:rw"} <= set(
        granted(made)
    )
    assert made.groups == (44, 77, 992)
    (grant,) = [g for g in made.grants if g.what == "device:/dev/infiniband/uverbs1:rw"]
    assert grant.asked_by == "profile job: devices[0]"


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    with pytest.raises(DevicesMissing) as caught:
        plan(devices(("/dev/infiniband/uverbs*", "rw")))

    assert caught.value.message == (
        "profile job: devices[0]: no device node on this host matches /dev/infiniband/uverbs*"
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(("r",), "rw"), (("rwm",), "rwm"), (("r", "rwm"), "rwm"), (("rwm", "r"), "rwm")],
)
def test_of_two_that_ask_for_one_node_the_wider_wins(asked: tuple[str, ...], expected: str) -> None:
    """The GPUs themselves ask for rw; one grant is left."""
    kfd = node("/dev/kfd", gid=44)
    tables = devices(*(("/dev/kfd", permissions) for permissions in asked))

    made = plan(tables, host=host(1, kfd=kfd, devices=(kfd,)))

    assert [right for right in granted(made) if "kfd" in right] == [f"device:/dev/kfd:{expected}"]
    assert (
        PlannedDevice(path="/dev/kfd", host_path="/dev/kfd", permissions=expected) in made.devices
    )


def test_a_device_grant_is_a_device() -> None:
    made = plan(privileges("device:/dev/infiniband/uverbs0:rwm"), host=host(1, devices=UVERBS))

    assert "device:/dev/infiniband/uverbs0:rwm" in granted(made)


def test_a_node_below_another_root_has_two_paths() -> None:
    kfd = node("/dev/kfd", host_path="/tmp/host/dev/kfd")

    assert (
        PlannedDevice(path="/dev/kfd", host_path="/tmp/host/dev/kfd")
        in plan(host=host(1, kfd=kfd)).devices
    )


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (ENGINE, "kernel-enforced"),
        (None, "unknown"),
        (replace(ENGINE, security_options=("name=seccomp", "name=rootless")), "nodes only"),
    ],
)
def test_the_isolation_of_other_gpus_has_a_grade(engine: Any, said: str) -> None:
    free = gpu(render_node=node("/dev/dri/renderD128", mode=0o666))

    made = plan(engine=engine, host=host([free], kfd=node("/dev/kfd", mode=0o666)))

    assert made.isolation.startswith(said)


@pytest.mark.parametrize(
    ("env", "grade"),
    [
        ({}, "none: /dev/dri/renderD129 passed beside the GPUs selected"),
        (
            {"HIP_VISIBLE_DEVICES": "0"},
            "environment only (HIP_VISIBLE_DEVICES): /dev/dri/renderD129 passed beside the GPUs selected",
        ),
    ],
)
def test_a_node_of_another_gpu_beside_the_selection_lowers_the_grade(
    env: dict[str, str], grade: str
) -> None:
    """What [[devices]] brings beyond [gpus] select, nothing of the kernel keeps apart."""
    both = host(2)
    nodes = tuple(g.render_node for g in both.gpus if g.render_node)
    asked = {"path": "/dev/dri/renderD*", "reason": "video"}
    profile = {
        "gpus": {"select": ["index:0"]},
        "devices": [asked],
        "container": {"env": env},
    }

    made = plan(profile, host=replace(both, devices=nodes), engine=ENGINE)

    assert made.isolation == grade


def test_a_gpu_knows_its_xgmi_peers_among_those_that_are_passed() -> None:
    """By index in the plan's own numbering; a link to a GPU that is not passed is no peer of the job."""
    link = Link(to_node=1, kind="xgmi")
    gpus = tuple(
        replace(gpu, links=(link,), xgmi_peers=tuple({1, 2, 3} - {gpu.node}))
        for gpu in host(3).gpus
    )
    two, unknown = planned_gpus(gpus[:2]), planned_gpus(host(1).gpus)

    assert {gpu.node for gpu in gpus} == {1, 2, 3}
    assert [gpu.xgmi_peers for gpu in two] == [(1,), (0,)]
    assert unknown[0].xgmi_peers is None
