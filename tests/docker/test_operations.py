"""Day two on a real engine: ps, logs, wait, stop, replace, health, units, and caches that are cleaned."""

import contextlib
import json
import re
import shlex
import socket
import threading
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.docker.derived_images import derived, profile_of
from tests.docker.engine_proxy import engine_proxy
from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.jobs import Jobs
from tests.docker.waiting import (
    PATIENCE_SECONDS,
    ended,
    exists,
    read_until,
    started,
    until,
)
from tests.hosts import FakeNode
from tests.workspace import PROGRAM, Workspace, left_behind

# It is well once it is ready, says something on both streams, and ends by its own code when it is asked to.
SERVER = (
    "trap 'echo bye; exit 7' TERM; echo one; echo two >&2; echo three; touch /tmp/ready; "
    "while :; do sleep 0.1; done"
)
WAIT = re.compile(r"POST (/v[\d.]+)?/containers/[0-9a-f]+/wait\b")
REMOVE = re.compile(r"DELETE (/v[\d.]+)?/containers/[0-9a-f]+\b")
RENAME = re.compile(r"POST (/v[\d.]+)?/containers/[0-9a-f]+/rename\b")
HEALTH = 'health = { command = ["test", "-e", "/tmp/ready"], interval = 1, timeout = 5 }'


def ps(workspace: Workspace, profile: str, *words: str) -> list[dict[str, Any]]:
    """Return what `rocmrun ps --json` says of a profile's workloads."""
    said = json.loads(workspace.rocmrun("ps", "--json", *words, check=True).stdout)
    return [each for each in said["workloads"] if each["profile"] == profile]


def serve(workspace: Workspace, profile: str, *words: str, command: str = SERVER) -> str:
    """Launch a server detached and return its name."""
    launch = ("launch", profile, "--no-probe", "--detach", *words, "--", "sh", "-c", command)
    return workspace.rocmrun(*launch, check=True).stdout.strip()


def test_a_detached_workload_from_start_to_end(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str
) -> None:
    """It gets healthy, its log is read and followed, somebody waits for it, and it is stopped: nothing is left."""
    run = workspace.rocmrun
    profile = workspace.profile(tiny_image, f"[container]\n{HEALTH}\nstop_timeout = 30\n")
    name = serve(workspace, profile)

    until(lambda: ps(workspace, profile)[0]["health"] == "healthy", "healthy")
    (found,) = ps(workspace, profile)
    assert (found["name"], found["state"], found["detached"]) == (name, "running", True)
    assert found["profile_file"] == f"{workspace.profiles}/{profile}.toml"
    table = run("ps", check=True).stdout
    assert any(line.startswith(name) and "(healthy)" in line for line in table.splitlines())

    log = run("logs", profile, check=True)
    assert (log.stdout, log.stderr) == ("one\nthree\n", "two\n")
    tail = run("logs", name, "--tail", "1", check=True)
    assert tail.stdout + tail.stderr in {"two\n", "three\n"}
    asked = threading.Event()
    with (
        engine_proxy(hold={WAIT: asked}) as proxy,
        started(run, "logs", "--follow", name) as following,
        started(run, "wait", profile, env={"DOCKER_HOST": proxy.address}) as waiting,
    ):
        read_until(following.stdout, b"three\n")
        assert proxy.held.wait(PATIENCE_SECONDS)
        asked.set()
        stopped = json.loads(run("stop", profile, "--json", check=True).stdout)
        assert ended(following)[1].endswith("bye\n")
        assert ended(waiting)[0] == 7

    assert stopped["stopped"] == [
        {"name": name, "exit_code": 7, "removed": True, "had_ended": False}
    ]
    assert not exists(engine, name)
    assert ps(workspace, profile, "--all") == []


