"""What a container gets when the profile asks for nothing: seen from inside, and from the engine's record."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from rocmrun.core import baseline
from tests.docker.inside import GID, UID, look, workspace_at
from tests.docker.jobs import Jobs
from tests.workspace import left_behind

MIB = 1024**2
REGISTRY = "127.0.0.1:5055"

# Nodes that the engine gives every container; /dev/tty opens only where there is a terminal.
STANDARD_NODES = {
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
    "/dev/pts/ptmx",
}

TABLES = """
[container]
memory = "512MiB"
shm_size = "48MiB"
pids = 77
tmpfs = { "/scratch" = "16MiB" }
"""


@dataclass(frozen=True)
class Launched:
    """One launch: the workload's own view, the engine's record of it, and the plan."""

    seen: dict[str, Any]
    record: dict[str, Any]
    plan: dict[str, Any]


@pytest.fixture(scope="module")
def launched(
    engine: docker.DockerClient, python_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Launched]:
    """A container of a profile with sizes and nothing else."""
    workspace = workspace_at(tmp_path_factory.mktemp("baseline"))
    profile = workspace.profile(python_image, TABLES)
    name = f"rocmrun-baseline-{workspace.token}"
    seen = look(
        workspace,
        profile,
        "--keep",
        "--name",
        name,
        write=["/", "/usr", "/etc", "/tmp", "/scratch", "/dev/shm", baseline.HOME],
        run=["/tmp", "/scratch", "/dev/shm"],
        connect=[REGISTRY, "192.0.2.1:80"],
        size=["/tmp", "/scratch", "/dev/shm"],
    )
    record = engine.api.inspect_container(name)
    plan = json.loads(workspace.rocmrun("plan", profile, "--json", check=True).stdout)["plan"]
    yield Launched(seen=seen, record=record, plan=plan)
    left_behind(engine, workspace)


def test_no_capability_in_any_set(launched: Launched) -> None:
    """Not even in the bounding set: no program can bring one back."""
    sets = {
        name: launched.seen["status"][name]
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    }

    assert dict.fromkeys(sets, "0" * 16) == sets


def test_no_new_privileges_and_a_seccomp_filter(launched: Launched) -> None:
    """setuid programs gain nothing, and the engine's filter is in force (mode 2)."""
    status = launched.seen["status"]

    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_runs_as_a_number_that_is_not_root(launched: Launched) -> None:
    """The caller's, or 65532 for plain root, in every id that a process has."""
    assert launched.seen["uids"] == [UID] * 3
    assert launched.seen["gids"] == [GID] * 3
    assert launched.seen["groups"] == [GID]


@pytest.mark.parametrize("folder", ["/", "/usr", "/etc"])
def test_the_image_cannot_be_written(launched: Launched, folder: str) -> None:
    """Read-only for the mount, not merely closed to this user."""
    assert launched.seen["write"][folder] == "EROFS"


@pytest.mark.parametrize("path", ["/", "/sys", "/proc/sys", "/proc/bus", "/proc/irq"])
def test_the_image_and_the_kernels_settings_are_mounted_read_only(
    launched: Launched, path: str
) -> None:
    """As the kernel lists the mounts."""
    assert "ro" in launched.seen["mounts"][path]


@pytest.mark.parametrize("folder", ["/tmp", "/scratch", "/dev/shm", baseline.HOME])
def test_what_a_job_writes_to_is_writable(launched: Launched, folder: str) -> None:
    """Temporary files, scratch space, shared memory and HOME."""
    assert launched.seen["write"][folder] == "ok"


def test_programs_run_from_tmp_alone(launched: Launched) -> None:
    """Compiled extensions are loaded from /tmp; other memory file systems are noexec."""
    assert launched.seen["run"] == {"/tmp": "ok", "/scratch": "EACCES", "/dev/shm": "EACCES"}


@pytest.mark.parametrize("folder", ["/tmp", "/scratch", "/dev/shm"])
def test_no_setuid_and_no_device_nodes_on_a_tmpfs(launched: Launched, folder: str) -> None:
    """As mounted, whatever was asked for."""
    assert {"nosuid", "nodev", "rw"} <= set(launched.seen["mounts"][folder])


def test_memory_file_systems_have_a_size(launched: Launched) -> None:
    """As the profile says; /tmp is an eighth of memory and at least 256 MiB."""
    assert launched.seen["size"] == {"/tmp": 256 * MIB, "/scratch": 16 * MIB, "/dev/shm": 48 * MIB}


def test_no_device_node_beyond_the_engines_own(launched: Launched) -> None:
    """No GPU was selected, so there is no /dev/dri and no /dev/kfd."""
    assert set(launched.seen["nodes"]) == STANDARD_NODES


def test_no_network(launched: Launched) -> None:
    """Loopback of its own alone: neither the host's loopback nor anything beyond."""
    seen = launched.seen
    own = [
        name
        for name in seen["interfaces"]
        if not name.startswith(
            ("tunl", "sit", "ip6tnl", "gre", "erspan", "ip_vti", "ip6_vti", "ip6gre")
        )
    ]

    assert own == ["lo"]
    assert seen["connect"] == {REGISTRY: "ECONNREFUSED", "192.0.2.1:80": "ENETUNREACH"}


@pytest.mark.parametrize("name", ["cgroup", "ipc", "mnt", "net", "pid", "uts"])
def test_namespaces_are_its_own(launched: Launched, name: str) -> None:
    """None is the host's: the kernel's numbers differ."""
    assert launched.seen["namespaces"][name] != str(Path(f"/proc/self/ns/{name}").readlink())


