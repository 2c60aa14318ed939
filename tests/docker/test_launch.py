"""`rocmrun launch`: its options, and what stays when it has ended."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from rocmrun.core import baseline
from tests.docker.inside import look
from tests.docker.jobs import Jobs
from tests.docker.waiting import exists, until, until_running
from tests.workspace import Workspace

MIB = 1024**2


@pytest.fixture
def name(engine: docker.DockerClient, jobs: Jobs) -> Iterator[str]:
    """A container's name; whatever has it in the end is removed."""
    name = jobs.new_name()
    yield name
    if exists(engine, name):
        engine.api.remove_container(name, force=True, v=True)


def inspect(engine: docker.DockerClient, name: str) -> dict[str, Any]:
    record: dict[str, Any] = engine.api.inspect_container(name)
    return record


def test_files_and_image_used_are_named(jobs: Jobs) -> None:
    """On stderr: which profile, which lock, which digest; stdout is the workload's alone."""
    done = jobs.launch(jobs.tiny, "--", "echo", "out")

    assert done.stdout == "out\n"
    assert f"profile {jobs.workspace.profiles}/{jobs.tiny}.toml" in done.stderr
    assert f"lock {jobs.workspace.lockfile}" in done.stderr
    assert "image 127.0.0.1:5055/rocmrun/tiny:1 @ sha256:" in done.stderr
    assert "warning: not probed" in done.stderr


def test_quiet_leaves_warnings_alone(jobs: Jobs) -> None:
    """What the user must know stays."""
    done = jobs.rocmrun("-q", "launch", jobs.tiny, "--no-probe", "--", "true")

    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith("warning: not probed")


def test_the_profiles_command_runs_and_words_replace_it(
    workspace: Workspace, tiny_image: str
) -> None:
    """As `docker run IMAGE [COMMAND]` does it."""
    profile = workspace.profile(tiny_image, '[container]\ncommand = ["echo", "from the profile"]\n')
    own = workspace.rocmrun("launch", profile, "--no-probe", check=True)
    given = workspace.rocmrun("launch", profile, "--no-probe", "--", "echo", "given", check=True)

    assert (own.stdout, given.stdout) == ("from the profile\n", "given\n")


@pytest.mark.cleans
def test_detach_prints_the_name_and_leaves_it_running(
    engine: docker.DockerClient, jobs: Jobs, name: str
) -> None:
    """Its output is kept for `docker logs`, bounded; `clean` knows that nobody forgot it."""
    command = ("sh", "-c", "echo kept; exec sleep 1000")
    done = jobs.launch(jobs.tiny, "--detach", "--name", name, "--", *command, check=True)
    record = inspect(engine, name)
    cleaned = jobs.rocmrun("clean", "--dry-run", check=True).stdout
    logs = b"".join(engine.api.logs(name, stream=True, follow=False))
    engine.api.remove_container(name, force=True, v=True)

    assert done.stdout == f"{name}\n"
    assert record["State"]["Running"]
    assert record["HostConfig"]["LogConfig"] == {
        "Type": "json-file",
        "Config": {"max-file": "1", "max-size": str(100 * MIB)},
    }
    assert logs == b"kept\n"
    assert name not in cleaned


@pytest.mark.cleans
def test_an_ended_detached_workload_is_cleaned(
    engine: docker.DockerClient, jobs: Jobs, name: str
) -> None:
    """Nobody waits for it: its log stays until somebody cleans."""
    with jobs.strays():
        jobs.launch(jobs.tiny, "--detach", "--name", name, "--", "true", check=True)
        engine.api.wait(name)
        cleaned = jobs.rocmrun("clean", check=True).stdout

    assert f"{name}: a detached workload that has ended" in cleaned
    assert not exists(engine, name)


@pytest.mark.cleans
def test_keep_leaves_the_ended_container_and_its_output(
    engine: docker.DockerClient, jobs: Jobs, name: str
) -> None:
    """For whoever wants to look; `clean` does not take it away, and `stop` says how it ended."""
    command = ("sh", "-c", "echo kept; exit 3")
    done = jobs.launch(jobs.tiny, "--keep", "--name", name, "--", *command)
    with jobs.strays():
        jobs.rocmrun("clean", check=True)
    state = inspect(engine, name)["State"]
    logs = engine.api.logs(name)
    stopped = jobs.rocmrun("stop", name, check=True)
    as_json = json.loads(jobs.rocmrun("stop", name, "--json", check=True).stdout)["stopped"]
    engine.api.remove_container(name, v=True)

    assert (done.returncode, done.stdout) == (3, "kept\n")
    assert stopped.stdout == f"{name}\n"
    assert f"{name} had ended with code 3; kept: docker rm {name} removes it" in stopped.stderr
    assert as_json == [{"name": name, "exit_code": 3, "removed": False, "had_ended": True}]
    assert (state["Status"], state["ExitCode"]) == ("exited", 3)
    assert logs == b"kept\n"


