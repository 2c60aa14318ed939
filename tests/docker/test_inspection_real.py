"""The inspection before the start, against engines that record something else than what was asked for."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.docker.engine_proxy import CREATE, INFO, Change, engine_proxy
from tests.docker.jobs import Jobs
from tests.docker.spare_engine import spare_engine
from tests.workspace import Workspace, left_behind

MEMLOCK = {"Name": "memlock", "Soft": 65536, "Hard": 65536}


def in_host_config(**fields: Any) -> Change:
    """Return a change of a create request that sets fields of its HostConfig."""

    def change(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "HostConfig": {**body["HostConfig"], **fields}}

    return change


WEAKER: dict[str, Change] = {
    "HostConfig.CapAdd": in_host_config(CapAdd=["SYS_ADMIN"]),
    "HostConfig.CapDrop": in_host_config(CapDrop=[]),
    "HostConfig.SecurityOpt": in_host_config(SecurityOpt=[]),
    "HostConfig.ReadonlyRootfs": in_host_config(ReadonlyRootfs=False),
    "HostConfig.PidMode": in_host_config(PidMode="host"),
    "HostConfig.IpcMode": in_host_config(IpcMode="host"),
    "HostConfig.Binds": in_host_config(Binds=["/:/host:ro"]),
    "HostConfig.MaskedPaths": in_host_config(MaskedPaths=[], ReadonlyPaths=[]),
    "HostConfig.Privileged": in_host_config(Privileged=True),
    "Config.User": lambda body: {**body, "User": "0:0"},
}


@pytest.mark.parametrize("field", WEAKER)
def test_a_weaker_container_is_removed_unstarted(
    engine: docker.DockerClient, jobs: Jobs, field: str
) -> None:
    """As if a plugin or a library had changed the request on its way: the field is named, nothing runs."""
    with engine_proxy(requests={CREATE: WEAKER[field]}) as proxy:
        done = jobs.launch(jobs.tiny, "--", "echo", "ran", env={"DOCKER_HOST": proxy.address})

    assert (done.returncode, done.stdout) == (125, "")
    assert "error[container-mismatch]: " in done.stderr
    assert f"  {field}: " in done.stderr
    assert left_behind(engine, jobs.workspace) == []


def test_a_stricter_container_runs(jobs: Jobs) -> None:
    """Less memory, fewer processes, a group less, more of /proc masked: none of it is a reason to refuse."""

    def stricter(body: dict[str, Any]) -> dict[str, Any]:
        config = body["HostConfig"]
        masked = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/scsi",
                  "/proc/timer_list", "/proc/sched_debug", "/sys/firmware", "/proc/interrupts"]  # fmt: skip
        change = in_host_config(
            Memory=config["Memory"] // 2,
            MemorySwap=config["MemorySwap"] // 2,
            PidsLimit=config["PidsLimit"] // 2,
            ShmSize=config["ShmSize"] // 2,
            MaskedPaths=masked,
        )
        changed: dict[str, Any] = change(body)
        return changed

    with engine_proxy(requests={CREATE: stricter}) as proxy:
        done = jobs.launch(jobs.tiny, "--", "echo", "ran", env={"DOCKER_HOST": proxy.address})

    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_a_proxy_that_changes_nothing_changes_nothing(jobs: Jobs) -> None:
    """What the other tests see is due to their changes."""
    with engine_proxy(requests={CREATE: lambda body: body}) as proxy:
        done = jobs.launch(
            jobs.tiny, "-i", "--", "cat", input="through", env={"DOCKER_HOST": proxy.address}
        )

    assert (done.returncode, done.stdout) == (0, "through")


@pytest.fixture(scope="module")
def strict_daemon(tiny_image: str) -> Iterator[str]:
    """A daemon that limits more by default than we ask for, and one thing that we did not ask for."""
    with spare_engine(
        {
            "default-ulimits": {"memlock": MEMLOCK},
            "default-shm-size": "16M",
            "default-ipc-mode": "private",
            "init": True,
            "no-new-privileges": True,
        }
    ) as address:
        yield address


def containers(address: str) -> list[Any]:
    client = docker.DockerClient(base_url=address)
    try:
        return list(client.api.containers(all=True))
    finally:
        client.close()


def test_a_daemons_own_ulimits_are_refused_with_the_way_out(strict_daemon: str, jobs: Jobs) -> None:
    """Seen in inspect; the hint is the line to write."""
    done = jobs.launch(jobs.tiny, "--", "echo", "ran", env={"DOCKER_HOST": strict_daemon})

    assert (done.returncode, done.stdout) == (125, "")
    assert "error[container-mismatch]: " in done.stderr
    assert "HostConfig.Ulimits: " in done.stderr
    assert 'grant = "ulimit:memlock=65536:65536"' in done.stderr
    assert containers(strict_daemon) == []


def test_a_daemon_that_is_merely_stricter_is_used(
    strict_daemon: str, workspace: Workspace, tiny_image: str
) -> None:
    """With the ulimit written down: its other defaults take nothing that we need."""
    profile = workspace.profile(
        tiny_image,
        '[[privileges]]\ngrant = "ulimit:memlock=65536:65536"\nreason = "the site limits it"\n',
    )
    done = workspace.rocmrun(
        "launch", profile, "--no-probe", "--", "sh", "-c", "ulimit -l; df -k /dev/shm | tail -1",
        env={"DOCKER_HOST": strict_daemon},
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "64"
    assert str(1024 * 1024) in done.stdout.splitlines()[1]


@pytest.fixture(scope="module")
def other_runtime(tiny_image: str) -> Iterator[str]:
    """A daemon whose containers run in another runtime unless they say otherwise."""
    runc = shutil.which("runc")
    if runc is None:
        pytest.skip("runc is not on the PATH: there is nothing to give another name to")
    settings = {"runtimes": {"other": {"path": runc}}, "default-runtime": "other"}
    with spare_engine(settings) as address:
        yield address


def test_another_default_runtime_is_refused_by_what_the_engine_says(
    other_runtime: str, jobs: Jobs
) -> None:
    """Before anything is created; `plan` shows the container and says that launch will not start it."""
    env = {"DOCKER_HOST": other_runtime}
    launched = jobs.launch(jobs.tiny, "--", "echo", "ran", env=env)
    planned = jobs.rocmrun("plan", jobs.tiny, "--json", env=env, check=True)

    assert (launched.returncode, launched.stdout) == (125, "")
    assert "error[engine-unsuitable]: the engine's default runtime is other" in launched.stderr
    assert any(
        note.startswith("launch will refuse this engine: the engine's default runtime is other")
        for note in json.loads(planned.stdout)["plan"]["notes"]
    )


def test_another_default_runtime_is_refused_by_what_the_engine_records(
    other_runtime: str, jobs: Jobs
) -> None:
    """Where /info does not tell: inspect has the runtime that the container would get."""

    def hide(info: dict[str, Any]) -> dict[str, Any]:
        return {**info, "DefaultRuntime": "runc"}

    with engine_proxy(engine=other_runtime.removeprefix("unix://"), answers={INFO: hide}) as proxy:
        done = jobs.launch(jobs.tiny, "--", "echo", "ran", env={"DOCKER_HOST": proxy.address})

    assert (done.returncode, done.stdout) == (125, "")
    assert "error[container-mismatch]: " in done.stderr
    assert "  HostConfig.Runtime: " in done.stderr
    assert containers(other_runtime) == []


def test_a_seccomp_profile_of_the_site_is_named(jobs: Jobs, tmp_path: Path) -> None:
    """Inspect never shows it, and inside it is a filter like any other: only /info tells."""
    path = tmp_path / "seccomp.json"
    refused = {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}
    path.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [refused]}))
    look = "grep Seccomp: /proc/self/status; mkdir /tmp/made || echo refused"
    with spare_engine({"seccomp-profile": str(path)}) as address:
        env = {"DOCKER_HOST": address}
        done = jobs.launch(jobs.tiny, "--", "sh", "-c", look, env=env)
        planned = jobs.rocmrun("plan", jobs.tiny, "--json", env=env, check=True)
    words = f"the engine's default seccomp profile is the site's own ({path})"

    assert done.returncode == 0, done.stderr
    assert f"warning: {words}" in done.stderr
    assert done.stdout.split() == ["Seccomp:", "2", "refused"]
    assert any(note.startswith(words) for note in json.loads(planned.stdout)["plan"]["notes"])
