"""The foreground relay: terminal, input, and ends that are not the usual one."""

import os
import pty
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rocmrun.core.create_request import create_request
from rocmrun.errors import EngineFailed
from rocmrun.usecases.foreground import LAST_BYTES, Foreground
from tests.builders import plan
from tests.fakes import FakeEngine, Script, Streams

LABELS = {"io.rocmrun.role": "workload"}


def made(
    script: Script, *, tty: bool = False, stdin: bool = False, **options: Any
) -> tuple[FakeEngine, Foreground, list[str]]:
    """Return the engine, the relay of its one container, and what will be said."""
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
    return engine, foreground, said


def relay(
    script: Script, *, stop_timeout: int = 5, **options: Any
) -> tuple[FakeEngine, Callable[[], int], list[str]]:
    """Return the engine, what runs its one container, and what will be said."""
    engine, foreground, said = made(script, **options)
    return engine, lambda: foreground.run(stop_timeout), said


class Unread(Streams):
    """Output that never comes to its end."""

    def __init__(self) -> None:
        """Belong to no container."""

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Wait, longer than any test."""
        threading.Event().wait(60)
        yield from ()


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


def test_a_workload_that_ignores_sigterm_is_killed_after_its_time(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As `docker stop` does it; what it printed until then is out."""
    script = Script(
        frames=[(1, b"working\n")],
        until_killed=True,
        ignores=frozenset({"SIGTERM"}),
        on_start=send(signal.SIGTERM),
    )
    engine, run, said = relay(script, stop_timeout=0)

    assert run() == 137

    assert engine.made("workload").signals == ["SIGTERM", "SIGKILL"]
    assert said == ["started", "it still runs 0 s after SIGTERM", "killing the container"]
    assert capfd.readouterr().out == "working\n"


def test_a_reader_that_takes_nothing_does_not_outlast_the_stop() -> None:
    """The workload has ended in time; what is not read by then is left behind."""
    script = Script(
        until_killed=True, ignores=frozenset({"SIGTERM"}), on_start=send(signal.SIGTERM)
    )
    engine, foreground, said = made(script)
    foreground.attachment = Unread()
    ending = threading.Timer(0.2, lambda: engine.made("workload").end(7))
    ending.start()

    assert foreground.run(1) == 7

    ending.join()
    assert engine.made("workload").signals == ["SIGTERM"]
    assert said == ["started"]


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGHUP])
def test_other_signals_start_no_clock(number: signal.Signals) -> None:
    """What else a workload is sent is its own affair."""
    script = Script(
        until_killed=True,
        ignores=frozenset({number.name}),
        on_start=send(number),
        exit_code=7,
    )
    engine, run, said = relay(script, stop_timeout=0)
    ending = threading.Timer(0.3, lambda: engine.made("workload").end(7))
    ending.start()

    assert run() == 7

    ending.join()
    assert engine.made("workload").signals == [number.name]
    assert said == ["started"]


def test_the_last_words_are_kept_and_no_more(capfd: pytest.CaptureFixture[str]) -> None:
    """The engine's log has the rest; a terminal's screen is none of ours."""
    words = Script(frames=[(1, b"a" * 20_000), (2, b"the end\n")])
    _, plain, _ = made(words)
    _, terminal, _ = made(words, tty=True)

    assert (plain.run(5), terminal.run(5)) == (0, 0)

    assert len(plain.last_output) == LAST_BYTES
    assert plain.last_output.endswith(b"aaathe end\n")
    assert terminal.last_output == b""
    assert len(capfd.readouterr().out) == 40_000
