"""Inspect before start: equal passes, stricter passes, weaker is named. Every comparator is seen to fail."""

from typing import Any

import pytest
from hypothesis import given

from rocmrun.core.create_request import create_request
from rocmrun.core.inspection import Difference, differences, weaker
from rocmrun.core.plan import Plan
from rocmrun.core.stricter import COMPARATORS, NEUTRAL, verdict
from rocmrun.core.verdict import Verdict
from tests.builders import IMAGE, plan
from tests.docker_records import RECORDED_HOST_CONFIG, recorded
from tests.strategies import examples, plans

KFD = {"PathOnHost": "/dev/kfd", "PathInContainer": "/dev/kfd", "CgroupPermissions": "rw"}
SDA = {"PathOnHost": "/dev/sda", "PathInContainer": "/dev/kfd", "CgroupPermissions": "rw"}
BIND = {"Type": "bind", "Source": "/a", "Target": "/a", "ReadOnly": False,
        "BindOptions": {"Propagation": "rprivate"}}  # fmt: skip
NNP = "no-new-privileges:true"
CORE, FILES = {"Name": "core", "Soft": 0, "Hard": 0}, {"Name": "nofile", "Soft": 9, "Hard": 9}
MEMLOCK = {"Name": "memlock", "Soft": -1, "Hard": -1}
TMP = "rw,nosuid,nodev,exec,size=100,mode=1777"
PORT = {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "80"}]}

