"""A `--replace` whose rocmrun was killed: what is left is named, and the next command finishes it."""

from typing import Any, Literal

import pytest

from rocmrun.core.workloads import Workload
from rocmrun.errors import EngineFailed, WorkloadAmbiguous
from rocmrun.system.caller import process_label
from rocmrun.usecases.clean import clean, finish_handovers
from rocmrun.usecases.replace import cut_off, find_replaced
from rocmrun.usecases.workloads import list_workloads
from tests.fakes import Container, FakeEngine, Script
from tests.unit.usecases.stage import Stage, an_engine

GONE = "1:1"
Step = Literal["made", "stopped", "started", "removed"]
STEPS: tuple[Step, ...] = ("made", "stopped", "started", "removed")
# What is left once the handover got as far as that: the old one's state and the successor's.
LEFT: dict[Step, tuple[str | None, str]] = {
    "made": ("running", "created"),
    "stopped": ("exited", "created"),
    "started": ("exited", "running"),
    "removed": (None, "running"),
}


def an_engine_after(stage: Stage, step: Step) -> tuple[FakeEngine, Container]:
    """Return an engine on which a handover of "server" got as far as *step*, and the successor."""
    engine = an_engine(scripts={"workload": Script(until_killed=True)})
    launch(stage, engine, name="server")
    (old,) = engine.kept
    # A handover that fails at its last step leaves what a kill leaves.
    engine.failures_once = {"rename workload": EngineFailed("killed here")}
    launch(stage, engine, name="server", replace=True)
    (new,) = engine.kept
    for container in (old, new):
        container.request["Labels"]["io.rocmrun.controller"] = GONE
    state, new.status = LEFT[step]
    if state is not None:
        old.status = state
        engine.containers_by_id = {old.id: old, new.id: new}
    engine.calls.clear()
    stage.heard.said.clear()
    return engine, new


def launch(stage: Stage, engine: FakeEngine, **options: Any) -> None:
    stage.launch(engine, detach=True, probe=False, settle_seconds=0.05, **options)


def listed(engine: FakeEngine) -> tuple[Workload, ...]:
    return list_workloads(engine, ended=True)


def left(engine: FakeEngine) -> list[tuple[str, str]]:
    return [(each.name, each.status) for each in engine.kept]


@pytest.mark.parametrize("step", STEPS)
def test_it_is_known_by_the_name_that_it_was_to_get(stage: Stage, step: Step) -> None:
    """While the process that launched it runs the handover is under way, and nobody's to finish."""
    engine, new = an_engine_after(stage, step)

    (found,) = cut_off(listed(engine))

    assert (found.name, found.final_name) == (new.name, "server")
    assert new.name.startswith("server-")
    assert cut_off(listed(engine), lambda _label: True) == ()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("named", [{"name": "server"}, {}], ids=["by name", "by profile"])
def test_the_next_replacement_finishes_it(stage: Stage, step: Step, named: dict[str, str]) -> None:
    """One workload runs then, under the name that there was, and nothing else is left."""
    engine, new = an_engine_after(stage, step)
    was_running = new.status == "running"

    launch(stage, engine, replace=True, **named)

    assert left(engine) == [("server", "running")]
    assert engine.kept[0].id != new.id
    assert stage.heard.results[-1] == "server"
    assert ("stop workload" in engine.calls) == (was_running or step == "made")


def test_a_replacement_that_fails_loses_nothing(stage: Stage) -> None:
    """What ran before runs again, and what was left is left to the next."""
    engine, new = an_engine_after(stage, "started")
    engine.failures_once = {"start workload": EngineFailed("no")}

    with pytest.raises(EngineFailed):
        launch(stage, engine, replace=True)

    assert left(engine) == [("server", "exited"), (new.name, "running")]


def test_two_that_run_are_not_chosen_between(stage: Stage) -> None:
    """Somebody may have started the old one again by hand."""
    engine, _ = an_engine_after(stage, "started")
    engine.kept[0].status = "running"

    with pytest.raises(WorkloadAmbiguous):
        launch(stage, engine, replace=True)


def test_one_that_was_renamed_by_hand_is_finished(stage: Stage) -> None:
    engine, new = an_engine_after(stage, "removed")
    new.name = "mine"

    assert cut_off(listed(engine)) == ()
    found = find_replaced(engine, name="server", profile="job", profile_file="")
    assert found is None


@pytest.mark.parametrize(
    ("step", "remains", "renamed"),
    [
        ("made", [("server", "running")], False),
        ("stopped", [], False),
        ("started", [("server", "running")], True),
        ("removed", [("server", "running")], True),
    ],
)
def test_clean_removes_what_does_not_run_and_names_what_does(
    stage: Stage, step: Step, remains: list[tuple[str, str]], *, renamed: bool
) -> None:
    """Said beforehand is what is done then."""
    engine, new = an_engine_after(stage, step)

    def cleaned(*, dry_run: bool) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        removed = clean(engine, dry_run=dry_run)
        return removed, finish_handovers(engine, removed=dict(removed), dry_run=dry_run)

    expected = [(new.name, "server")] if renamed else []
    said = cleaned(dry_run=True)
    assert said[1] == expected
    assert cleaned(dry_run=False) == said
    assert left(engine) == remains
    assert cleaned(dry_run=False) == ([], [])


def test_clean_leaves_a_handover_alone_that_is_under_way(stage: Stage) -> None:
    """The old one is what comes back where the new one does not come up."""
    engine, new = an_engine_after(stage, "started")
    new.request["Labels"]["io.rocmrun.controller"] = process_label()

    assert clean(engine, dry_run=False) == []
    assert finish_handovers(engine, removed=(), dry_run=False) == []
    assert left(engine) == [("server", "exited"), (new.name, "running")]


def test_a_name_that_somebody_else_has_stays_theirs(stage: Stage) -> None:
    engine, new = an_engine_after(stage, "removed")
    before = new.name
    engine.failures = {"rename workload": EngineFailed("the name is in use")}

    assert finish_handovers(engine, removed=(), dry_run=False) == []
    launch(stage, engine, name="server")
    engine.failures = {}

    assert finish_handovers(engine, removed=(), dry_run=False) == []
    assert new.name == before
