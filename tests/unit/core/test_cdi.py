"""GPUs through CDI: chosen by the nodes that a device brings, compared with this host node by node."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.access import forecast_access
from rocmrun.core.cdi import parse_cdi
from rocmrun.core.create_request import create_request
from rocmrun.core.docker_run.line import docker_run_line
from rocmrun.core.exposure.score import score_plan
from rocmrun.core.host import Gpu, HostFacts
from rocmrun.core.inspection import weaker
from rocmrun.core.plan import Plan
from rocmrun.core.probing.protocol import expectation
from rocmrun.core.ungranted import ungranted
from rocmrun.errors import (
    CdiStale,
    DevicePermission,
    EngineUnsuitable,
    PlanRefused,
    RocmrunError,
    UsageError,
)
from tests.builders import ENGINE, KFD_GROUP, RENDER_GROUP, gpu, granted, host, node, plan

SOURCE = "/etc/cdi/amd.json"
CDI_ENGINE = replace(ENGINE, version="28.2.2", cdi_spec_dirs=("/etc/cdi", "/var/run/cdi"))
PROFILE: dict[str, Any] = {"gpus": {"inject": "cdi"}}


def real(index: int, **changes: Any) -> Gpu:
    """A GPU whose nodes have DRM's numbers, and a card node beside the render node."""
    minor = 128 + index
    render = node(f"/dev/dri/renderD{minor}", major=226, minor=minor)
    return gpu(index, **{"render_node": render, "card": index + 1, **changes})


def machine(count: int = 2, **changes: Any) -> HostFacts:
    gpus = [real(index) for index in range(count)]
    cards = tuple(node(f"/dev/dri/card{g.card}", gid=39, major=226, minor=g.card) for g in gpus)
    kfd = node("/dev/kfd", gid=KFD_GROUP, major=510, minor=0)
    return host(gpus, **{"kfd": kfd, "card_nodes": cards, **changes})


def device_node(path: str, major: int, minor: int) -> dict[str, Any]:
    """A node as amd-ctk writes it: with the host's owner and mode."""
    owners = {"kfd": KFD_GROUP, "card": 39}
    gid = next((gid for word, gid in owners.items() if word in path), RENDER_GROUP)
    return {
        "path": path, "hostPath": path, "type": "c", "major": major, "minor": minor,
        "permissions": "rwm", "fileMode": 0o20660, "uid": 0, "gid": gid,
    }  # fmt: skip


KFD = device_node("/dev/kfd", 510, 0)


def entry(name: str, *indices: int, **edits: Any) -> dict[str, Any]:
    """A device as amd-ctk writes it: kfd, card and render node of each GPU, rwm."""
    nodes = [KFD]
    for index in indices:
        nodes.append(device_node(f"/dev/dri/card{index + 1}", 226, index + 1))
        nodes.append(device_node(f"/dev/dri/renderD{128 + index}", 226, 128 + index))
    return {"name": name, "containerEdits": {"deviceNodes": nodes, **edits}}


def spec(*entries: dict[str, Any], **fields: Any) -> str:
    return json.dumps({"cdiVersion": "0.6.0", "kind": "amd.com/gpu", "devices": entries, **fields})


# PCI order is not KFD order here: device 0 of the specification is GPU 1.
SWAPPED = spec(entry("0", 1), entry("1", 0), entry("all", 0, 1))


def planned(
    text: str = SWAPPED, select: str = "index:0", *, engine: Any = CDI_ENGINE, **changes: Any
) -> Plan:
    profile = {"gpus": {"inject": "cdi", "select": [select]}, **changes.pop("tables", {})}
    where = changes.pop("host", machine())
    return plan(profile, engine=engine, host=where, cdi=parse_cdi(text, SOURCE), **changes)


def refusal(error: type[RocmrunError], *args: Any, **changes: Any) -> RocmrunError:
    with pytest.raises(error) as caught:
        planned(*args, **changes)
    assert caught.value.hint
    return caught.value


def test_a_gpu_is_found_by_its_render_node_and_not_by_its_number() -> None:
    """amd.com/gpu=0 is HIP's 1 on such a machine."""
    assert planned(select="index:0").cdi_devices == ("amd.com/gpu=1",)
    assert planned(select="index:1").cdi_devices == ("amd.com/gpu=0",)
    assert planned(select="pci:0000:63:00.0").cdi_devices == ("amd.com/gpu=1",)


def test_several_gpus_are_asked_for_one_by_one() -> None:
    """Not through "all", which tomorrow may be more."""
    assert planned(select="all").cdi_devices == ("amd.com/gpu=0", "amd.com/gpu=1")