TABLE: tuple[tuple[str, Any, Any, Verdict], ...] = (
    ("AutoRemove", False, None, "equal"),
    ("AutoRemove", False, True, "weaker"),
    ("AutoRemove", True, False, "stricter"),
    ("CapAdd", ["SYS_NICE"], ["CAP_SYS_NICE"], "equal"),
    ("CapAdd", [], None, "equal"),
    ("CapAdd", ["SYS_NICE"], [], "stricter"),
    ("CapAdd", [], ["SYS_NICE"], "weaker"),
    ("CapAdd", ["SYS_NICE"], ["SYS_ADMIN"], "weaker"),
    ("CapDrop", ["ALL"], ["all"], "equal"),
    ("CapDrop", ["NET_RAW"], ["NET_RAW", "MKNOD"], "stricter"),
    ("CapDrop", ["ALL"], [], "weaker"),
    ("CapDrop", ["ALL"], None, "weaker"),
    ("CgroupnsMode", "private", "private", "equal"),
    ("CgroupnsMode", "private", "host", "weaker"),
    ("CgroupnsMode", "private", "", "weaker"),
    ("CgroupnsMode", "host", "private", "stricter"),
    ("CpusetCpus", "", None, "equal"),
    ("CpusetCpus", "0-3,8", "0,1,2,3,8", "equal"),
    ("CpusetCpus", "", "0-3", "stricter"),
    ("CpusetCpus", "0-3", "0-1", "stricter"),
    ("CpusetCpus", "0-3", "", "weaker"),
    ("CpusetCpus", "0-3", "2-5", "weaker"),
    ("CpusetMems", "0", "0", "equal"),
    ("CpusetMems", "0", "1", "weaker"),
    ("CpusetMems", "0,1", "1", "stricter"),
    ("Devices", [KFD], [KFD], "equal"),
    ("Devices", [], None, "equal"),
    ("Devices", [KFD], [], "stricter"),
    ("Devices", [{**KFD, "CgroupPermissions": "rwm"}], [KFD], "stricter"),
    ("Devices", [KFD], [{**KFD, "CgroupPermissions": "rwm"}], "weaker"),
    ("Devices", [KFD], [SDA], "weaker"),
    ("Devices", [KFD], [KFD, SDA], "weaker"),
    ("GroupAdd", ["44", "992"], ["992", "44"], "equal"),
    ("GroupAdd", ["44", "992"], ["992"], "stricter"),
    ("GroupAdd", ["44"], ["44", "0"], "weaker"),
    ("IpcMode", "private", "private", "equal"),
    ("IpcMode", "private", "none", "stricter"),
    ("IpcMode", "shareable", "private", "stricter"),
    ("IpcMode", "host", "private", "stricter"),
    ("IpcMode", "private", "", "weaker"),
    ("IpcMode", "private", "shareable", "weaker"),
    ("IpcMode", "private", "host", "weaker"),
    ("IpcMode", "private", "container:x", "weaker"),
    ("LogConfig", {"Type": "none", "Config": {}}, {"Type": "none", "Config": None}, "equal"),
    ("LogConfig", {"Type": "none"}, {"Type": "json-file"}, "weaker"),
    ("LogConfig", {"Type": "none"}, None, "weaker"),
    ("LogConfig", {"Type": "json-file"}, {"Type": "none"}, "stricter"),
    ("LogConfig", {"Type": "json-file", "Config": {"max-size": "1"}},
     {"Type": "json-file", "Config": {"max-size": "1", "tag": "x"}}, "equal"),
    ("LogConfig", {"Type": "json-file", "Config": {"max-size": "1"}},
     {"Type": "json-file", "Config": {}}, "weaker"),
    ("MaskedPaths", None, RECORDED_HOST_CONFIG["MaskedPaths"], "equal"),
    ("MaskedPaths", None, [*RECORDED_HOST_CONFIG["MaskedPaths"], "/sys/devices/x"], "equal"),
    ("MaskedPaths", None, None, "equal"),
    ("MaskedPaths", None, [], "weaker"),
    ("MaskedPaths", None, ["/proc/kcore"], "weaker"),
    ("MaskedPaths", [], [], "equal"),
    ("MaskedPaths", [], None, "stricter"),
    ("Memory", 100, 100, "equal"),
    ("Memory", 0, None, "equal"),
    ("Memory", 100, 50, "stricter"),
    ("Memory", 100, 0, "weaker"),
    ("Memory", 100, 200, "weaker"),
    ("MemorySwap", 100, 100, "equal"),
    ("MemorySwap", 100, 200, "weaker"),
    ("MemorySwap", 100, -1, "weaker"),
    ("MemorySwap", -1, 100, "stricter"),
    ("Mounts", [BIND], [BIND], "equal"),
    ("Mounts", [], None, "equal"),
    ("Mounts", [BIND], [{**BIND, "ReadOnly": None}], "equal"),
    ("Mounts", [BIND], [{**BIND, "ReadOnly": True}], "stricter"),
    ("Mounts", [{**BIND, "ReadOnly": True}], [BIND], "weaker"),
    ("Mounts", [BIND], [{**BIND, "Source": "/"}], "weaker"),
    ("Mounts", [BIND], [{**BIND, "BindOptions": {"Propagation": "rshared"}}], "weaker"),
    ("Mounts", [BIND], [], "weaker"),
    ("Mounts", [BIND], [BIND, {**BIND, "Target": "/b"}], "weaker"),
    ("NanoCpus", 0, 0, "equal"),
    ("NanoCpus", 0, 10, "stricter"),
    ("NanoCpus", 10, 0, "weaker"),
    ("NetworkMode", "none", "none", "equal"),
    ("NetworkMode", "bridge", "default", "equal"),
    ("NetworkMode", "host", "none", "stricter"),
    ("NetworkMode", "none", "bridge", "weaker"),
    ("NetworkMode", "none", "default", "weaker"),
    ("NetworkMode", "bridge", "host", "weaker"),
    ("OomKillDisable", None, False, "equal"),
    ("OomKillDisable", None, True, "weaker"),
    ("OomKillDisable", True, False, "stricter"),
    ("OomScoreAdj", None, 0, "equal"),
    ("OomScoreAdj", None, 200, "stricter"),
    ("OomScoreAdj", None, -500, "weaker"),
    ("PidMode", "", None, "equal"),
    ("PidMode", "", "private", "equal"),
    ("PidMode", "", "host", "weaker"),
    ("PidMode", "host", "", "stricter"),
    ("PidsLimit", 4096, 4096, "equal"),
    ("PidsLimit", 4096, 100, "stricter"),
    ("PidsLimit", 4096, None, "weaker"),
    ("PidsLimit", 4096, -1, "weaker"),
    ("PortBindings", None, {}, "equal"),
    ("PortBindings", PORT, PORT, "equal"),
    ("PortBindings", PORT, {}, "stricter"),
    ("PortBindings", PORT, {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "80"}]}, "weaker"),
    ("PortBindings", None, {"80/tcp": None}, "weaker"),
    ("Privileged", False, None, "equal"),
    ("Privileged", False, True, "weaker"),
    ("Privileged", True, False, "stricter"),
    ("ReadonlyPaths", None, RECORDED_HOST_CONFIG["ReadonlyPaths"], "equal"),
    ("ReadonlyPaths", None, [], "weaker"),
    ("ReadonlyPaths", [], ["/proc/sys"], "stricter"),
    ("ReadonlyRootfs", True, True, "equal"),
    ("ReadonlyRootfs", False, True, "stricter"),
    ("ReadonlyRootfs", True, False, "weaker"),
    ("ReadonlyRootfs", True, None, "weaker"),
    ("RestartPolicy", {"Name": "no", "MaximumRetryCount": 0}, {"Name": ""}, "equal"),
    ("RestartPolicy", {"Name": "on-failure", "MaximumRetryCount": 3}, None, "stricter"),
    ("RestartPolicy", {"Name": "no"}, {"Name": "always"}, "weaker"),
    ("RestartPolicy", {"Name": "on-failure", "MaximumRetryCount": 3},
     {"Name": "on-failure", "MaximumRetryCount": 0}, "weaker"),
    ("Runtime", None, "runc", "equal"),
    ("Runtime", None, "", "equal"),
    ("Runtime", None, "crun", "equal"),
    ("Runtime", "runc", "runc", "equal"),
    ("Runtime", None, "runsc", "weaker"),
    ("Runtime", "runc", "nvidia", "weaker"),
    ("SecurityOpt", [NNP], ["no-new-privileges"], "equal"),
    ("SecurityOpt", [NNP, "seccomp={}"], ["seccomp={}", "no-new-privileges=true"], "equal"),
    ("SecurityOpt", [], [NNP], "stricter"),
    ("SecurityOpt", [NNP], [], "weaker"),
    ("SecurityOpt", [NNP], None, "weaker"),
    ("SecurityOpt", [NNP], [NNP, "seccomp=unconfined"], "weaker"),
    ("SecurityOpt", [NNP], ["no-new-privileges:false"], "weaker"),
    ("SecurityOpt", [], [NNP, "label=disable"], "weaker"),
    ("ShmSize", 100, 100, "equal"),
    ("ShmSize", None, 64 << 20, "equal"),
    ("ShmSize", None, 1 << 30, "weaker"),
    ("ShmSize", 100, 50, "stricter"),
    ("ShmSize", 100, 200, "weaker"),
    ("Sysctls", {}, None, "equal"),
    ("Sysctls", {"a.b": "1"}, {}, "stricter"),
    ("Sysctls", {"a.b": "1"}, {"a.b": "2"}, "weaker"),
    ("Sysctls", {}, {"a.b": "1"}, "weaker"),
    ("Tmpfs", {"/tmp": TMP}, {"/tmp": TMP}, "equal"),
    ("Tmpfs", {}, None, "equal"),
    ("Tmpfs", {"/tmp": TMP}, {"/tmp": "size=100,exec,mode=1777,rw,nosuid,nodev"}, "equal"),
    ("Tmpfs", {"/tmp": TMP}, {"/tmp": TMP.replace("exec", "noexec")}, "stricter"),
    ("Tmpfs", {"/tmp": TMP}, {"/tmp": TMP.replace("100", "50")}, "stricter"),
    ("Tmpfs", {"/tmp": TMP}, {"/tmp": TMP.replace("100", "101")}, "weaker"),
    ("Tmpfs", {"/tmp": TMP}, {"/tmp": TMP.replace("size=100,", "")}, "weaker"),
    ("Tmpfs", {"/tmp": TMP}, {"/tmp": TMP.replace("nosuid,", "")}, "weaker"),
    ("Tmpfs", {"/tmp": TMP.replace("exec", "noexec")}, {"/tmp": TMP}, "weaker"),
    ("Tmpfs", {"/tmp": TMP}, {"/tmp": ""}, "weaker"),
    ("Tmpfs", {"/tmp": TMP}, {}, "weaker"),
    ("Tmpfs", {}, {"/tmp": TMP}, "weaker"),
    ("UTSMode", "", None, "equal"),
    ("UTSMode", "", "host", "weaker"),
    ("UTSMode", "host", "private", "stricter"),
    ("Ulimits", [CORE, FILES], [FILES, CORE], "equal"),
    ("Ulimits", [], None, "equal"),
    ("Ulimits", [FILES], [{**FILES, "Soft": 5}], "stricter"),
    ("Ulimits", [FILES], [FILES, CORE], "stricter"),
    ("Ulimits", [MEMLOCK], [{**MEMLOCK, "Soft": 5, "Hard": 5}], "stricter"),
    ("Ulimits", [FILES], [{**FILES, "Hard": -1}], "weaker"),
    ("Ulimits", [FILES], [FILES, MEMLOCK], "weaker"),
    ("Ulimits", [CORE, FILES], [FILES], "weaker"),
    ("UsernsMode", None, "", "equal"),
    ("UsernsMode", None, "host", "weaker"),
    ("UsernsMode", "host", "", "stricter"),
)  # fmt: skip


