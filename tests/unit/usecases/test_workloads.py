"""Day two: list, read, wait, stop. What is asked of the engine, and what is left of a container."""

import threading
from typing import Any

import pytest

from rocmrun.core.image import ImageFacts
from rocmrun.core.run import ContainerState
from rocmrun.core.workloads import Workload
from rocmrun.errors import EngineFailed, UsageError, WorkloadAmbiguous, WorkloadNotFound
from rocmrun.usecases.listed import record_of
from rocmrun.usecases.workloads import Stopped, list_workloads, show_log, stop, wait
from tests.builders import IMAGE_ID
from tests.fakes import STDERR, STDOUT, FakeEngine, Script

ALIVE, DEAD = "1:alive", "2:dead"
UNTIL_STOPPED = Script(until_killed=True, frames=[(STDOUT, b"out\n"), (STDERR, b"err\n")])


def an_engine(script: Script = UNTIL_STOPPED, **options: Any) -> FakeEngine:
    return FakeEngine(scripts={"workload": script}, **options)


def started(
    engine: FakeEngine,
    name: str,
    *,
    detached: bool = True,
    keep: bool = False,
    controller: str = DEAD,
    log: str = "json-file",
    role: str = "workload",
    uid: str = "",
) -> str:
    """Start a container as a launch leaves it, and return its id."""
    request = {
        "Image": IMAGE_ID,
        "StopTimeout": 33,
        "Labels": {
            "io.rocmrun.role": role,
            "io.rocmrun.run": f"run-of-{name}",
            "io.rocmrun.profile": "job",
            "io.rocmrun.controller": controller,
            "io.rocmrun.uid": uid,
            "io.rocmrun.detached": "1" if detached else "",
            "io.rocmrun.keep": "1" if keep else "",
        },
        "HostConfig": {
            "PidsLimit": 1, "ShmSize": 1, "Ulimits": [], "LogConfig": {"Type": log, "Config": {}},
        },
    }  # fmt: skip
    made = engine.create(request, name, "linux/amd64").container_id
    engine.start(made)
    return made


def names(workloads: tuple[Workload, ...]) -> list[str]:
    return [workload.name for workload in workloads]


def stopped(engine: FakeEngine, *words: str, **options: Any) -> tuple[Stopped, ...]:
    return stop(engine, words, runs=lambda label: label == ALIVE, **options)


def test_workloads_that_run_are_listed_and_others_on_demand() -> None:
    engine = an_engine()
    started(engine, "b")
    started(engine, "a")
    started(engine, "probe", role="probe")
    engine.scripts["workload"] = Script(exit_code=3)
    started(engine, "ended")

    assert names(list_workloads(engine, ended=False)) == ["a", "b"]
    every = list_workloads(engine, ended=True)
    assert [(each.name, each.exit_code) for each in every] == [
        ("a", None),
        ("b", None),
        ("ended", 3),
    ]


def test_a_container_of_a_committed_image_is_none_of_ours() -> None:
    """`docker commit` bakes our labels into an image, and whoever runs that has them too."""
    baked = {"io.rocmrun.role": "workload", "io.rocmrun.run": "1"}
    image = ImageFacts(image_id="sha256:5", labels=tuple(baked.items()))
    other = {
        "Id": "9" * 64,
        "Names": ["/x"],
        "Labels": baked,
        "State": "running",
        "ImageID": "sha256:5",
    }
    engine = an_engine(images={"sha256:5": image}, others=[other])

    assert list_workloads(engine, ended=True) == ()


def test_a_detached_workload_is_stopped_and_removed() -> None:
    engine = an_engine()
    started(engine, "a")

    assert stopped(engine, "job") == (Stopped(name="a", exit_code=137, removed=True),)

    assert engine.kept == []
    assert engine.stop_seconds == [33]


def test_another_users_workload_is_stopped_by_its_own_name_alone() -> None:
    """A shipped profile has one name for everybody on a host."""
    engine = an_engine()
    started(engine, "theirs", uid="1000")

    with pytest.raises(WorkloadAmbiguous, match="of uid 1000: theirs"):
        stopped(engine, "job", uid=1001)
    assert [each.status for each in engine.kept] == ["running"]

    assert stopped(engine, "theirs", uid=1001)[0].removed


