"""The create request: every field of the baseline, what the probe must not have, and the same bytes each time."""

from typing import Any

import pytest
from hypothesis import given

from rocmrun.core.create_request import create_request, tmpfs_options
from rocmrun.core.plan import Plan, PlannedImage, PlannedTmpfs, canonical_json
from rocmrun.core.probing.protocol import bootstrap_command
from tests.builders import IMAGE_ID, SECCOMP, plan, privileges
from tests.strategies import examples, plans

SERVER: dict[str, Any] = {
    "container": {
        "network": "bridge",
        "ports": ["127.0.0.1:8000:8000", "[::1]:8001:8000", "0.0.0.0:53:53/udp"],
        "restart": "on-failure:3",
        "env_from": ["HF_TOKEN", "UNSET"],
    },
    "mounts": [
        {"source": "/srv/work", "target": "/work", "mode": "rw"},
        {"source": "/srv/labelled", "target": "/labelled", "mode": "rw", "selinux": "private"},
        {"source": "/srv/shared", "target": "/shared", "selinux": "shared"},
        {"type": "volume", "source": "data", "target": "/data", "mode": "rw"},
    ],
}
SECRETS = {"HF_TOKEN": "hf_secret", "OTHER": "never asked for"}


def workload(profile: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return create_request(plan(profile), role="workload", **options)


def probe(profile: dict[str, Any] | None = None) -> dict[str, Any]:
    return create_request(
        plan(profile), role="probe", command=bootstrap_command("python3"), secrets=SECRETS
    )


def test_the_baseline_field_by_field() -> None:
    config = workload()["HostConfig"]

    assert config == {
        "AutoRemove": False,
        "Binds": [],
        "CapAdd": [],
        "CapDrop": ["ALL"],
        "CgroupnsMode": "private",
        "CpusetCpus": "",
        "CpusetMems": "",
        "Devices": [
            {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"}
            for path in ("/dev/dri/renderD128", "/dev/kfd")
        ],
        "ExtraHosts": ["rocmrun:127.0.0.1"],
        "GroupAdd": ["44", "992"],
        "Init": True,
        "IpcMode": "private",
        "LogConfig": {"Type": "none", "Config": {}},
        "Memory": 61847527424,
        "MemorySwap": 61847527424,
        "Mounts": [
            {
                "Type": "bind",
                "Source": "/home/me/.cache/rocmrun/job/7f7f7f7f7f7f/gfx942/1000",
                "Target": "/home/rocmrun",
                "ReadOnly": False,
                "BindOptions": {"Propagation": "rprivate"},
            }
        ],
        "NanoCpus": 0,
        "NetworkMode": "none",
        "PidMode": "",
        "PidsLimit": 4096,
        "Privileged": False,
        "ReadonlyRootfs": True,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "SecurityOpt": ["no-new-privileges:true"],
        "ShmSize": 2147483648,
        "Sysctls": {},
        "Tmpfs": {
            "/tmp": "rw,nosuid,nodev,exec,size=7730940928,mode=1777,uid=1000,gid=1000",
        },
        "UTSMode": "",
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "nofile", "Soft": 65536, "Hard": 65536},
        ],
    }  # fmt: skip


@examples(60)
@given(plans())
def test_one_plan_gives_the_same_bytes(plan: Plan) -> None:
    """And no role reaches into the other's request."""
    one = canonical_json(create_request(plan, role="workload", secrets=SECRETS))
    create_request(plan, role="probe")["HostConfig"]["Mounts"].clear()

    assert one == canonical_json(create_request(plan, role="workload", secrets=SECRETS))


