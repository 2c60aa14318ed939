"""The foreground relay: terminal, input, and ends that are not the usual one."""

import os
import pty
import signal
from collections.abc import Callable
from typing import Any

import pytest

from rocmrun.core.create_request import create_request
from rocmrun.errors import EngineFailed
from rocmrun.usecases.foreground import Foreground
from tests.builders import plan
from tests.fakes import FakeEngine, Script

LABELS = {"io.rocmrun.role": "workload"}


def relay(
    script: Script, *, tty: bool = False, stdin: bool = False, **options: Any
) -> tuple[FakeEngine, Callable[[], int], list[str]]:
    """Return the engine, what runs its one container, and what will be said."""
    engine = FakeEngine(scripts={"workload": script}, **options)
    request = create_request(plan(), role="workload", labels=LABELS)
    container_id = engine.create(request, "x", "linux/amd64").container_id
    said: list[str] = []
    foreground = Foreground(
        engine=engine,
        container_id=container_id,
        attachment=engine.attach(container_id, stdin=stdin, tty=tty),
        stdin=stdin,
        tty=tty,
        say=said.append,
        on_started=lambda: said.append("started"),
    )
    return engine, lambda: foreground.run(5), said


def send(*numbers: signal.Signals) -> Callable[[], None]:
    def on_start() -> None:
        for number in numbers:
            os.kill(os.getpid(), number)

    return on_start


def test_a_window_that_changes_its_size_tells_the_container() -> None:
    script = Script(
        until_killed=True, on_start=send(signal.SIGWINCH, signal.SIGTERM), exit_code=143
    )
    engine, run, said = relay(script, tty=True)

    assert run() == 143

    assert len(engine.made("workload").sizes) == 2
    assert engine.made("workload").signals == ["SIGTERM"]
    assert said == ["started"]


def test_a_size_that_the_engine_never_takes_is_not_worth_a_failed_run() -> None:
    engine, run, _ = relay(Script(exit_code=4), tty=True, failures={"resize workload": EngineFailed("no")})  # fmt: skip

    assert run() == 4

    assert engine.calls.count("resize workload") == 20


def test_a_terminal_is_given_back_as_it_was() -> None:
    import termios

    leader, follower = pty.openpty()
    saved = os.dup(0)
    before = termios.tcgetattr(follower)
    seen: list[Any] = []
    script = Script(on_start=lambda: seen.append(termios.tcgetattr(0)))
    _, run, _ = relay(script, tty=True, stdin=True)
    try:
        os.dup2(follower, 0)
        assert run() == 0
    finally:
        os.dup2(saved, 0)
        os.close(saved)

    assert seen[0] != before
    assert termios.tcgetattr(follower) == before
    os.close(leader)
    os.close(follower)


def test_an_engine_that_fails_while_the_workload_runs_is_not_an_exit_code() -> None:
    _, run, _ = relay(Script(), failures={"wait workload": EngineFailed("gone")})

    with pytest.raises(EngineFailed, match="gone"):
        run()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGCONT])
def test_handlers_are_put_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    _, run, _ = relay(Script(until_killed=True, on_start=send(number), exit_code=1))

    assert run() == 1

    assert signal.getsignal(number) == before