def test_the_request_names_the_device_and_passes_no_node_itself() -> None:
    made = planned()
    config = create_request(made, role="workload")["HostConfig"]

    assert config["DeviceRequests"] == [{"Driver": "cdi", "DeviceIDs": ["amd.com/gpu=1"]}]
    assert config["Devices"] == []
    assert "--device=amd.com/gpu=1" in docker_run_line(made)
    assert "renderD128:" not in docker_run_line(made)


def test_every_node_that_it_brings_is_a_grant() -> None:
    """Card nodes and the right to make nodes too, with who brings them."""
    made = planned()
    devices = {grant.what: grant for grant in made.grants if grant.what.startswith("device:")}

    assert sorted(devices) == ["device:/dev/dri/card1:rwm", "device:/dev/dri/renderD128:rwm", "device:/dev/kfd:rwm"]  # fmt: skip
    assert "brings along" in devices["device:/dev/dri/card1:rwm"].reason
    assert {grant.asked_by for grant in devices.values()} == {"cdi amd.com/gpu=1"}
    assert ungranted(create_request(made, role="probe"), made) == ()


def test_groups_are_those_of_the_nodes_that_rocm_opens() -> None:
    """A specification of amd-ctk brings none; the card node needs none."""
    made = planned()
    groups = [what for what in granted(made) if what.startswith("group:")]
    forecast = {n.path: n.errno for n in forecast_access(made, machine(), CDI_ENGINE, {}, caller_uid=0).nodes}  # fmt: skip

    assert groups == [f"group:{KFD_GROUP}", f"group:{RENDER_GROUP}"]
    assert forecast == {"/dev/dri/card1": "EACCES", "/dev/dri/renderD128": "0", "/dev/kfd": "0"}
    assert expectation(made)["devices"] == ["/dev/dri/renderD128", "/dev/kfd"]


def owned(**changes: Any) -> str:
    """The specification with other owners: None leaves the key out."""
    nodes = json.loads(SWAPPED)
    for node_entry in (n for d in nodes["devices"] for n in d["containerEdits"]["deviceNodes"]):
        node_entry.update(changes)
        for key in [key for key, value in changes.items() if value is None]:
            del node_entry[key]
    return json.dumps(nodes)


def test_a_node_has_the_mode_that_the_specification_gives_it() -> None:
    """What is left out is 0666 and root's: every user opens such a node, the card node too."""
    made = planned(owned(fileMode=None, uid=None, gid=None))
    forecast = forecast_access(made, machine(), CDI_ENGINE, {}, caller_uid=0)

    assert made.groups == ()
    assert {node.errno for node in forecast.nodes} == {"0"}
    assert {node.mode for node in forecast.nodes} == {"0666"}
    assert "/dev/kfd is open to everybody (mode 0666): no group is needed" in made.notes


def test_nodes_that_only_root_may_open_are_refused() -> None:
    """A mode without an owner."""
    error = refusal(DevicePermission, owned(uid=None, gid=None))

    assert "belongs to group root (mode 0660)" in error.message
    assert "amd-ctk cdi generate" in (error.hint or "")


def test_what_it_brings_is_scored() -> None:
    nodes = plan(host=machine(), engine=CDI_ENGINE)

    exposed = score_plan(planned(select="all"), machine(), CDI_ENGINE)

    assert exposed.total > score_plan(nodes, machine(), CDI_ENGINE).total
    assert any("CDI" in row.sentence and row.contribution for row in exposed.rows)


def test_another_device_request_is_no_grant() -> None:
    made = planned()
    for item in (
        {"Driver": "cdi", "DeviceIDs": ["amd.com/gpu=all"]},
        {"Driver": "cdi", "DeviceIDs": ["amd.com/gpu=1"], "Options": {"a": "b"}},
        {"Driver": "nvidia", "DeviceIDs": ["amd.com/gpu=1"]},
    ):
        request = create_request(made, role="workload")
        request["HostConfig"]["DeviceRequests"] = [item]
        assert f"device-request:{item}" in ungranted(request, made)


def test_the_engines_record_of_it_is_equal() -> None:
    """Docker fills in the fields that were not sent."""
    made = planned()
    request = create_request(made, role="workload")
    recorded = {"Driver": "cdi", "Count": 0, "DeviceIDs": ["amd.com/gpu=1"], "Capabilities": None, "Options": None}  # fmt: skip

    def fields(requests: Any) -> list[str]:
        record = {"HostConfig": {**request["HostConfig"], "DeviceRequests": requests}, "Config": request, "Image": request["Image"]}  # fmt: skip
        return [found.field for found in weaker(request, record) if "Device" in found.field]

    assert fields([recorded]) == []
    assert fields([{**recorded, "DeviceIDs": ["amd.com/gpu=all"]}]) == ["HostConfig.DeviceRequests"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (entry("1", 5), "brings /dev/dri/card6, which does not exist here"),
        ({"name": "1", "containerEdits": {"deviceNodes": [device_node("/dev/dri/renderD128", 226, 129)]}},
         "brings /dev/dri/renderD128 as 226:129, here it is 226:128"),
        ({"name": "1", "containerEdits": {"deviceNodes": [{**KFD, "hostPath": "/dev/other"}]}},
         "brings /dev/other as /dev/kfd"),
    ],
)  # fmt: skip
def test_a_stale_specification_is_refused_with_how_to_refresh(
    changed: dict[str, Any], said: str
) -> None:
    """Node by node, for every device of it: a new partition mode renumbers them all."""
    error = refusal(CdiStale, spec(entry("0", 1), changed))

    assert error.exit_code == 8
    assert any(said in detail for detail in error.details)
    assert error.hint == "sudo amd-ctk cdi generate --output=/etc/cdi/amd.json"