@pytest.mark.parametrize(("field", "asked", "got", "expected"), TABLE)
def test_a_field_is_equal_stricter_or_weaker(
    field: str, asked: Any, got: Any, expected: Verdict
) -> None:
    assert verdict(field, asked, got) == expected


@pytest.mark.parametrize("field", COMPARATORS)
def test_every_comparator_passes_what_is_equal_and_fails_what_is_weaker(field: str) -> None:
    """A check that cannot fail would be none."""
    seen = {expected for name, _, _, expected in TABLE if name == field}

    assert {"equal", "weaker"} <= seen


def test_every_field_that_docker_records_has_a_comparator_or_must_come_back_as_sent() -> None:
    """One field at a time comes back with a value that nobody asked for."""
    job = plan()
    request = create_request(job, role="workload")

    accepted = {
        field
        for field in RECORDED_HOST_CONFIG.keys() - COMPARATORS.keys()
        if not weaker(request, _with(request, field, "something"))
    }

    assert accepted == NEUTRAL & RECORDED_HOST_CONFIG.keys()


def _with(request: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    record = recorded(request)
    record["HostConfig"][field] = value
    return record


@examples(60)
@given(plans())
def test_what_docker_records_of_a_request_is_no_difference(plan: Plan) -> None:
    """Its defaults, its order and its empty values are not taken for rights."""
    request = create_request(plan, role="workload", labels={"io.rocmrun.run": "1"})

    assert differences(request, recorded(request)) == ()


@pytest.mark.parametrize("empty", [None, [], {}, 0, "", False])
def test_empty_values_are_one_value(empty: Any) -> None:
    """But for the masks, where an empty list is the absence of all masks."""
    request = create_request(plan(), role="workload")

    for field in ("VolumesFrom", "DeviceRequests", "CgroupParent", "Links", "SomethingNew"):
        assert differences(request, _with(request, field, empty)) == ()
    assert [found.field for found in weaker(request, _with(request, "MaskedPaths", []))] == [
        "HostConfig.MaskedPaths"
    ]


def test_a_field_that_nobody_knows_is_refused_where_it_has_a_value() -> None:
    request = create_request(plan(), role="workload")

    (found,) = weaker(request, _with(request, "CpuRealtimeRuntime", 950000))

    assert found == Difference(
        field="HostConfig.CpuRealtimeRuntime", sent=None, recorded=950000, verdict="weaker"
    )
    assert str(found) == (
        "HostConfig.CpuRealtimeRuntime: asked for None, engine recorded 950000"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "recorded", "said"),
    [
        ([1, 2], [2, 1, 3], "x: engine added [3]"),
        ([1, 2], [2], "x: left out [1]"),
        ([1], [2], "x: engine added [2], left out [1]"),
        ([1, 2], [2, 1], "x: asked for [1, 2], engine recorded [2, 1]"),
        (None, [1], "x: asked for None, engine recorded [1]"),
    ],
)
def test_of_two_lists_what_differs_is_said(sent: Any, recorded: Any, said: str) -> None:
    """A daemon's ulimit is not lost behind those that were asked for."""
    assert str(Difference(field="x", sent=sent, recorded=recorded)) == said


