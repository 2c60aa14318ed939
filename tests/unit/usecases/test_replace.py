"""`launch --replace`: the old one goes when the new one is up, and comes back when it is not."""

import os
import signal
from typing import Any

import pytest

from rocmrun.core.run import ContainerState
from rocmrun.errors import (
    EngineFailed,
    Interrupted,
    PortTaken,
    ProbeFailed,
    UsageError,
    WorkloadAmbiguous,
    WorkloadNotUp,
)
from rocmrun.usecases.readiness import check_up, when_healthy
from tests.builders import probe_output
from tests.fakes import STDERR, STDOUT, FakeEngine, Script, probe_answer
from tests.hosts import MI210_X8
from tests.unit.usecases.stage import CPU_JOB, GPU_JOB, Stage, an_engine

SERVER = Script(until_killed=True)


def a_server(stage: Stage, **options: Any) -> FakeEngine:
    """Return an engine on which the stage's job runs detached."""
    engine = an_engine(scripts={"workload": SERVER})
    stage.launch(engine, detach=True, probe=False, **options)
    engine.calls.clear()
    return engine


def replace(stage: Stage, engine: FakeEngine, **options: Any) -> int:
    return stage.launch(
        engine, detach=True, replace=True, **{"probe": False, "settle_seconds": 0.05, **options}
    )


def test_the_old_one_runs_until_the_new_one_is_proved_and_made(stage: Stage) -> None:
    engine = a_server(stage)
    (old,) = engine.kept

    assert replace(stage, engine, probe=True) == 0

    (new,) = engine.kept
    assert (new.status, new.name, new.id == old.id) == ("running", old.name, False)
    order = ["wait probe", "remove probe", "create workload", "stop workload", "start workload",
             "remove workload", "rename workload"]  # fmt: skip
    assert [call for call in engine.calls if call in order] == order
    assert stage.heard.results[-1] == old.name


def test_the_name_that_is_asked_for_counts(stage: Stage) -> None:
    engine = a_server(stage, name="server")

    replace(stage, engine, name="server")
    replace(stage, engine)

    assert [each.name for each in engine.kept] == ["server"]


def test_without_an_old_one_it_is_a_launch(stage: Stage) -> None:
    engine = an_engine(scripts={"workload": SERVER})

    assert replace(stage, engine, name="server") == 0

    assert [each.name for each in engine.kept] == ["server"]
    assert 'there is nothing to replace: no workload is called "server"' in stage.heard.said


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        ("create workload", EngineFailed("no")),
        ("inspect workload", EngineFailed("no")),
        ("create probe", EngineFailed("no")),
    ],
)
def test_the_old_one_is_not_touched_while_the_new_one_is_made(
    stage: Stage, failing: str, error: Exception
) -> None:
    engine = a_server(stage)
    (old,) = engine.kept
    engine.failures = {failing: error}

    with pytest.raises(EngineFailed):
        replace(stage, engine, probe=True)

    assert [(each.id, each.status) for each in engine.kept] == [(old.id, "running")]
    assert "stop workload" not in engine.calls


def test_the_old_one_is_not_touched_by_a_probe_that_fails(stage: Stage) -> None:
    engine = a_server(stage)
    engine.scripts["probe"] = Script(frames=[(STDOUT, probe_output(status="fail", reason="bad"))])

    with pytest.raises(ProbeFailed):
        replace(stage, engine, probe=True)

    assert [each.status for each in engine.kept] == ["running"]
    assert "stop workload" not in engine.calls


def test_a_new_one_that_cannot_start_brings_the_old_one_back(stage: Stage) -> None:
    engine = a_server(stage)
    (old,) = engine.kept
    engine.failures_once = {"start workload": PortTaken("port 8000 is taken")}

    with pytest.raises(PortTaken):
        replace(stage, engine)

    assert [(each.id, each.name, each.status) for each in engine.kept] == [
        (old.id, old.name, "running")
    ]
    assert f"started {old.name} again" in stage.heard.said
    assert stage.report["error"]["slug"] == "port-taken"