@pytest.mark.parametrize(("written", "uid"), [("1000", 1000), ("1000", 0), ("", 1001), ("x", 1001)])
def test_ones_own_is_stopped_by_its_profile(written: str, uid: int) -> None:
    """Root stops everybody's; one of which nobody wrote down whose it is, anybody's."""
    engine = an_engine()
    started(engine, "a", uid=written)

    assert stopped(engine, "job", uid=uid)[0].removed


def test_one_label_alone_makes_no_workload() -> None:
    """Anybody can set it; every one of ours says who looks after it."""
    forged = {"Id": "9" * 64, "Names": ["/x"], "Labels": {"io.rocmrun.role": "workload"}, "State": "running"}  # fmt: skip

    assert list_workloads(an_engine(others=[forged]), ended=True) == ()


def test_the_time_to_stop_can_be_said() -> None:
    engine = an_engine()
    started(engine, "a")

    stopped(engine, "a", time_seconds=0)

    assert engine.stop_seconds == [0]


@pytest.mark.parametrize(("keep", "option"), [(True, False), (False, True)])
def test_what_is_to_be_kept_is_kept(keep: bool, option: bool) -> None:  # noqa: FBT001  # parameters
    engine = an_engine()
    started(engine, "a", keep=keep)

    (found,) = stopped(engine, "a", keep=option)

    assert not found.removed
    assert [each.status for each in engine.kept] == ["exited"]


@pytest.mark.parametrize(
    ("keep", "told"),
    [
        (True, "a had ended with code 3; kept: docker rm a removes it"),
        (False, "a had ended with code 3; its container and its log are removed"),
    ],
)
def test_one_that_had_ended_is_told(keep: bool, told: str) -> None:  # noqa: FBT001  # a parameter
    """A name alone would look as if it had been stopped just now."""
    engine = an_engine(Script(exit_code=3))
    started(engine, "a", keep=keep)

    (found,) = stopped(engine, "job")

    assert (found.had_ended, found.exit_code, found.removed) == (True, 3, not keep)
    assert str(found) == told


def test_of_one_that_ran_its_name_is_enough() -> None:
    engine = an_engine()
    started(engine, "a", keep=True)

    (found,) = stopped(engine, "a")

    assert (found.had_ended, str(found)) == (False, "")


NOT_FOUND = EngineFailed("cannot inspect the container: No such container")


def test_one_that_is_listed_and_not_found_yet_is_looked_at_again() -> None:
    """The engine lists a new container a moment before it finds it: taken for gone, it would run on."""
    engine = an_engine()
    started(engine, "a")
    engine.failures_once = {"inspect workload": NOT_FOUND}

    assert stopped(engine, "a") == (Stopped(name="a", exit_code=137, removed=True),)
    assert engine.stop_seconds == [33]

    started(engine, "b")
    engine.failures_once = {"inspect workload": NOT_FOUND}
    written: list[bytes] = []
    show_log(engine, "b", follow=False, tail=1, write=lambda _, data: written.append(data))
    assert written == [b"err\n"]


class Forgetful(FakeEngine):
    """An engine that removes its containers between its list and whatever comes next."""

    def containers(self, label: str, *, running_only: bool = False) -> list[dict[str, Any]]:
        found = super().containers(label, running_only=running_only)
        self.containers_by_id.clear()
        return found


def test_one_that_is_gone_once_it_was_listed_is_no_failure_of_the_engine() -> None:
    """It is stopped, its log is not there, and nobody can wait for it."""
    engine = Forgetful(scripts={"workload": UNTIL_STOPPED})
    started(engine, "a")
    assert stopped(engine, "a") == (Stopped(name="a", exit_code=None, removed=True),)

    started(engine, "a")
    with pytest.raises(WorkloadNotFound, match="a was removed a moment ago"):
        show_log(engine, "a", follow=False, tail=None)

    started(engine, "a")
    with pytest.raises(EngineFailed, match="no such container"):
        wait(engine, "a")


def test_one_that_stays_listed_and_cannot_be_looked_at_is_a_failure() -> None:
    """Then the engine says why; it is not looked at for ever."""
    engine = an_engine(failures={"inspect workload": NOT_FOUND})
    made = started(engine, "a")
    pauses: list[float] = []

    with pytest.raises(EngineFailed, match="No such container"):
        record_of(engine, made, pause=pauses.append)

    assert 0 < sum(pauses) < 2


