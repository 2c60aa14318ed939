"""What people see of a pull, on a terminal and off it, and that a stall is said."""

import contextlib
import io
import threading
from collections.abc import Callable, Iterator

import pytest

from rocmrun.console import pull
from rocmrun.console.output import settings
from rocmrun.console.pull import shown_pull, watched
from rocmrun.core.run import PullEvent
from rocmrun.core.text import MIB
from rocmrun.errors import EngineFailed

LAYER = PullEvent(layer="a", status="Downloading", current=1 * MIB, total=4 * MIB)
LAST = PullEvent(layer="", status="Status: Downloaded newer image for x")
PATIENCE_SECONDS = 60


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


def ticking(step: float) -> Callable[[], float]:
    """Return a clock that goes on by *step* seconds whenever it is read."""
    now = [0.0]

    def clock() -> float:
        now[0] += step
        return now[0]

    return clock


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    settings.quiet = settings.verbose = False


def test_off_a_terminal_a_line_at_the_start_and_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown_pull(clock=ticking(0.5)) as take:
        for _ in range(100):
            take(LAYER)
        take(LAST)

    first, last = capsys.readouterr().err.splitlines()
    assert first == "rocmrun: fetching the image, which is not on this machine"
    assert last.startswith("rocmrun: fetched 4 MiB in ")


def test_a_pull_that_fails_has_no_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Its error is told by whoever handles it."""
    with contextlib.suppress(EngineFailed), shown_pull() as take:
        take(LAYER)
        raise EngineFailed("x")  # noqa: EM101  # any error

    assert len(capsys.readouterr().err.splitlines()) == 1


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    settings.quiet = True

    with shown_pull() as take:
        take(LAYER)

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("step", "drawn"), [(1.0, 3), (0.001, 1)])
def test_on_a_terminal_one_line_is_drawn_again(step: float, drawn: int) -> None:
    """At most four times a second, and it is gone in the end."""
    terminal = Terminal()

    with contextlib.redirect_stderr(terminal), shown_pull(clock=ticking(step)) as take:
        for _ in range(3):
            take(LAYER)

    text = terminal.getvalue()
    assert text.count("\r\x1b[Krocmrun: downloaded 1 MiB of 4 MiB, 0 of 1 layer") == drawn
    assert "layer\r\x1b[Krocmrun: fetched 4 MiB in " in text


def test_a_stall_is_said_with_how_far_the_pull_is(capsys: pytest.CaptureFixture[str]) -> None:
    said = threading.Event()
    shown = pull._ShownPull(live=False, clock=ticking(0))
    shown.take(LAYER)

    def notice(seconds: float) -> None:
        shown.say_stalled(seconds)
        said.set()

    with watched(0.01, notice, clock=ticking(0.02)):
        assert said.wait(PATIENCE_SECONDS)

    assert "nothing has come from the engine for 0 s (downloaded 1 MiB of 4 MiB, 0 of 1 layer)" in (
        capsys.readouterr().err
    )


def test_a_stall_is_noticed_after_so_many_seconds_and_again_after_as_many() -> None:
    """And silence is counted from the last word."""
    now, silences = [100.0], list[float]()
    watch = pull._Watch(seconds=60, notice=silences.append, clock=lambda: now[0])

    def at(second: float) -> float:
        now[0] = 100 + second
        return watch.check()

    assert [at(0), at(59)] == [60, 1]
    assert silences == []
    assert [at(61), at(119)] == [59, 1]
    assert silences == [61]
    at(120)
    watch.hear()
    assert at(179) == 1
    at(180)
    assert silences == [61, 120, 60]


def test_sixty_seconds_are_the_limit() -> None:
    assert pull.STALL_SECONDS == 60


def test_the_watch_ends_with_the_pull() -> None:
    with shown_pull(stall_seconds=3600):
        assert "rocmrun-stall" in {thread.name for thread in threading.enumerate()}

    assert "rocmrun-stall" not in {thread.name for thread in threading.enumerate()}


def test_what_is_worth_a_warning_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where nobody asked to hear of the pull itself."""
    settings.quiet = True

    with shown_pull() as take:
        take(PullEvent(warning="asked without a login"))

    assert capsys.readouterr().err == "warning: asked without a login\n"