def test_a_long_value_is_cut_in_the_message() -> None:
    found = Difference(field="HostConfig.Binds", sent=None, recorded=["x" * 500])

    assert len(str(found)) < 220
    assert str(found).endswith("…")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"User": "0:0"}, "Config.User"),
        ({"User": None}, "Config.User"),
        ({"Env": ["HOME=/root"]}, "Config.Env"),
        ({"Env": None}, "Config.Env"),
        ({"Entrypoint": ["/bin/sh"]}, "Config.Entrypoint"),
        ({"Cmd": ["-c", "curl"]}, "Config.Cmd"),
        ({"Labels": {}}, "Config.Labels"),
        ({"Labels": None}, "Config.Labels"),
    ],
)
def test_what_runs_and_as_whom_must_come_back_as_sent(change: dict[str, Any], field: str) -> None:
    job = plan({"container": {"entrypoint": ["python3"], "command": ["x.py"]}})
    request = create_request(job, role="workload")
    record = recorded(request)

    record["Config"] |= change

    assert field in [found.field for found in weaker(request, record)]


def test_a_changed_variable_is_named_without_its_value() -> None:
    """It may be a secret."""
    job = plan({"container": {"env_from": ["HF_TOKEN"]}})
    request = create_request(job, role="workload", secrets={"HF_TOKEN": "hf_secret"})
    record = recorded(request)

    record["Config"]["Env"].append("HF_TOKEN=other")

    (found,) = weaker(request, record)
    assert found.sent == ["HF_TOKEN"]
    assert "secret" not in str(found)


