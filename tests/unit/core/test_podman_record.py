"""Podman's two records of one container as one in Docker's words, compared with what was asked for."""

from typing import Any

import pytest

from rocmrun.core.create_request import create_request
from rocmrun.core.inspection import differences, weaker
from rocmrun.core.plan import Plan
from rocmrun.core.podman_record import in_dockers_words
from tests.builders import PODMAN, host, plan, privileges

MOUNTS = {
    "mounts": [
        {"source": "/srv/models", "target": "/models"},
        {"source": "/srv/data", "target": "/data", "mode": "rw", "selinux": "private"},
        {"type": "volume", "source": "vol", "target": "/vol"},
    ]
}
# What Podman 4.3.1 answers of a container with nothing of Docker's default set left.
DEFAULT_SET = [
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
]  # fmt: skip


def on_podman(profile: dict[str, Any] | None = None) -> Plan:
    return plan(profile, engine=PODMAN, host=host(nproc_limit=99))


def answers(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return how Podman records *request*, in Docker's form and in its own."""
    sent = request["HostConfig"]
    mounts = [
        *(_mount(m["Type"], m["Source"], m["Target"], not m["ReadOnly"]) for m in sent["Mounts"]),
        *(_bound(*text.split(":")) for text in sent["Binds"]),
    ]
    config = {
        **{
            name: sent[name]
            for name in ("Memory", "MemorySwap", "PidsLimit", "ShmSize", "NanoCpus")
        },
        "Binds": [f"{m['Source']}:{m['Destination']}:rprivate,bind" for m in mounts],
        "CapAdd": [],
        "CapDrop": DEFAULT_SET,
        "CgroupnsMode": "",
        "Devices": sent["Devices"],
        "ExtraHosts": sent["ExtraHosts"],
        "GroupAdd": sent["GroupAdd"],
        "Init": True,
        "IpcMode": "shareable",
        "LogConfig": {"Type": "json-file", "Config": None},
        "MaskedPaths": None,
        "Mounts": None,
        "NetworkMode": sent["NetworkMode"],
        "PidMode": "private",
        "ReadonlyRootfs": True,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "Runtime": "oci",
        "SecurityOpt": ["no-new-privileges"],
        "Tmpfs": {
            target: f"{text.removesuffix(',notmpcopyup')},rprivate"
            for target, text in sent["Tmpfs"].items()
        },
        "Ulimits": [
            {**limit, "Name": f"RLIMIT_{limit['Name'].upper()}"} for limit in sent["Ulimits"]
        ],
        "UTSMode": "private",
    }
    record = {
        "Path": "/run/podman-init",
        "Args": ["--", "python3", "-c", "pass"],
        "Image": request["Image"],
        "Config": {name: value for name, value in request.items() if name != "HostConfig"},
        "HostConfig": config,
        "Mounts": mounts,
    }
    own = {
        "BoundingCaps": None,
        "EffectiveCaps": None,
        "OCIRuntime": "crun",
        "HostConfig": {
            "CgroupMode": "private",
            "LogConfig": {"Type": "k8s-file", "Config": None, "Size": "104.9MB"},
        },
    }
    return record, own


def _mount(kind: str, source: str, target: str, writable: bool, mode: str = "") -> dict[str, Any]:  # noqa: FBT001  # one line each
    named = {"Name": source, "Source": f"/var/lib/volumes/{source}"}
    return {
        "Type": kind,
        **(named if kind == "volume" else {"Source": source}),
        "Destination": target,
        "Mode": mode,
        "RW": writable,
        "Propagation": "rprivate",
    }


def _bound(source: str, target: str, words: str) -> dict[str, Any]:
    access, label, _ = words.split(",")
    return _mount("bind", source, target, access == "rw", label)


def request_of(made: Plan) -> dict[str, Any]:
    return create_request(made, role="workload", keep_log=True)


@pytest.mark.parametrize("changes", [{}, MOUNTS, {"container": {"cpus": 1.5}}])
def test_what_podman_records_is_what_was_asked_for(changes: dict[str, Any]) -> None:
    """Every field, in either form of a mount, and the log's size in Podman's four digits."""
    request = request_of(on_podman(changes))
    record, own = answers(request)
    if cpus := request["HostConfig"]["NanoCpus"]:
        record["HostConfig"] |= {"CpuPeriod": 100_000, "CpuQuota": cpus // 10_000}

    assert differences(request, in_dockers_words(record, own)) == ()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("CapAdd", {"BoundingCaps": ["CAP_NET_RAW"]}),
        ("CapAdd", {"EffectiveCaps": ["CAP_SYS_ADMIN"]}),
        ("Runtime", {"OCIRuntime": "/usr/bin/runsc"}),
        ("CgroupnsMode", {"HostConfig": {"CgroupMode": "host"}}),
        ("LogConfig", {"HostConfig": {"LogConfig": {"Type": "k8s-file", "Size": "0B"}}}),
        ("LogConfig", {"HostConfig": {"LogConfig": {"Type": "k8s-file", "Size": "105.1MB"}}}),
        ("LogConfig", {"HostConfig": {"LogConfig": {"Type": "journald", "Size": "104.9MB"}}}),
    ],
)
def test_more_than_was_asked_for_shows(field: str, change: dict[str, Any]) -> None:
    """What only Podman's own record has is judged like everything else."""
    request = request_of(on_podman())
    record, own = answers(request)
    nested = {**own["HostConfig"], **change.get("HostConfig", {})}

    found = differences(request, in_dockers_words(record, {**own, **change, "HostConfig": nested}))

    assert [(each.field, each.verdict) for each in found] == [(f"HostConfig.{field}", "weaker")]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("IpcMode", {"IpcMode": "host"}),
        ("Tmpfs", {"Tmpfs": {"/run": "rw,nosuid,nodev,tmpcopyup,rprivate"}}),
        ("Ulimits", {"Ulimits": [{"Name": "RLIMIT_MEMLOCK", "Soft": -1, "Hard": -1}]}),
        ("CpuQuota", {"CpuPeriod": 0, "CpuQuota": 50_000}),
        ("PidMode", {"PidMode": "host"}),
    ],
)
def test_what_dockers_form_has_is_not_smoothed_over(field: str, change: dict[str, Any]) -> None:
    request = request_of(on_podman())
    record, own = answers(request)
    record["HostConfig"] |= change

    found = differences(request, in_dockers_words(record, own))

    assert [(each.field, each.verdict) for each in found] == [(f"HostConfig.{field}", "weaker")]