def test_an_ended_workload_is_removed(engine: docker.DockerClient, jobs: Jobs, name: str) -> None:
    """With its anonymous volumes, whatever its exit code."""
    assert jobs.launch(jobs.tiny, "--name", name, "--", "false").returncode == 1
    assert not exists(engine, name)


def test_a_name_that_is_taken_is_told_and_the_other_stays(
    engine: docker.DockerClient, jobs: Jobs, name: str
) -> None:
    """Two launches with one --name: the first is not touched."""
    command = ("sleep", "1000")
    jobs.launch(jobs.tiny, "--detach", "--name", name, "--", *command, check=True)
    second = jobs.launch(jobs.tiny, "--name", name, "--", "true")
    running = inspect(engine, name)["State"]["Running"]
    engine.api.remove_container(name, force=True, v=True)

    assert second.returncode == 125
    assert "error[usage]: " in second.stderr
    assert "hint: choose another --name" in second.stderr
    assert running


def test_a_dry_run_shows_the_plan_and_starts_nothing(
    engine: docker.DockerClient, jobs: Jobs, name: str
) -> None:
    """The same as `rocmrun plan`, on stdout."""
    done = jobs.rocmrun("launch", jobs.tiny, "--dry-run", "--name", name, "--", "echo", "x")

    assert done.returncode == 0
    assert "Grants beyond the empty container" in done.stdout
    assert "The same container without rocmrun:" in done.stdout
    assert not exists(engine, name)


def test_the_report_holds_what_was_started_and_returned(jobs: Jobs, tmp_path: Path) -> None:
    """Digest, plan, grants, host and exit code: enough to compare two runs."""
    path = tmp_path / "report.json"
    done = jobs.launch(jobs.tiny, "--report", str(path), "--", "sh", "-c", "exit 9")
    report = json.loads(path.read_text())
    plan = json.loads(
        jobs.rocmrun("plan", jobs.tiny, "--json", "--", "sh", "-c", "exit 9", check=True).stdout
    )

    assert (done.returncode, report["exit_code"], report["error"]) == (9, 9, None)
    assert report["image_ref"] == "127.0.0.1:5055/rocmrun/tiny:1"
    assert report["image_digest"] == plan["plan"]["image"]["digest"]
    assert report["plan_hash"] == plan["hash"]
    assert report["grants"] == plan["plan"]["grants"]
    assert (report["probe_outcome"], report["probe_reason"]) == ("none", "--no-probe")
    assert report["host"]["kernel"] == os.uname().release
    assert report["engine"]["kind"] == "docker"
    assert report["started_at"] <= report["ended_at"]


def test_a_bind_is_writable_unless_it_says_ro(jobs: Jobs, tmp_path: Path) -> None:
    """As docker spells it; relative sources start where the caller stands."""
    writable, closed = tmp_path / "writable", tmp_path / "closed"
    for folder in (writable, closed):
        folder.mkdir()
        folder.chmod(0o777)
    (jobs.workspace.path / "here").mkdir(exist_ok=True)
    (jobs.workspace.path / "here/file").write_text("relative")
    seen = look(
        jobs.workspace,
        jobs.python,
        "-v",
        f"{writable}:/w",
        "-v",
        f"{closed}:/r:ro",
        "-v",
        "./here:/here:ro",
        write=["/w", "/r", "/here"],
    )

    assert seen["write"] == {"/w": "ok", "/r": "EROFS", "/here": "EROFS"}


def test_a_named_volume_is_kept(engine: docker.DockerClient, jobs: Jobs, name: str) -> None:
    """What is mounted by name outlives the container; only anonymous volumes go with it."""
    volume = f"{name}-data"
    engine.api.create_volume(volume)
    try:
        jobs.launch(jobs.tiny, "-v", f"{volume}:/data:ro", "--", "ls", "/data", check=True)
        assert engine.api.inspect_volume(volume)["Name"] == volume
    finally:
        engine.api.remove_volume(volume)


