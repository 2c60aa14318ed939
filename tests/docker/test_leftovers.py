"""What stays when it is over: nothing, after two hundred launches, and after Ctrl-C at any stage."""

import json
import re
import signal
import subprocess
import sys
import threading
from typing import Any

import docker
import pytest
from docker.errors import ImageNotFound

from tests.docker.engine_proxy import CREATE, engine_proxy
from tests.docker.jobs import Jobs
from tests.docker.stalling_image import stalling_image
from tests.docker.waiting import PATIENCE_SECONDS, ended, exists, read_until, started, until
from tests.workspace import Workspace, left_behind

VERSION = re.compile(r"GET (/v[\d.]+)?/version\b")
START = re.compile(r"POST (/v[\d.]+)?/containers/[0-9a-f]+/start\b")
REMOVE = re.compile(r"DELETE (/v[\d.]+)?/containers/[0-9a-f]+\b")

# One interpreter for many launches: what is tested is what each leaves in the engine, not how fast it starts.
MANY = """
import sys
from rocmrun.__main__ import run
profile, count = sys.argv[1], int(sys.argv[2])
codes = {run(["-q", "launch", profile, "--no-probe", "--", "true"]) for _ in range(count)}
sys.exit(0 if codes == {0} else f"exit codes: {codes}")
"""


def anonymous_volumes(engine: docker.DockerClient) -> set[str]:
    found: list[dict[str, Any]] = engine.api.volumes()["Volumes"] or []
    return {volume["Name"] for volume in found if re.fullmatch("[0-9a-f]{64}", volume["Name"])}


def test_two_hundred_launches_leave_nothing(engine: docker.DockerClient, jobs: Jobs) -> None:
    """No container, no volume, no network; two at a time, as scripts do it."""
    volumes = anonymous_volumes(engine)
    networks = {network["Id"] for network in engine.api.networks()}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MANY, jobs.tiny, "100"],
            cwd=jobs.workspace.path,
            env=jobs.rocmrun.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    results = [process.communicate(timeout=280) for process in processes]

    assert [process.returncode for process in processes] == [0, 0], results
    assert left_behind(engine, jobs.workspace) == []
    assert anonymous_volumes(engine) <= volumes
    assert {network["Id"] for network in engine.api.networks()} == networks


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_while_the_engine_does_not_answer(jobs: Jobs, number: signal.Signals) -> None:
    """Nobody waits for an engine that says nothing."""
    if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("under nohup a hang-up before we listen for it is ignored, as it should be")
    silent = threading.Event()
    with (
        engine_proxy(hold={VERSION: silent}) as proxy,
        jobs.started(jobs.tiny, "--", "true", env={"DOCKER_HOST": proxy.address}) as process,
    ):
        assert proxy.held.wait(PATIENCE_SECONDS)
        process.send_signal(number)
        code, _, said = ended(process)

    # The engine is asked while the rest is still imported: an early SIGTERM ends Python itself.
    assert code in {128 + number, -number}
    assert ("error[interrupted]: interrupted" in said) == (code > 0)
    assert "Traceback" not in said


def test_interrupted_during_a_pull(engine: docker.DockerClient, workspace: Workspace) -> None:
    """The engine gives up with us: no image, and no container of it."""
    with stalling_image() as image:
        workspace.lockfile.write_text(image.lock)
        profile = workspace.write(
            f'extends = "base"\naccelerator = "cpu"\n[image]\nref = "{image.reference}"\n'
            '[gpus]\nselect = ["none"]\n'
        )
        with started(workspace.rocmrun, "launch", profile, "--no-probe") as process:
            assert image.asked.wait(PATIENCE_SECONDS)
            process.send_signal(signal.SIGINT)
            code, _, said = ended(process)

        assert code == 130
        assert "error[interrupted]: " in said
        with pytest.raises(ImageNotFound):
            engine.images.get(image.reference)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_a_container_is_created(
    engine: docker.DockerClient, jobs: Jobs, number: signal.Signals
) -> None:
    """The engine makes it all the same: it is waited for, and removed."""
    name, slow = jobs.new_name("created"), threading.Event()
    with (
        engine_proxy(hold={CREATE: slow}) as proxy,
        jobs.started(
            jobs.tiny, "--name", name, "--", "true", env={"DOCKER_HOST": proxy.address}
        ) as process,
    ):
        assert proxy.held.wait(PATIENCE_SECONDS)
        process.send_signal(number)
        slow.set()
        code, _, said = ended(process)

    assert code == 128 + number
    assert "error[interrupted]: " in said
    assert not exists(engine, name)


def test_interrupted_during_the_probe(engine: docker.DockerClient, jobs: Jobs) -> None:
    """Its container goes, the workload's never comes, and the report says so."""
    report = jobs.workspace.path / "interrupted.json"
    words = ("launch", jobs.demo, "--report", str(report), "--", "echo", "ran")
    with started(jobs.rocmrun, *words) as process:
        until(lambda: running_probe(engine, jobs.demo), "a running probe")
        process.send_signal(signal.SIGINT)
        code, out, said = ended(process)

    assert (code, out) == (130, "")
    assert "error[interrupted]: interrupted by SIGINT; nothing is left running" in said
    assert json.loads(report.read_text())["error"]["slug"] == "interrupted"
    assert left_behind(engine, jobs.workspace) == []


def running_probe(engine: docker.DockerClient, profile: str) -> bool:
    labels = ["io.rocmrun.role=probe", f"io.rocmrun.profile={profile}"]
    return bool(engine.api.containers(filters={"label": labels}))


def test_interrupted_while_the_workload_starts(engine: docker.DockerClient, jobs: Jobs) -> None:
    """From here on signals are the workload's: it gets this one as soon as it runs."""
    name, slow = jobs.new_name("starting"), threading.Event()
    with (
        engine_proxy(hold={START: slow}) as proxy,
        jobs.started(
            jobs.tiny, "--name", name, "--", "sleep", "1000", env={"DOCKER_HOST": proxy.address}
        ) as process,
    ):
        assert proxy.held.wait(PATIENCE_SECONDS)
        process.send_signal(signal.SIGINT)
        slow.set()
        read_until(process.stderr, b"sent SIGINT to the container")
        # The init process may not have been ready for the first.
        process.send_signal(signal.SIGINT)
        code, _, _ = ended(process)

    assert code in {130, 137}
    assert not exists(engine, name)


def test_interrupted_while_the_container_is_removed(
    engine: docker.DockerClient, jobs: Jobs
) -> None:
    """The work is done; what is left of it goes before the signal is heeded."""
    name, slow = jobs.new_name("removed"), threading.Event()
    with (
        engine_proxy(hold={REMOVE: slow}) as proxy,
        jobs.started(
            jobs.tiny, "--name", name, "--", "echo", "done", env={"DOCKER_HOST": proxy.address}
        ) as process,
    ):
        assert proxy.held.wait(PATIENCE_SECONDS)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        slow.set()
        _, out, said = ended(process)

    assert out == "done\n"
    assert "Traceback" not in said
    assert not exists(engine, name)
