"""Every mistake on the page gives the error that the page shows."""

import subprocess
from pathlib import Path

import pytest

from rocmrun.__main__ import run
from tests.mistakes import Mistake, mistakes
from tests.workspace import PROGRAM

LEAST = 20


def test_the_page_has_enough_of_them() -> None:
    """The first fifteen minutes have many ways to go wrong."""
    assert len(mistakes(needs_engine=False)) + len(mistakes(needs_engine=True)) >= LEAST


@pytest.mark.parametrize("mistake", mistakes(needs_engine=False), ids=lambda each: each.title)
def test_a_mistake_reads_as_shown(
    mistake: Mistake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Word for word; plans are made for a saved host."""
    work = mistake.stand(tmp_path)
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(work.parent))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    for name in (
        "HF_TOKEN",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
        "CI",
        "FORCE_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)
    host = ("--host", "host.json") if mistake.words[0] == "plan" else ()

    if mistake.words[0] == "launch":
        # It looks for an engine in a thread of its own, which would outlive the test.
        done = subprocess.run(
            [PROGRAM, *mistake.words], capture_output=True, text=True, check=False
        )
        code, printed = done.returncode, done.stdout + done.stderr
    else:
        code, captured = run([*mistake.words, *host]), capsys.readouterr()
        printed = captured.out + captured.err

    assert mistake.read(printed, tmp_path) == mistake.shown
    assert code != 0