def test_a_server_publishes_restarts_and_gets_its_secrets() -> None:
    request = workload(SERVER, secrets=SECRETS, keep_log=True)

    config = request["HostConfig"]
    assert config["PortBindings"] == {
        "53/udp": [{"HostIp": "0.0.0.0", "HostPort": "53"}],
        "8000/tcp": [
            {"HostIp": "127.0.0.1", "HostPort": "8000"},
            {"HostIp": "::1", "HostPort": "8001"},
        ],
    }
    assert request["ExposedPorts"] == {"53/udp": {}, "8000/tcp": {}}
    assert config["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 3}
    assert "HF_TOKEN=hf_secret" in request["Env"]
    assert not [entry for entry in request["Env"] if entry.startswith(("UNSET", "OTHER"))]
    assert config["LogConfig"] == {
        "Type": "json-file",
        "Config": {"max-file": "1", "max-size": "104857600"},
    }
    assert "Hostname" not in request


def test_the_probe_gets_no_port_no_restart_and_no_secret() -> None:
    request = probe(SERVER)

    assert "ExposedPorts" not in request
    assert "PortBindings" not in request["HostConfig"]
    assert request["HostConfig"]["RestartPolicy"]["Name"] == "no"
    assert "hf_secret" not in canonical_json(request)


def test_the_probe_writes_nothing_of_the_host_and_has_no_cache() -> None:
    """A workload may have left a kernel in the cache that fakes the proof: HOME is in memory."""
    mine, its = workload(SERVER)["HostConfig"], probe(SERVER)["HostConfig"]

    assert {m["Target"]: m["ReadOnly"] for m in mine["Mounts"]} == {
        "/data": False, "/home/rocmrun": False, "/work": False,
    }  # fmt: skip
    assert {m["Target"]: m["ReadOnly"] for m in its["Mounts"]} == {
        "/data": True, "/work": True,
    }  # fmt: skip
    assert "/home/rocmrun" not in mine["Tmpfs"]
    assert its["Tmpfs"] == mine["Tmpfs"] | {
        "/home/rocmrun": mine["Tmpfs"]["/tmp"].replace("mode=1777", "mode=700")
    }
    assert mine["Binds"] == [
        "/srv/labelled:/labelled:rw,Z,rprivate",
        "/srv/shared:/shared:ro,z,rprivate",
    ]
    assert its["Binds"] == [
        "/srv/labelled:/labelled:ro,Z,rprivate",
        "/srv/shared:/shared:ro,z,rprivate",
    ]


def test_the_probes_input_can_be_closed_and_its_output_is_no_terminal() -> None:
    interactive = plan(interactive=True, tty=True)

    its = create_request(interactive, role="probe", command=("python3",))
    assert (its["OpenStdin"], its["StdinOnce"], its["AttachStdin"], its["Tty"]) == (
        True, True, True, False,
    )  # fmt: skip
    mine = create_request(interactive, role="workload")
    assert (mine["OpenStdin"], mine["StdinOnce"], mine["Tty"]) == (True, True, True)
    quiet = workload()
    assert (quiet["OpenStdin"], quiet["StdinOnce"], quiet["AttachStdin"], quiet["Tty"]) == (
        False, False, False, False,
    )  # fmt: skip


def test_the_command_of_the_probe_takes_the_place_of_the_images() -> None:
    request = create_request(plan(), role="probe", command=("python3", "-c", "1"))

    assert (request["Entrypoint"], request["Cmd"]) == (["python3"], ["-c", "1"])


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({}, {}),
        ({"entrypoint": []}, {"Entrypoint": []}),
        ({"entrypoint": ["a", "b"]}, {"Entrypoint": ["a", "b"]}),
        ({"command": ["c", "d"]}, {"Cmd": ["c", "d"]}),
        ({"command": []}, {}),
    ],
)
def test_what_is_not_said_is_the_images(
    container: dict[str, Any], expected: dict[str, Any]
) -> None:
    request = workload({"container": container})

    assert {key: request[key] for key in ("Entrypoint", "Cmd") if key in request} == expected


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (PlannedImage(ref="demo:1", digest="sha256:aa", image_id=IMAGE_ID), IMAGE_ID),
        (PlannedImage(ref="demo:1", digest="sha256:aa"), "sha256:aa"),
        (PlannedImage(ref="demo:1"), "demo:1"),
    ],
)
def test_the_image_is_named_as_exactly_as_it_is_known(image: PlannedImage, expected: str) -> None:
    request = create_request(plan().with_changes(image=image), role="workload")

    assert request["Image"] == expected


def test_every_grant_has_its_field() -> None:
    files = {"/etc/s.json": SECCOMP}
    grants = ("cap:SYS_PTRACE", "seccomp:/etc/s.json", "apparmor:unconfined", "label:disable",
              "nnp:off", "rootfs:rw", "masks:off", "ipc:host", "pid:host",
              "sysctl:net.core.somaxconn=1")  # fmt: skip
    made = plan(privileges(*grants), seccomp_files=files)

    config = create_request(made, role="workload")["HostConfig"]

    assert config["SecurityOpt"] == [
        f"seccomp={SECCOMP}", "apparmor=unconfined", "label=disable",
    ]  # fmt: skip
    assert (config["CapAdd"], config["ReadonlyRootfs"]) == (["SYS_PTRACE"], False)
    assert (config["MaskedPaths"], config["ReadonlyPaths"]) == ([], [])
    assert (config["IpcMode"], config["PidMode"]) == ("host", "host")
    assert "ShmSize" not in config
    assert config["Sysctls"] == {"net.core.somaxconn": "1"}


def test_limits_that_are_not_set_are_sent_as_none() -> None:
    config = create_request(plan().with_changes(memory_bytes=None), role="workload")["HostConfig"]

    assert (config["Memory"], config["MemorySwap"]) == (0, 0)
    assert workload({"container": {"cpus": 1.5}})["HostConfig"]["NanoCpus"] == 1_500_000_000


def test_labels_of_the_run_join_those_of_the_plan() -> None:
    labels = workload(labels={"io.rocmrun.run": "ab12"})["Labels"]

    assert list(labels) == sorted(labels)
    assert (labels["io.rocmrun.run"], labels["io.rocmrun.profile"]) == ("ab12", "job")


def test_a_tmpfs_belongs_to_the_user_inside() -> None:
    scratch = PlannedTmpfs(target="/scratch", size_bytes=4096, mode=0o700)

    assert tmpfs_options(scratch, plan()) == (
        "rw,nosuid,nodev,noexec,size=4096,mode=700,uid=1000,gid=1000"
    )