def test_what_is_not_there_or_has_no_log(workspace: Workspace, jobs: Jobs) -> None:
    """Each command says so; only `wait`, which relays a workload's code, has a code apart."""
    run, name = jobs.rocmrun, jobs.new_name("foreground")
    found = {word: run(word, "no-such-workload") for word in ("logs", "stop", "wait")}
    assert {word: done.returncode for word, done in found.items()} == {
        "logs": 2, "stop": 2, "wait": 125,
    }  # fmt: skip
    assert all("error[workload-not-found]" in done.stderr for done in found.values())
    assert run("stop", "--missing-ok", "no-such-workload").returncode == 0

    with jobs.started(jobs.tiny, "--name", name, "--", "sh", "-c", SERVER) as process:
        until(lambda: any(each["name"] == name for each in ps(workspace, jobs.tiny)), "listed")
        nothing = run("logs", name)
        assert run("stop", name, check=True).stdout == f"{name}\n"
        # Its own rocmrun relays its code and removes it.
        assert ended(process)[0] == 7
    assert nothing.returncode == 2
    assert f"error[usage]: {name} has no log" in nothing.stderr


def test_the_log_of_a_detached_workload_stops_growing(
    workspace: Workspace, tiny_image: str
) -> None:
    """Older lines go; the last one is there, and it takes no more room than log_size."""
    size = 64 * 1024
    profile = workspace.profile(tiny_image, f"[container]\nlog_size = {size}\n")
    lines = (
        'i=0; while [ $i -lt 3000 ]; do echo "line $i of a workload that talks"; i=$((i+1)); done'
    )
    name = serve(workspace, profile, command=f"{lines}; echo last")
    assert workspace.rocmrun("wait", name).returncode == 0

    log = workspace.rocmrun("logs", name, check=True).stdout
    workspace.rocmrun("stop", name, check=True)

    assert log.endswith("last\n")
    assert "line 0 of" not in log
    assert len(log) < size


def test_a_workload_hands_over_and_takes_back(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str
) -> None:
    """A successor that ends at once, or cannot start, leaves the old one running; one that is up takes its name."""
    run = workspace.rocmrun
    profile = workspace.profile(tiny_image, "[container]\nstop_timeout = 5\n")
    name = f"server-{workspace.token}"
    serve(workspace, profile, "--name", name)
    old = engine.api.inspect_container(name)["Id"]
    words = ("launch", profile, "--no-probe", "--detach", "--replace")

    ends = run(*words, "--", "sh", "-c", "echo no model >&2; exit 3")
    # A file system in memory on top of a file: the engine sees that when it starts the container.
    tables = '[container.tmpfs]\n"/bin/busybox" = "1MiB"\n'
    broken = workspace.write(f'extends = "{profile}"\n{tables}', name="broken")
    cannot = run(words[0], broken, *words[2:], "--name", name, "--", "sh", "-c", SERVER)
    for failed in (ends, cannot):
        assert failed.returncode == 125
        assert f"rocmrun: started {name} again" in failed.stderr
    assert "error[workload-not-up]: the new workload ended at once with exit code 3" in ends.stderr
    assert "no model" in ends.stderr
    record = engine.api.inspect_container(name)
    assert (record["Id"], record["State"]["Running"]) == (old, True)

    assert serve(workspace, profile, "--replace") == name
    (found,) = ps(workspace, profile, "--all")
    assert (found["name"], found["container_id"] == old) == (name, False)
    run("stop", profile, check=True)
    assert left_behind(engine, workspace) == []