def test_it_sees_only_itself(launched: Launched) -> None:
    """Processes of the init and the workload, and its own cgroup as the root of all."""
    assert launched.seen["pid1"] == "docker-init"
    assert len(launched.seen["processes"]) == 2
    assert {"/"} == set(launched.seen["cgroup"])


def test_limits_of_processes_and_memory(launched: Launched) -> None:
    """As the cgroup has them."""
    assert ("77", str(512 * MIB)) == (launched.seen["pids"], launched.seen["memory"])


def test_no_core_dumps_and_as_many_files_as_planned(launched: Launched) -> None:
    """The plan lowers the number of files to what this host allows, and says so."""
    planned = {limit["name"]: [limit["soft"], limit["hard"]] for limit in launched.plan["ulimits"]}

    assert launched.seen["limits"]["CORE"] == [0, 0]
    assert planned["nofile"] == launched.seen["limits"]["NOFILE"]


def test_a_home_and_a_name_without_a_passwd_entry(launched: Launched) -> None:
    """Libraries ask for them before they do anything."""
    environment = launched.seen["env"]

    assert tuple(environment[name] for name in ("HOME", "USER", "LOGNAME", "TMPDIR")) == (
        baseline.HOME,
        "rocmrun",
        "rocmrun",
        "/tmp",
    )


def test_every_cache_is_below_home(launched: Launched) -> None:
    """Where each library looks, on the directory that survives the container."""
    environment = launched.seen["env"]

    assert {name: f"{baseline.HOME}/{path}" for name, path in baseline.CACHE_VARIABLES.items()} == {
        name: environment.get(name) for name in baseline.CACHE_VARIABLES
    }
    assert "rw" in launched.seen["mounts"][baseline.HOME]


def test_libraries_are_told_that_there_is_no_network(launched: Launched) -> None:
    """So that they neither search nor wait for one."""
    environment = launched.seen["env"]
    expected = baseline.OFFLINE_VARIABLES | {"NCCL_IB_DISABLE": "1"}

    assert expected == {name: environment.get(name) for name in expected}


def test_the_host_name_resolves_to_loopback(launched: Launched) -> None:
    """torchrun asks for it and hangs without an answer."""
    assert (launched.seen["hostname"], launched.seen["resolved"]) == ("rocmrun", "127.0.0.1")


def test_the_cache_belongs_to_the_container_user_alone(launched: Launched) -> None:
    """0700, so that no other user of the host can plant a compiled kernel."""
    (cache,) = (
        mount for mount in launched.record["Mounts"] if mount["Destination"] == baseline.HOME
    )
    state = Path(cache["Source"]).stat()

    assert (state.st_mode, state.st_uid, state.st_gid) == (0o40700, UID, GID)


def test_under_sudo_it_is_the_one_who_typed_it(jobs: Jobs) -> None:
    """Not root and not nobody: files that the job writes belong to a person, and so does the cache."""
    environment = {"SUDO_UID": "1234", "SUDO_GID": "2345"}
    if os.geteuid() != 0:
        pytest.skip("these variables count for root alone")
    seen = look(jobs.workspace, jobs.python, env=environment, write=[baseline.HOME])

    assert (seen["uids"], seen["gids"]) == ([1234] * 3, [2345] * 3)
    assert seen["write"] == {baseline.HOME: "ok"}


def test_the_engine_recorded_the_same(launched: Launched) -> None:
    """Every field that bears a right, as inspect shows it."""
    config = launched.record["HostConfig"]
    expected = {
        "AutoRemove": False,
        "Binds": None,
        "CapAdd": None,
        "CapDrop": ["ALL"],
        "CgroupnsMode": "private",
        "DeviceCgroupRules": None,
        "DeviceRequests": None,
        "Devices": [],
        "ExtraHosts": ["rocmrun:127.0.0.1"],
        "GroupAdd": None,
        "Init": True,
        "IpcMode": "private",
        "Memory": 512 * MIB,
        "MemorySwap": 512 * MIB,
        "NetworkMode": "none",
        "PidMode": "",
        "PidsLimit": 77,
        "PortBindings": {},
        "Privileged": False,
        "ReadonlyRootfs": True,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "SecurityOpt": ["no-new-privileges:true"],
        "ShmSize": 48 * MIB,
        "Sysctls": {},
        "UTSMode": "",
        "UsernsMode": "",
        "VolumesFrom": None,
    }
    found = {name: config.get(name) for name in expected}

    assert {name: value or None for name, value in expected.items()} == {
        name: value or None for name, value in found.items()
    }
    assert {"/tmp", "/scratch"} == set(config["Tmpfs"])
    assert {"/proc/kcore", "/sys/firmware"} <= set(config["MaskedPaths"])
    assert {"/proc/sys", "/proc/sysrq-trigger"} <= set(config["ReadonlyPaths"])
    assert launched.record["Config"]["User"] == f"{UID}:{GID}"


def test_it_carries_the_labels_that_clean_and_the_gpu_guard_read(launched: Launched) -> None:
    """Which run, which role, which plan, and which image."""
    labels = launched.record["Config"]["Labels"]

    assert labels["io.rocmrun.role"] == "workload"
    assert labels["io.rocmrun.keep"] == "1"
    assert {
        "io.rocmrun.run",
        "io.rocmrun.plan",
        "io.rocmrun.controller",
        "io.rocmrun.digest",
    } <= set(labels)
    assert launched.plan["image"]["digest"] == labels["io.rocmrun.digest"]
