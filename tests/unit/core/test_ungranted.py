"""No right without a grant, no grant without a right: for generated plans, and for rights planted by hand."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.create_request import create_request
from rocmrun.core.plan import Plan, Role
from rocmrun.core.ungranted import rights_of, ungranted
from tests.builders import plan, privileges
from tests.strategies import examples, plans

SECRETS = {"HF_TOKEN": "hf_secret", "B": "b"}
# What the probe never gets, whatever is granted.
WORKLOAD_ONLY = ("port:", "restart:", "env-from:", "healthcheck")


def sent(plan: Plan, role: Role = "workload") -> dict[str, Any]:
    """Return the create request, as others read it."""
    return create_request(plan, role=role, secrets=SECRETS, labels={"io.rocmrun.role": role})


@examples(120)
@given(plans(), st.sampled_from(["workload", "probe"]))
def test_no_request_holds_a_right_without_a_grant(plan: Plan, role: Role) -> None:
    assert ungranted(sent(plan, role), plan) == ()


@examples(120)
@given(plans())
def test_no_grant_is_without_effect(plan: Plan) -> None:
    """What people are told is granted is in the request."""
    rights = set(rights_of(sent(plan), plan))

    assert [grant.what for grant in plan.grants if not _in_effect(grant.what, rights)] == []


def _in_effect(grant: str, rights: set[str]) -> bool:
    kind, _, value = grant.partition(":")
    if grant == "seccomp:+mempolicy":
        return "cap:SYS_NICE" in rights
    if grant == "seccomp:+pidfd":
        return "cap:SYS_PTRACE" in rights
    if kind == "seccomp" and value.startswith("/"):
        return "seccomp:by-value" in rights
    if kind == "ulimit" and value.endswith("=0"):
        return True  # it takes away, which is no right
    return grant in rights


@examples(60)
@given(plans())
def test_the_probe_has_the_workloads_rights_and_only_reads(plan: Plan) -> None:
    """But for ports, restart and secrets; where the workload has its cache it has memory."""
    workload = set(rights_of(sent(plan), plan))
    cache = {f"mount:{mount.target}:rw": mount.target for mount in plan.mounts if mount.cache}

    expected = {
        f"tmpfs-exec:{cache[right]}"
        if right in cache
        else f"{right.removesuffix(':rw')}:ro"
        if right.startswith("mount:")
        else right
        for right in workload
        if not right.startswith(WORKLOAD_ONLY)
    }

    assert set(rights_of(sent(plan, "probe"), plan)) == {
        right.replace(":ro:ro", ":ro") for right in expected
    }


# Every field of HostConfig that can carry a right, with a value that does, and what it is called.
PLANTED: tuple[tuple[str, Any, str], ...] = (
    ("Privileged", True, "privileged"),
    ("CapAdd", ["SYS_ADMIN"], "cap:SYS_ADMIN"),
    ("CapDrop", [], "cap:the engine's default set"),
    ("CapDrop", ["NET_RAW"], "cap:the engine's default set"),
    ("SecurityOpt", [], "nnp:off"),
    ("SecurityOpt", ["no-new-privileges:false"], "nnp:off"),
    ("SecurityOpt", ["no-new-privileges:true", "seccomp=unconfined"], "seccomp:unconfined"),
    ("SecurityOpt", ["no-new-privileges:true", "seccomp={}"], "seccomp:{}"),
    ("SecurityOpt", ["no-new-privileges:true", "apparmor=unconfined"], "apparmor:unconfined"),
    ("SecurityOpt", ["no-new-privileges:true", "label=disable"], "label:disable"),
    ("SecurityOpt", ["no-new-privileges:true", "label:disable"], "security-opt:label:disable"),
    ("SecurityOpt", ["no-new-privileges:true", "writable-cgroups=true"],
     "security-opt:writable-cgroups=true"),
    ("MaskedPaths", [], "masks:off"),
    ("MaskedPaths", ["/proc/kcore"], "masks:off"),
    ("ReadonlyPaths", [], "masks:off"),
    ("ReadonlyRootfs", False, "rootfs:rw"),
    ("PidMode", "host", "pid:host"),
    ("PidMode", "container:x", "pid:container:x"),
    ("IpcMode", "host", "ipc:host"),
    ("IpcMode", "", "ipc:"),
    ("UTSMode", "host", "uts:host"),
    ("UsernsMode", "host", "userns:host"),
    ("CgroupnsMode", "host", "cgroupns:host"),
    ("CgroupnsMode", None, "cgroupns:"),
    ("NetworkMode", "host", "network:host"),
    ("NetworkMode", "container:x", "network:container:x"),
    ("NetworkMode", None, "network:None"),
    ("PortBindings", {"80/tcp": [{"HostPort": "80"}]}, "port::80:80/tcp"),
    ("PublishAllPorts", True, "port:all"),
    ("ExtraHosts", ["host.docker.internal:host-gateway"],
     "extra-host:host.docker.internal:host-gateway"),
    ("Devices", [{"PathOnHost": "/dev/sda", "PathInContainer": "/dev/sda",
                  "CgroupPermissions": "rwm"}], "device:/dev/sda→/dev/sda:rwm"),
    ("Devices", [{"PathOnHost": "/dev/sda", "PathInContainer": "/dev/kfd",
                  "CgroupPermissions": "rw"}], "device:/dev/sda→/dev/kfd:rw"),
    ("Devices", [{"PathOnHost": "/dev/kfd", "PathInContainer": "/dev/kfd",
                  "CgroupPermissions": "rwm"}], "device:/dev/kfd:rwm"),
    ("DeviceCgroupRules", ["c *:* rwm"], "device-rule:c *:* rwm"),
    ("DeviceRequests", [{"Count": -1}], "device-request:{'Count': -1}"),
    ("GroupAdd", ["0"], "group:0"),
    ("Binds", ["/:/host"], "mount:/:/host"),
    ("Binds", ["/srv:/home/rocmrun:rw,rprivate"], "mount:/srv:/home/rocmrun:rw,rprivate"),
    ("Mounts", [{"Type": "bind", "Source": "/", "Target": "/home/rocmrun"}],
     "mount:{'Type': 'bind', 'Source': '/', 'Target': '/home/rocmrun'}"),
    ("Tmpfs", {"/tmp": "size=1,nosuid,nodev,exec", "/x": "size=1,nosuid,nodev"}, "tmpfs-exec:/x"),
    ("Tmpfs", {"/tmp": "size=1,exec"}, "tmpfs-nosuid:/tmp"),
    ("Tmpfs", {"/tmp": "nosuid,nodev,exec"}, "tmpfs-unbounded:/tmp"),
    ("ShmSize", 1 << 40, "shm:1099511627776"),
    ("Sysctls", {"kernel.shmmax": "1"}, "sysctl:kernel.shmmax=1"),
    ("Ulimits", [{"Name": "memlock", "Soft": -1, "Hard": -1}], "ulimit:memlock=-1"),
    ("Ulimits", [{"Name": "memlock", "Soft": 1, "Hard": 2}], "ulimit:memlock=1:2"),
    ("PidsLimit", 0, "pids:unlimited"),
    ("PidsLimit", -1, "pids:unlimited"),
    ("MemorySwap", -1, "swap:-1"),
    ("RestartPolicy", {"Name": "always"}, "restart:always:0"),
    ("LogConfig", {"Type": "json-file", "Config": {}}, "log:json-file"),
    ("LogConfig", None, "log:None"),
    ("AutoRemove", True, "field:AutoRemove"),
    ("VolumesFrom", ["x"], "field:VolumesFrom"),
    ("VolumeDriver", "nfs", "field:VolumeDriver"),
    ("Links", ["x:y"], "field:Links"),
    ("Cgroup", "container:x", "field:Cgroup"),
    ("CgroupParent", "/", "field:CgroupParent"),
    ("OomScoreAdj", -1000, "field:OomScoreAdj"),
    ("OomKillDisable", True, "field:OomKillDisable"),
    ("Runtime", "kata", "field:Runtime"),
    ("CpuRealtimeRuntime", 950000, "field:CpuRealtimeRuntime"),
    ("BlkioWeight", 1000, "field:BlkioWeight"),
    ("StorageOpt", {"size": "1t"}, "field:StorageOpt"),
    ("Dns", ["8.8.8.8"], "field:Dns"),
    ("Annotations", {"io.x": "1"}, "field:Annotations"),
    ("SomethingNew", "on", "field:SomethingNew"),
)  # fmt: skip


@pytest.mark.parametrize(("field", "value", "right"), PLANTED)
def test_a_right_planted_in_the_host_config_is_found(field: str, value: Any, right: str) -> None:
    """In an otherwise honest request."""
    job = plan()
    request = sent(job)
    assert ungranted(request, job) == ()

    request["HostConfig"][field] = value

    assert right in ungranted(request, job)


@pytest.mark.parametrize(
    ("field", "value", "right"),
    [
        ("User", "", "user:root"),
        ("User", "0:0", "user:root"),
        ("User", "root", "user:root"),
        ("User", "1000", "user:1000"),
        ("User", "daemon", "user:daemon"),
        ("User", "1000:0", "group:0"),
        ("Volumes", {"/": {}}, "field:Volumes"),
        ("NetworkingConfig", {"EndpointsConfig": {"lan": {"Links": ["x"]}}}, "field:NetworkingConfig"),
        ("MacAddress", "02:42:ac:11:00:02", "field:MacAddress"),
        ("Healthcheck", {"Test": ["CMD", "true"]}, "healthcheck:['CMD', 'true']"),
        ("Healthcheck", {}, "healthcheck:of the image"),
        ("Healthcheck", None, "healthcheck:of the image"),
        ("Env", ["LD_PRELOAD=/x.so"], "env-from:LD_PRELOAD"),
        ("Env", ["HOME=/root"], "env:HOME"),
    ],
)  # fmt: skip
def test_a_right_planted_beside_the_host_config_is_found(
    field: str, value: Any, right: str
) -> None:
    job = plan()

    assert right in ungranted({**sent(job), field: value}, job)


@pytest.mark.parametrize(
    "change",
    [
        {"BindOptions": {"Propagation": "rshared"}},
        {"BindOptions": {"Propagation": "rprivate", "NonRecursive": True}},
        {"VolumeOptions": {"DriverConfig": {"Options": {"device": "/"}}}},
        {"Source": "/etc"},
        {"Type": "volume"},
    ],
)
def test_a_mount_is_known_by_all_that_it_says(change: dict[str, Any]) -> None:
    """A target that is granted does not excuse another source, propagation or driver."""
    job = plan()
    request = sent(job)
    (mount,) = request["HostConfig"]["Mounts"]
    before = copy.deepcopy(mount)

    mount |= change

    assert mount != before
    assert [right for right in ungranted(request, job) if right.startswith("mount:{")]


def test_an_empty_value_is_no_right() -> None:
    """As engines and libraries fill them in."""
    job = plan()
    request = sent(job)

    request["HostConfig"] |= {"VolumesFrom": None, "Links": [], "OomScoreAdj": 0, "Runtime": ""}

    assert ungranted(request, job) == ()


def test_writing_covers_reading_and_not_the_other_way() -> None:
    job = plan({"mounts": [{"source": "/srv/a", "target": "/a", "mode": "rw"},
                           {"source": "/srv/b", "target": "/b"}]})  # fmt: skip
    request = sent(job)

    for mount in request["HostConfig"]["Mounts"]:
        mount["ReadOnly"] = not mount["ReadOnly"]

    assert ungranted(request, job) == ("mount:/b:rw",)


def test_a_narrow_rule_covers_its_capability_and_no_other() -> None:
    job = plan(privileges("seccomp:+mempolicy"))
    request = sent(job)

    request["HostConfig"]["CapAdd"] = ["SYS_NICE", "SYS_PTRACE"]

    assert ungranted(request, job) == ("cap:SYS_PTRACE",)


def test_the_callers_value_for_a_name_that_the_plan_sets_too_is_granted_by_env_from() -> None:
    job = plan({"container": {"env_from": ["HOME"]}})
    request = create_request(job, role="workload", secrets={"HOME": "/home/me"})
    probe = create_request(job, role="probe", secrets={"HOME": "/home/me"})

    assert "HOME=/home/me" in request["Env"]
    assert "env-from:HOME" in rights_of(request, job)
    assert ungranted(request, job) == ()
    assert f"HOME={dict(job.env)['HOME']}" in probe["Env"]
    assert ungranted(probe, job) == ()


def test_another_value_for_a_name_that_is_not_the_callers_is_not_granted() -> None:
    job = plan()
    request = sent(job)

    request["Env"] = ["HOME=/home/me"]

    assert ungranted(request, job) == ("env:HOME",)