def test_a_new_one_that_ends_at_once_brings_the_old_one_back(stage: Stage) -> None:
    """With its last words, since its log is gone with it."""
    engine = a_server(stage)
    (old,) = engine.kept
    engine.scripts["workload"] = Script(exit_code=2, frames=[(STDERR, b"\x1b[1mno model\x1b[0m\n")])
    engine.restarted[old.id] = SERVER

    with pytest.raises(WorkloadNotUp, match="ended at once with exit code 2") as caught:
        replace(stage, engine)

    assert caught.value.details == ("no model",)
    assert [(each.id, each.status) for each in engine.kept] == [(old.id, "running")]


def test_a_signal_while_the_old_one_stops_brings_it_back(stage: Stage) -> None:
    engine = a_server(stage)
    (old,) = engine.kept
    engine.on_stop = lambda: signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        replace(stage, engine)

    assert [(each.id, each.status) for each in engine.kept] == [(old.id, "running")]


def test_an_old_one_that_does_not_come_back_is_said(stage: Stage) -> None:
    engine = a_server(stage)
    engine.failures = {"start workload": EngineFailed("no space left")}

    with pytest.raises(EngineFailed):
        replace(stage, engine)

    (warning,) = [text for text in stage.heard.warnings if "could not be started again" in text]
    assert "no space left; try: docker start rocmrun-job-" in warning


@pytest.mark.parametrize("failing", ["remove workload", "rename workload"])
def test_a_new_one_that_is_up_stays_whatever_fails_afterwards(stage: Stage, failing: str) -> None:
    engine = a_server(stage)
    engine.failures_once = {failing: EngineFailed("busy")}

    assert replace(stage, engine) == 0

    assert engine.kept[-1].status == "running"
    assert any("the new workload runs, but is not called" in text for text in stage.heard.warnings)


def test_a_signal_while_the_old_one_is_removed_is_heeded_afterwards(stage: Stage) -> None:
    """The work is handed over by then, and done to its end."""
    engine = a_server(stage)
    (old,) = engine.kept
    engine.on_remove = lambda: signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        replace(stage, engine)

    (new,) = engine.kept
    assert (new.name, new.status, new.id == old.id) == (old.name, "running", False)


def test_an_old_one_that_went_meanwhile_is_no_obstacle(stage: Stage) -> None:
    """It may have ended, and somebody cleaned, while its successor was proved."""
    engine = a_server(stage)
    (old,) = engine.kept

    def clean() -> None:
        del engine.containers_by_id[old.id]

    engine.scripts["probe"] = Script(frames=[(STDOUT, probe_answer)], on_start=clean)

    assert replace(stage, engine, probe=True) == 0
    assert [each.status for each in engine.kept] == ["running"]


def test_an_old_one_that_has_ended_is_removed_and_never_started_again(stage: Stage) -> None:
    engine = a_server(stage, name="server")
    engine.kept[0].end(1)

    replace(stage, engine, name="server")

    assert [(each.name, each.status) for each in engine.kept] == [("server", "running")]
    assert engine.calls.count("start workload") == 1


def test_its_gpus_are_not_busy_for_its_successor(stage: Stage) -> None:
    stage.profile(GPU_JOB)
    stage.host(*MI210_X8[:1])
    engine = a_server(stage)

    assert replace(stage, engine) == 0
    assert len(engine.kept) == 1


def test_a_foreground_workload_is_not_replaced(stage: Stage) -> None:
    engine = a_server(stage, name="server")
    (old,) = engine.kept
    old.request["Labels"]["io.rocmrun.detached"] = ""

    with pytest.raises(UsageError, match="server cannot be replaced: it does not run detached"):
        replace(stage, engine, name="server")


def test_of_several_one_must_be_named(stage: Stage) -> None:
    engine = a_server(stage, name="one")
    stage.launch(engine, detach=True, probe=False, name="two")

    with pytest.raises(WorkloadAmbiguous, match="profile job has 2 detached workloads") as caught:
        replace(stage, engine)

    assert len(caught.value.details) == 2
    assert caught.value.hint == "name it: --replace --name NAME"


