"""What people see of a probe that runs, on a terminal and off it."""

import contextlib
import io
import time
from collections.abc import Iterator

import pytest

from rocmrun.console.output import settings
from rocmrun.console.probe_progress import shown_probe
from rocmrun.core.report.model import Doing, ProbeCheck

GOOD = ProbeCheck(group="device", name="copy", device=0, status="pass")
BAD = ProbeCheck(group="device", name="copy", device=1, status="fail", reason="3 values changed")
DOING = Doing(group="device", name="matmul_fp16", device=1)
PATIENCE_SECONDS = 60


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    yield
    settings.quiet = settings.verbose = False


def drawn(seen: str) -> str:
    """Show two devices on a terminal until *seen* is there; return all that was written."""
    terminal = Terminal()
    with contextlib.redirect_stderr(terminal), shown_probe() as take:
        take(DOING)
        take(GOOD)
        take(BAD)
        take(DOING)
        end = time.monotonic() + PATIENCE_SECONDS
        while seen not in terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.02)
    return terminal.getvalue()


def test_off_a_terminal_what_failed_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_probe() as take:
        take(DOING)
        take(GOOD)
        take(BAD)

    assert capsys.readouterr().err == "rocmrun: probe: device 1: copy fail: 3 values changed\n"


def test_with_verbose_every_check_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    settings.verbose = True

    with shown_probe() as take:
        take(GOOD)

    assert capsys.readouterr().err == "rocmrun: probe: device 0: copy pass\n"


def test_off_a_terminal_a_line_now_and_then_says_what_is_under_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is all that is heard of a device that hangs."""
    heard = ""
    with shown_probe(beat_seconds=0.02) as take:
        take(GOOD)
        take(DOING)
        end = time.monotonic() + PATIENCE_SECONDS
        while "device 1 matmul_fp16" not in heard and time.monotonic() < end:
            time.sleep(0.02)
            heard += capsys.readouterr().err

    assert "rocmrun: probe: 1 checks done after 0 s; under way: device 1 matmul_fp16\n" in heard


def test_on_a_terminal_each_device_has_a_row() -> None:
    """And a failure stands above them, to stay."""
    text = drawn("matmul_fp16 0 s")

    assert "device 0  1 pass" in text
    assert "device 1  1 fail  matmul_fp16 0 s" in text
    assert "rocmrun: probe: device 1: copy fail: 3 values changed" in text


@pytest.mark.parametrize("why", ["quiet", "dumb"])
def test_nothing_is_drawn_where_nothing_should_be(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    settings.quiet = why == "quiet"
    if why == "dumb":
        monkeypatch.setenv("TERM", "dumb")

    with contextlib.redirect_stderr(terminal), shown_probe() as take:
        take(GOOD)

    assert terminal.getvalue() == ""