def test_a_successor_takes_the_port_over(
    workspace: Workspace, tiny_image: str, bridge: str
) -> None:
    """Both publish the same port; one that cannot have it gives it back; whoever replaces nobody is told at once."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ports = f'network = "bridge"\nports = ["127.0.0.1:{port}:8000"]\nstop_timeout = 5\n'
    profile = workspace.profile(tiny_image, f"[container]\n{ports}")
    answer = "exec nc -ll -p 8000 -e echo {}"

    name = serve(workspace, profile, command=answer.format("first"))
    until(lambda: said_on(port) == b"first\n", "the first one answers")
    # Before the proof, which this image without Python would fail.
    refused = workspace.rocmrun("launch", profile, "--detach")
    assert refused.returncode == 125
    assert "error[port-taken]: " in refused.stderr
    assert f"127.0.0.1:{port}/tcp: {name} (profile {profile}, Up " in refused.stderr
    assert f"hint: rocmrun stop {name}, or publish another port" in refused.stderr
    ends = ("launch", profile, "--no-probe", "--detach", "--replace", "--", "false")
    assert workspace.rocmrun(*ends).returncode == 125
    until(lambda: said_on(port) == b"first\n", "the first one answers again")
    serve(workspace, profile, "--replace", command=answer.format("second"))
    until(lambda: said_on(port) == b"second\n", "the second one answers")
    workspace.rocmrun("stop", profile, check=True)


@pytest.mark.cleans
def test_a_handover_that_is_killed_is_finished_by_the_next_command(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str
) -> None:
    """`ps` names what is left, the next `--replace` takes its place, and `clean` gives it its name."""
    run = workspace.rocmrun
    profile = workspace.profile(tiny_image, "[container]\nstop_timeout = 5\n")
    name = f"server-{workspace.token}"
    serve(workspace, profile, "--name", name)

    def killed_at(step: re.Pattern[str]) -> dict[str, Any]:
        words = ("--no-probe", "--detach", "--replace", "--", "sh", "-c", SERVER)
        with (
            engine_proxy(hold={step: threading.Event()}) as proxy,
            started(run, "launch", profile, *words, env={"DOCKER_HOST": proxy.address}) as process,
        ):
            assert proxy.held.wait(PATIENCE_SECONDS)
            process.kill()
            process.wait()
        (left,) = ps(workspace, profile)
        assert (left["successor_of"], left["cut_off"]) == (name, True)
        return left

    first = killed_at(REMOVE)
    warned = run("ps", check=True).stderr
    assert f"warning: {first['name']} was to become {name} when its launch was cut off" in warned
    assert exists(engine, name)
    second = killed_at(RENAME)
    assert [each["name"] for each in ps(workspace, profile, "--all")] == [second["name"]]

    cleaned = json.loads(run("clean", "--json", check=True).stdout)
    assert {"name": second["name"], "to": name} in cleaned["renamed"]
    (kept,) = ps(workspace, profile, "--all")
    assert kept["container_id"] == second["container_id"]
    assert (kept["name"], kept["state"], kept["cut_off"]) == (name, "running", False)
    run("stop", profile, check=True)


def said_on(port: int) -> bytes:
    """Return what a server says; nothing where none listens, or is still starting behind the engine's proxy."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=10) as client,
    ):
        return client.recv(100)
    return b""


def test_an_images_health_check_runs_only_where_it_is_asked_for(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str
) -> None:
    """Left alone it would run a command of the image inside, again and again, unseen in any plan."""
    changes = ['HEALTHCHECK --interval=1s CMD ["sh", "-c", "touch /tmp/checked"]']
    with derived(engine, tiny_image, changes) as image:
        silent = profile_of(workspace, image)
        health = "[container]\nhealth = { image = true, interval = 1 }\n"
        asked = workspace.write(f'extends = "{silent}"\n{health}', name="asked")
        plan = workspace.rocmrun("plan", silent, check=True).stdout
        name = serve(workspace, asked)
        until(lambda: ps(workspace, asked)[0]["health"] == "healthy", "healthy")
        workspace.rocmrun("stop", name, check=True)
        name = serve(workspace, silent)
        record = engine.api.inspect_container(name)
        workspace.rocmrun("stop", name, check=True)

    assert "the image's HEALTHCHECK is not run" in plan
    assert record["Config"]["Healthcheck"]["Test"] == ["NONE"]
    assert "Health" not in record["State"]


def words_of(unit: str, setting: str) -> list[str]:
    """Return what one of a unit's commands gives to rocmrun; quoting of systemd's own is not needed here."""
    (line,) = [line for line in unit.splitlines() if line.startswith(f"{setting}=")]
    program, *words = shlex.split(line.partition("=")[2].removeprefix("-"))
    assert program == str(PROGRAM)
    return words