def test_without_its_own_record_of_capabilities_the_answer_stays() -> None:
    """A Podman that tells less than 4.3 is refused, not trusted."""
    request = request_of(on_podman())
    record, own = answers(request)
    del own["BoundingCaps"]

    found = differences(request, in_dockers_words(record, own))

    assert [each.field for each in found] == ["HostConfig.CapDrop"]


def test_a_mount_that_nobody_asked_for_shows() -> None:
    request = request_of(on_podman())
    record, own = answers(request)
    record["Mounts"].append(_mount("bind", "/etc", "/host", writable=True))

    found = {each.field for each in differences(request, in_dockers_words(record, own))}

    assert found == {"HostConfig.Mounts", "Mounts[/host]"}


def test_permissions_of_devices_are_not_recorded() -> None:
    """Which nodes there are is; what may be done with them is left to the device cgroup, which the probe tries."""
    request = request_of(on_podman())
    record, own = answers(request)
    record["HostConfig"]["Devices"] = [
        {**device, "CgroupPermissions": ""} for device in record["HostConfig"]["Devices"]
    ]

    assert weaker(request, in_dockers_words(record, own)) == ()
    record["HostConfig"]["Devices"].append(
        {"PathOnHost": "/dev/sda", "PathInContainer": "/dev/sda", "CgroupPermissions": ""}
    )
    assert len(weaker(request, in_dockers_words(record, own))) == 1


def test_the_init_program_is_not_the_command() -> None:
    """Docker does not count it either."""
    record, own = answers(request_of(on_podman()))

    found = in_dockers_words(record, own)

    assert (found["Path"], found["Args"]) == ("python3", ["-c", "pass"])
    plain = in_dockers_words({**record, "Path": "sh", "Args": ["--"]}, own)
    assert (plain["Path"], plain["Args"]) == ("sh", ["--"])


def test_an_added_capability_is_what_is_left() -> None:
    """Asked for, bounding and in force: equal."""
    request = request_of(on_podman(privileges("cap:SYS_NICE")))
    record, own = answers(request)
    own |= {"BoundingCaps": ["CAP_SYS_NICE"], "EffectiveCaps": ["CAP_SYS_NICE"]}

    assert differences(request, in_dockers_words(record, own)) == ()
