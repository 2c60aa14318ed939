"""The evidence recorder on a real engine and the real kernel: what a job used and was refused, and nothing left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from rocmrun.system.tracefs import (
    TraceUnavailable,
    instance,
    owners,
    process_numbers_are_the_kernels,
    remove_instance,
    tracefs,
)
from rocmrun.usecases.clean_traces import clean_traces, owner_name
from tests.docker import privilege_jobs as job
from tests.docker.waiting import started, until
from tests.workspace import Workspace

FAST = ("--retries", "0", "--repeats", "1")


WIDE = job.table("user:root", "cap:NET_RAW", "cap:SYSLOG", "rootfs:rw")
# Refused three times over, and the job goes on; then what it cannot do without.
THREE_REFUSALS = """
for attempt in range(3):
    try:
        call(238, 0, 0, 0)
    except OSError:
        pass
"""
FOR_A_WHILE = "import time; time.sleep(600)"


@pytest.fixture(autouse=True)
def own_instances() -> Iterator[None]:
    """A kernel that lets us trace; afterwards it has no instance of a rocmrun that is gone."""
    if os.geteuid() != 0:
        pytest.skip("only root traces")
    if not process_numbers_are_the_kernels():
        pytest.skip("this is a container: processes have other numbers than in the kernel's trace")
    try:
        instances()
    except TraceUnavailable as error:
        pytest.skip(str(error))
    yield
    assert clean_traces(dry_run=True) == []


def instances() -> tuple[str, ...]:
    with tracefs() as root:
        return owners(root)


def instance_of(pid: int) -> str | None:
    return next((owner for owner in instances() if owner.split(".")[1] == str(pid)), None)


# The command, with a recorder that only a test wants.
SMALL_BUFFER = """
import sys
from pathlib import Path
from rocmrun.core.command_line import Options
from rocmrun.console.voice import voice
from rocmrun.core.oracle import CommandOracle
from rocmrun.core.search_space import Settings
from rocmrun.system.profile_search import default_search
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.diff_privileges import diff_privileges
from rocmrun.usecases.engines import connect
from rocmrun.usecases.privilege_request import DiffRequest
from rocmrun.usecases.record_evidence import Recorder

profile, *command = sys.argv[1:]
request = DiffRequest(
    ask=Ask(
        profile=profile,
        search=default_search(environ={}, working_directory=Path.cwd()),
        options=Options(command=tuple(command)),
    ),
    oracle=CommandOracle(),
    settings=Settings(retries=0, repeats=1),
    recorder=Recorder(buffer_kib=4),
)
print(diff_privileges(request, connect=connect, voice=voice()).certificate.model_dump_json())
"""


def test_what_was_used_and_refused_is_evidence(workspace: Workspace, python_image: str) -> None:
    """Calls, refusals and capabilities of the job alone, in the certificate and beside the verdicts; fewer runs for it."""
    profile = workspace.profile(python_image, WIDE)
    command = ("--", *job.python(THREE_REFUSALS, job.RAW_SOCKET))

    done = workspace.rocmrun(
        "diff-privileges", profile, *FAST, "--record-evidence", "--json", *command
    )

    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    evidence = found["evidence"]
    assert (evidence["recorded"], evidence["complete"]) == (True, True), evidence["why"]
    assert {
        "call": "set_mempolicy",
        "error": "EPERM",
        "times": 3,
        "program": "python3",
    } in evidence["refused"]
    assert {"set_mempolicy", "socket", "execve", "exit_group"} <= set(evidence["calls"])
    # The runtime's own, on the container's first process.
    assert {"pivot_root", "mount", "setns", "sethostname"}.isdisjoint(evidence["calls"])
    assert {"capability": "NET_RAW", "granted": 1, "refused": 0} in evidence["capabilities"]
    seen = {verdict["privilege"]: verdict["seen"] for verdict in found["verdicts"]}
    assert seen["cap:NET_RAW"] == "CAP_NET_RAW used once"
    assert seen["cap:SYSLOG"] == "CAP_SYSLOG never asked for; syslog never called"
    assert seen["rootfs:rw"] == ""
    assert set(found["minimal"]) == {"cap:NET_RAW", "user:root"}
    purposes = [run["purpose"] for run in found["runs"]]
    assert purposes[:2] == ["canary", "recording"]


def test_a_buffer_that_is_too_small_is_told_and_changes_no_answer(
    workspace: Workspace, python_image: str
) -> None:
    """Events are lost, the certificate says how many, and the known set is found all the same."""
    profile = workspace.profile(python_image, job.table("rootfs:rw"))
    command = job.python(job.OUTSIDE_THE_CACHES)

    done = subprocess.run(
        [sys.executable, "-c", SMALL_BUFFER, profile, *command],
        cwd=workspace.path, env=workspace.rocmrun.environment(), capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    certificate = json.loads(done.stdout)
    assert not certificate["evidence"]["complete"]
    assert certificate["evidence"]["why"].startswith("the kernel had no room for ")
    assert "the recorded evidence is incomplete: the kernel had no room" in done.stderr
    assert certificate["minimal"] == ["tmpfs:/var/tmp"]


def test_an_interrupted_recording_leaves_nothing(workspace: Workspace, python_image: str) -> None:
    """Ctrl-C while the job is traced."""
    profile = workspace.profile(python_image, WIDE)
    command = ("--", *job.python(FOR_A_WHILE))

    with started(
        workspace.rocmrun, "diff-privileges", profile, "--record-evidence", *command
    ) as process:
        until(lambda: instance_of(process.pid), "tracing")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130

    assert instance_of(process.pid) is None


@pytest.mark.cleans
def test_clean_removes_what_a_killed_recorder_left(
    engine: docker.DockerClient, workspace: Workspace, python_image: str, tmp_path: Path
) -> None:
    """kill -9 leaves the instance; clean finds whose it was. One whose owner lives stays, and so does another's."""
    profile = workspace.profile(python_image, WIDE)
    command = ("--", *job.python(FOR_A_WHILE))
    with started(
        workspace.rocmrun, "diff-privileges", profile, "--record-evidence", *command
    ) as process:
        name = until(lambda: instance_of(process.pid), "tracing")
        alive = json.loads(workspace.rocmrun("clean", "--dry-run", "--json", check=True).stdout)
        process.kill()
        process.wait()
    other = "rocmrun-tests-another-tracer"
    with tracefs() as root:
        (root / "instances" / other.removeprefix("rocmrun-")).mkdir()
        try:
            done = json.loads(workspace.rocmrun("clean", "--json", check=True).stdout)
            assert (root / "instances" / other.removeprefix("rocmrun-")).is_dir()
        finally:
            (root / "instances" / other.removeprefix("rocmrun-")).rmdir()

    told = f"trace instance rocmrun-{name}"
    assert told not in {removed["name"] for removed in alive["removed"]}
    assert {"name": told, "why": "left by a rocmrun that is gone"} in done["removed"]
    assert instance_of(process.pid) is None


def test_who_looks_into_an_instance_keeps_it_and_fails_nothing() -> None:
    """Tracers open files of every instance: it waits a moment, then says so, and goes once it can."""
    said: list[str] = []
    owner = owner_name("held")
    with tracefs() as root:
        with contextlib.ExitStack() as held:
            with instance(root, owner, on_left=said.append) as made:
                held.enter_context((made.directory / "trace").open())
            assert said == ["Device or resource busy"]
            assert owner in owners(root)
        assert remove_instance(root, owner) == ""