def test_the_commands_of_a_unit_as_they_are_written(
    engine: docker.DockerClient, workspace: Workspace, demo_image: str, tmp_path: Path
) -> None:
    """A service manager hears of planning, probing and readiness; the container hears of none of it."""
    command = json.dumps(["sh", "-c", SERVER])
    profile = workspace.profile(demo_image, f"[container]\ncommand = {command}\n")
    unit = workspace.rocmrun("profiles", "unit", profile, check=True).stdout
    name = f"rocmrun-{profile}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        heard: list[str] = []

        def hears(word: str) -> bool:
            while not any(word in text for text in heard):
                heard.append(manager.recv(4096).decode())
            return True

        workspace.rocmrun(*words_of(unit, "ExecStartPre"), check=True)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        launch = words_of(unit, "ExecStart")
        with started(workspace.rocmrun, *launch, env=environment) as process:
            assert hears("READY=1")
            record = engine.api.inspect_container(name)
            workspace.rocmrun(*words_of(unit, "ExecStop"), check=True)
            assert hears("STOPPING=1")
            assert ended(process)[0] == 7

    assert heard[:2] == ["STATUS=planning", "STATUS=probing, level quick"]
    assert record["State"]["Running"]
    assert "NOTIFY_SOCKET" not in json.dumps(record)
    assert not exists(engine, name)


def test_a_process_that_holds_a_gpu_is_named_with_its_container(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str
) -> None:
    """One that rocmrun did not make, found through the cgroup of the process that KFD lists."""
    foreign = engine.containers.run(tiny_image, ["sleep", "1000"], detach=True)
    try:
        pid = engine.api.inspect_container(str(foreign.id))["State"]["Pid"]
        node = FakeNode(gid=4712)
        minors = render_minors(1)
        root = gpu_host(workspace.path / "host", minors, kfd=node, render=node, holders={pid: [0]})
        profile = workspace.profile(tiny_image, accelerator="rocm", select="all", name="busy")
        words = ("launch", profile, "--no-probe", "--host-root", str(root), "--", "true")
        refused = workspace.rocmrun(*words)
        shared = workspace.rocmrun(*words[:3], "--share", *words[3:])
    finally:
        foreign.remove(force=True, v=True)

    assert refused.returncode == 125
    assert "error[gpu-busy]" in refused.stderr
    assert f"process {pid} in container {foreign.name}" in refused.stderr
    assert shared.returncode == 0


@pytest.mark.cleans
def test_a_cache_is_found_again_and_cleaned_when_nobody_needs_it(
    workspace: Workspace, tiny_image: str
) -> None:
    """What the first start made the second finds untouched; it goes once no lock pins its image."""
    run = workspace.rocmrun
    profile = workspace.profile(tiny_image)
    compiled = "/home/rocmrun/.cache/kernel.so"
    show = f"stat -c '%Y %i' {compiled}"
    words = ("launch", profile, "--no-probe", "--", "sh", "-c")
    make = f"mkdir -p /home/rocmrun/.cache; echo elf > {compiled}; touch -d @1700000000 {compiled}"
    first = run(*words, f"{make}; {show}", check=True).stdout
    second = run(*words, show, check=True).stdout
    assert first == second
    assert first.startswith("1700000000 ")

    locked = json.loads(run("clean", "--caches", "--dry-run", "--json", check=True).stdout)
    workspace.lockfile.unlink()
    name = serve(workspace, profile, "--unlocked")
    used = json.loads(run("clean", "--caches", "--json", check=True).stdout)
    run("stop", name, check=True)
    gone = json.loads(run("clean", "--caches", "--json", check=True).stdout)
    caches = workspace.path / "home/.cache/rocmrun"

    assert locked["caches"] == []
    stays = {cache["why_it_stays"] for cache in used["caches"]}
    assert f"container {name} uses it" in stays
    assert gone["caches"][-1]["profile"] == f"{workspace.profiles}/{profile}.toml"
    assert list(caches.iterdir()) == []