@pytest.mark.parametrize("cleared", [None, [], [""]])
def test_an_entrypoint_that_was_cleared_comes_back_empty(cleared: list[str] | None) -> None:
    request = create_request(plan({"container": {"entrypoint": []}}), role="workload")
    record = recorded(request, IMAGE.__class__(image_id=IMAGE.image_id, entrypoint=("/x",)))
    assert record["Config"]["Entrypoint"] == []

    record["Config"]["Entrypoint"] = cleared

    assert differences(request, record) == ()


@pytest.mark.parametrize("image", ["sha256:" + "00" * 32, "", None])
def test_another_image_than_the_one_asked_for_by_id_is_refused(image: str | None) -> None:
    request = create_request(plan(), role="workload")

    found = weaker(request, recorded(request) | {"Image": image})

    assert [difference.field for difference in found] == ["Image"]


def test_an_image_asked_for_by_name_is_the_engines_to_resolve() -> None:
    """And Podman writes ids without the algorithm."""
    request = create_request(plan(), role="workload")

    bare = request["Image"].removeprefix("sha256:")
    assert differences(request, recorded(request) | {"Image": bare}) == ()
    assert differences(request | {"Image": "demo:1"}, recorded(request)) == ()


MOUNTS = {
    "mounts": [
        {"source": "/srv/models", "target": "/models"},
        {"source": "/srv/work", "target": "/work", "mode": "rw", "selinux": "shared"},
        {"source": "/srv/data", "target": "/data", "selinux": "private"},
        {"type": "volume", "source": "vol", "target": "/vol"},
    ]
}


@pytest.mark.parametrize(
    ("target", "change"),
    [
        ("/models", {"RW": True}),
        ("/data", {"RW": True}),
        ("/models", {"Source": "/etc"}),
        ("/models", {"Propagation": "rshared"}),
        ("/work", {"Source": "/"}),
        ("/work", {"Type": "volume"}),
        ("/vol", {"Name": "other"}),
        ("/vol", {"Destination": "/elsewhere"}),
    ],
)
def test_a_mount_point_that_is_not_as_asked_is_found(target: str, change: dict[str, Any]) -> None:
    """The mount point is what is mounted in the end, whatever HostConfig says."""
    request = create_request(plan(MOUNTS), role="workload")
    record = recorded(request)
    assert differences(request, record) == ()

    (point,) = [point for point in record["Mounts"] if point["Destination"] == target]
    point |= change

    (found,) = weaker(request, record)
    assert found.field == f"Mounts[{change.get('Destination', target)}]"


def test_a_volume_of_the_image_that_nothing_covers_is_found() -> None:
    """An anonymous volume is writable, executable and on disk."""
    image = IMAGE.__class__(image_id=IMAGE.image_id, volumes=("/data",))
    job = plan(image_facts=image)
    request = create_request(job, role="workload")
    assert differences(request, recorded(request, image)) == ()

    del request["HostConfig"]["Tmpfs"]["/data"]

    (found,) = weaker(request, recorded(request, image))
    assert str(found) == "Mounts[/data]: asked for None, engine recorded 'volume a1b2 rw'"


def test_a_tmpfs_may_be_listed_as_one_and_as_nothing_else() -> None:
    request = create_request(plan(), role="workload")
    record = recorded(request)
    point = {"Type": "tmpfs", "Source": "tmpfs", "Destination": "/tmp", "RW": True}

    assert differences(request, record | {"Mounts": [*record["Mounts"], point]}) == ()
    swapped = point | {"Type": "bind", "Source": "/tmp"}
    found = weaker(request, record | {"Mounts": [*record["Mounts"], swapped]})
    assert [difference.field for difference in found] == ["Mounts[/tmp]"]


def test_differences_are_sorted_and_weaker_is_those_that_weaken() -> None:
    request = create_request(plan(), role="workload")
    record = recorded(request)
    record["HostConfig"] |= {"Memory": 4096, "Privileged": True, "PidMode": "host"}

    found = differences(request, record)

    assert [(difference.field, difference.verdict) for difference in found] == [
        ("HostConfig.Memory", "stricter"),
        ("HostConfig.PidMode", "weaker"),
        ("HostConfig.Privileged", "weaker"),
    ]
    assert weaker(request, record) == found[1:]


def test_a_record_with_nothing_in_it_is_refused() -> None:
    assert weaker(create_request(plan(), role="workload"), {})