def test_a_foreground_workload_is_left_to_its_rocmrun() -> None:
    engine = an_engine()
    started(engine, "a", detached=False, controller=ALIVE)
    started(engine, "b", detached=False, controller=DEAD)

    assert [each.removed for each in stopped(engine, "a", "b")] == [False, True]

    assert [each.name for each in engine.kept] == ["a"]


def test_one_that_was_removed_meanwhile_is_stopped_too() -> None:
    engine = an_engine()
    made = started(engine, "a", detached=False, controller=ALIVE)
    engine.on_stop = lambda: engine.remove(made)

    assert stopped(engine, "a") == (Stopped(name="a", exit_code=None, removed=False),)


def test_nothing_is_stopped_where_one_is_not_found() -> None:
    engine = an_engine()
    started(engine, "a")

    with pytest.raises(WorkloadNotFound):
        stopped(engine, "a", "b")

    assert [each.status for each in engine.kept] == ["running"]


def test_two_names_of_one_workload_stop_it_once() -> None:
    engine = an_engine()
    started(engine, "a")

    assert len(stopped(engine, "a", "job")) == 1


def test_waiting_returns_the_workloads_code() -> None:
    engine = an_engine(Script(until_killed=True, exit_code=7))
    made = started(engine, "a")
    threading.Timer(0.1, engine.kill, (made, "SIGTERM")).start()

    workload, code = wait(engine, "job")

    assert (workload.name, code) == ("a", 7)
    assert wait(engine, "a")[1] == 7


class Restarting(FakeEngine):
    """An engine that starts its one container again before it lets it end, and may forget it then."""

    def __init__(self, *codes: int, forgets: bool = False) -> None:
        super().__init__(scripts={"workload": UNTIL_STOPPED})
        self.codes, self.forgets = list(codes), forgets

    def wait(self, container_id: str, timeout_seconds: float | None = None) -> int:  # noqa: ARG002  # the protocol's
        return self.codes.pop(0)

    def state(self, container_id: str) -> ContainerState:  # noqa: ARG002  # the protocol's
        if self.forgets:
            msg = "no such container"
            raise EngineFailed(msg)
        return ContainerState(status="restarting" if self.codes else "exited")


@pytest.mark.parametrize(("codes", "forgets", "code"), [((1, 1, 3), False, 3), ((5,), True, 5)])
def test_one_that_is_started_again_has_not_ended(
    codes: tuple[int, ...], *, forgets: bool, code: int
) -> None:
    """And one that its own rocmrun has removed has."""
    engine = Restarting(*codes, forgets=forgets)
    started(engine, "a")

    assert wait(engine, "a")[1] == code


def test_a_wait_that_fails_says_so() -> None:
    engine = an_engine(failures={"wait workload": EngineFailed("the engine has gone")})
    started(engine, "a")

    with pytest.raises(EngineFailed, match="the engine has gone"):
        wait(engine, "a")


def test_a_log_comes_on_two_streams_as_it_was_printed() -> None:
    engine = an_engine(
        Script(frames=[(STDOUT, b"\x1b[31mred\n"), (STDERR, b"err\n"), (STDOUT, b"z")])
    )
    started(engine, "a")
    written: list[tuple[int, bytes]] = []

    show_log(engine, "job", follow=True, tail=None, write=lambda *frame: written.append(frame))
    show_log(engine, "a", follow=False, tail=1, write=lambda *frame: written.append(frame))

    assert written == [(1, b"\x1b[31mred\n"), (2, b"err\n"), (1, b"z"), (1, b"z")]


def test_a_foreground_workload_has_no_log() -> None:
    engine = an_engine()
    started(engine, "a", log="none")

    with pytest.raises(UsageError, match="a has no log") as caught:
        show_log(engine, "a", follow=False, tail=None)

    assert "--detach and --keep" in (caught.value.hint or "")


def test_a_reader_that_has_gone_ends_it() -> None:
    """`rocmrun logs x | head`: the entry point ends with 141."""
    engine = an_engine()
    started(engine, "a")

    def gone(_descriptor: int, _data: bytes) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        show_log(engine, "a", follow=True, tail=None, write=gone)