def test_a_card_of_another_gpu_is_stale() -> None:
    mixed = entry("1", 0)
    mixed["containerEdits"]["deviceNodes"][1] = device_node("/dev/dri/card2", 226, 2)

    error = refusal(CdiStale, spec(mixed))

    assert "/dev/dri/card2, the card node of another GPU" in error.details[0]
    unknown = replace(machine(), gpus=(real(0, card=None), real(1)))
    assert planned(spec(mixed), host=unknown).cdi_devices == ("amd.com/gpu=1",)


def test_a_gpu_that_no_device_brings_is_stale() -> None:
    assert (
        "no CDI device brings /dev/dri/renderD128" in refusal(CdiStale, spec(entry("0", 1))).message
    )


def test_a_device_that_brings_more_than_is_selected_is_refused() -> None:
    """All partitions of a GPU in one device, say; with all of them selected it is fine."""
    both = spec(entry("0", 0, 1))

    assert (
        "brings /dev/dri/renderD129 too, which is not selected" in refusal(CdiStale, both).message
    )
    assert planned(both, select="all").cdi_devices == ("amd.com/gpu=0",)


@pytest.mark.parametrize("kind", ["hooks", "mounts", "env", "additionalGids"])
@pytest.mark.parametrize("shared", [True, False])
def test_what_is_no_node_is_in_no_grant_and_refused(kind: str, shared: bool) -> None:  # noqa: FBT001
    edits = {kind: ["x"]}
    text = spec(entry("1", 0), containerEdits=edits) if shared else spec(entry("1", 0, **edits))

    assert f"more than device nodes: {kind}" in refusal(PlanRefused, text).message


def test_an_engine_without_cdi_is_refused() -> None:
    """20.10, 25 with the feature off, and Podman's socket, which would ignore the request."""
    assert "has no CDI" in refusal(EngineUnsuitable, engine=ENGINE).message
    podman = replace(CDI_ENGINE, kind="podman")
    assert "ignores CDI" in refusal(EngineUnsuitable, engine=podman).message


def test_a_device_that_the_engine_has_not_found_is_refused() -> None:
    """28.2 and newer say which they found; older ones do not."""
    engine = replace(CDI_ENGINE, cdi_devices=("amd.com/gpu=0",))

    assert "has not found amd.com/gpu=1" in refusal(CdiStale, engine=engine).message
    assert planned(select="index:1", engine=engine).cdi_devices == ("amd.com/gpu=0",)


def test_without_an_engine_the_plan_says_what_it_could_not_see() -> None:
    assert "no engine was asked" in planned(engine=None).notes[0]


def test_without_a_specification_there_is_nothing_to_ask_for() -> None:
    with pytest.raises(CdiStale, match="no CDI specification"):
        plan(PROFILE, engine=CDI_ENGINE, host=machine())


def test_a_job_without_gpus_needs_no_cdi() -> None:
    cpu = {"gpus": {"inject": "cdi", "select": ["none"]}, "accelerator": "cpu"}

    assert plan(cpu).devices == ()


def test_a_node_that_is_also_asked_for_by_itself_is_a_contradiction() -> None:
    tables = {"devices": [{"path": "/dev/kfd", "reason": "again"}]}
    where = machine(2, devices=(node("/dev/kfd", gid=KFD_GROUP),))

    assert "comes through CDI already" in refusal(UsageError, tables=tables, host=where).message


def test_other_kinds_are_not_read() -> None:
    assert parse_cdi(spec(entry("0", 0), kind="nvidia.com/gpu"), SOURCE) == ()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"kind": "amd.com/gpu", "devices": [{}]}', '{"kind": "amd.com/gpu", "devices": 3}']
)  # fmt: skip
def test_what_is_no_specification_is_named(text: str) -> None:
    with pytest.raises(CdiStale, match=r"/etc/cdi/amd\.json is no CDI specification"):
        parse_cdi(text, SOURCE)


def test_a_specification_with_a_node_that_is_gone_is_stale() -> None:
    error = refusal(CdiStale, host=machine(kfd=None))

    assert "brings /dev/kfd, which does not exist here" in error.details[0]