def test_another_projects_workload_of_a_profile_of_that_name_stays(stage: Stage) -> None:
    engine = a_server(stage)
    (old,) = engine.kept
    old.request["Labels"]["io.rocmrun.profile-file"] = "/srv/other/profiles/job.toml"

    replace(stage, engine)

    assert [each.status for each in engine.kept] == ["running", "running"]


def test_another_users_workload_of_a_shared_profile_stays(stage: Stage) -> None:
    """A shipped profile is one file for everybody."""
    engine = a_server(stage)
    (old,) = engine.kept
    old.request["Labels"]["io.rocmrun.uid"] = str(os.getuid() + 1)

    replace(stage, engine)

    assert [each.status for each in engine.kept] == ["running", "running"]


def test_only_detached_workloads_hand_over(stage: Stage) -> None:
    with pytest.raises(UsageError, match="add --detach"):
        stage.launch(an_engine(), replace=True)

    assert stage.connected == 0


class Patient(FakeEngine):
    """An engine whose one container goes through states of health."""

    def __init__(self, *health: str) -> None:
        super().__init__()
        self.health = list(health)

    def wait(self, container_id: str, timeout_seconds: float | None = None) -> int:  # noqa: ARG002  # the protocol's
        raise TimeoutError

    def state(self, container_id: str) -> ContainerState:  # noqa: ARG002  # the protocol's
        found = self.health.pop(0)
        return ContainerState(status="exited" if found == "ended" else "running", health=found)


def no_pause(_seconds: float) -> None:
    """Wait for nothing."""


def test_a_health_check_decides_where_there_is_one() -> None:
    engine = Patient("starting", "starting", "healthy", "unhealthy")

    check_up(engine, "x", health=True, settle_seconds=0, pause=no_pause)

    assert engine.health == ["unhealthy"]


@pytest.mark.parametrize(
    ("last", "said"), [("unhealthy", "it is unhealthy"), ("ended", "it is exited")]
)
def test_one_that_never_gets_healthy_is_not_up(last: str, said: str) -> None:
    with pytest.raises(WorkloadNotUp, match=said):
        check_up(Patient("starting", last), "x", health=True, settle_seconds=0, pause=no_pause)


@pytest.mark.parametrize(
    ("states", "told"), [(("starting", "healthy"), 1), (("starting", "ended"), 0)]
)
def test_who_waits_for_health_is_told_once(states: tuple[str, ...], told: int) -> None:
    calls: list[int] = []

    when_healthy(Patient(*states), "x", lambda: calls.append(1), pause=no_pause).join(10)

    assert len(calls) == told


def test_a_service_manager_hears_how_far_a_launch_is(stage: Stage) -> None:
    stage.profile(CPU_JOB)
    heard: list[str] = []

    stage.launch(an_engine(), notify=heard.append, name="server")

    assert heard == [
        "STATUS=planning",
        "STATUS=probing, level quick",
        "STATUS=starting server",
        "READY=1\nSTATUS=server runs",
        "STOPPING=1\nSTATUS=server ended with 0",
    ]


def test_with_a_health_check_ready_is_when_it_has_passed(stage: Stage) -> None:
    stage.profile(CPU_JOB + '[container]\nhealth = { command = ["true"] }\n')
    engine = an_engine(scripts={"workload": Script(until_killed=True, health="healthy")})
    heard: list[str] = []

    def notify(text: str) -> None:
        heard.append(text)
        if "READY=1" in text:
            engine.kill(engine.made("workload").id, "SIGTERM")

    stage.launch(engine, notify=notify, name="server", probe=False)

    assert heard[2:] == [
        "STATUS=server runs, and is not healthy yet",
        "READY=1\nSTATUS=server is healthy",
        "STOPPING=1\nSTATUS=server ended with 0",
    ]