def test_sizes_of_memory_and_shared_memory(engine: docker.DockerClient, jobs: Jobs) -> None:
    """As docker spells them; swap is no way around the limit."""
    seen = look(
        jobs.workspace, jobs.python, "--memory", "300m", "--shm-size", "32m", size=["/dev/shm"]
    )

    assert seen["memory"] == str(300 * MIB)
    assert seen["size"]["/dev/shm"] == 32 * MIB


def test_a_policy_forbids_changes_from_the_command_line(
    workspace: Workspace, tiny_image: str
) -> None:
    """What the site wrote is what runs, and it is proved."""
    profile = workspace.profile(tiny_image, "[policy]\noverrides = false\n")
    changed = workspace.rocmrun("launch", profile, "-e", "A=b", "--", "true")
    unproved = workspace.rocmrun("launch", profile, "--no-probe", "--share", "--", "true")

    assert (changed.returncode, unproved.returncode) == (125, 125)
    assert "error[policy]: " in changed.stderr
    assert "asked for: --no-probe\n  asked for: --share\n" in unproved.stderr


def test_an_unlocked_image_is_started_loudly_and_never_in_ci(
    workspace: Workspace, tiny_image: str
) -> None:
    """Without the option it is refused; where CI is set it is refused with it."""
    profile = workspace.write(
        f'extends = "base"\naccelerator = "cpu"\n[image]\nref = "{tiny_image}"\n[gpus]\nselect = ["none"]\n'
    )
    words = ("launch", profile, "--no-probe", "--unlocked", "--", "echo", "ran")
    locked = workspace.rocmrun("launch", profile, "--no-probe", "--", "echo", "ran")
    unlocked = workspace.rocmrun(*words)
    in_ci = workspace.rocmrun(*words, env={"CI": "true"})

    assert (locked.returncode, "error[lock-missing]" in locked.stderr) == (125, True)
    assert (unlocked.returncode, unlocked.stdout) == (0, "ran\n")
    assert f"warning: {tiny_image} is not locked" in unlocked.stderr
    assert (in_ci.returncode, in_ci.stdout) == (125, "")
    assert "error[policy]: --unlocked is refused where CI is set" in in_ci.stderr


def test_options_that_contradict_each_other(jobs: Jobs) -> None:
    """Told before anything is looked at."""
    tty = jobs.launch(jobs.tiny, "--detach", "--tty", "--", "true")
    interactive = jobs.launch(jobs.tiny, "--detach", "--interactive", "--", "true")

    assert (tty.returncode, "error[usage]: --detach" in tty.stderr) == (125, True)
    assert (interactive.returncode, "error[usage]: --detach" in interactive.stderr) == (125, True)


def test_a_bridge_is_a_network_and_not_offline(jobs: Jobs, bridge: str) -> None:
    """An interface of its own, and no variable that says that there is none."""
    seen = look(jobs.workspace, jobs.python, "--network", "bridge")

    assert "eth0" in seen["interfaces"]
    assert seen["resolved"] not in {"127.0.0.1", "gaierror"}
    assert not set(baseline.OFFLINE_VARIABLES) & set(seen["env"])


def test_a_port_is_published_where_it_says(
    engine: docker.DockerClient, jobs: Jobs, bridge: str, name: str
) -> None:
    """On the written address alone, and refused by name when somebody has it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--network", "bridge", "-p", f"127.0.0.1:{port}:8000", "--name", name)
        refused = jobs.launch(jobs.tiny, *options, "--", "true")
    assert refused.returncode == 125
    assert "error[port-taken]: " in refused.stderr
    assert not exists(engine, name)

    command = ("nc", "-l", "-p", "8000", "-e", "echo", "served")
    jobs.launch(jobs.tiny, *options, "--detach", "--", *command, check=True)
    until_running(engine, name)
    bindings = inspect(engine, name)["NetworkSettings"]["Ports"]
    assert bindings == {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port)}]}
    assert until(lambda: _said_on(port), "an answer") == b"served\n"
    engine.api.remove_container(name, force=True, v=True)


def _said_on(port: int) -> bytes:
    """What the port says: nothing while its server is still starting behind docker's proxy."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        return client.recv(100)
