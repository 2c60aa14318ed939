"""`rocmrun doctor --container` on the command line: what goes together, and what a failure returns."""

import json

import pytest

from rocmrun.__main__ import run

pytestmark = [
    pytest.mark.usefixtures("no_engine"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_it_needs_an_engine(capsys: pytest.CaptureFixture[str]) -> None:
    """Unlike the rest of the doctor."""
    assert run(["doctor", "--container", "x", "--json"]) == 6

    assert json.loads(capsys.readouterr().out)["error"]["slug"] == "engine-unreachable"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--container", "x", "demo"], "--container goes with neither"),
        (["--container", "x", "--log", "-"], "--container goes with neither"),
        (["--watch", "5"], "are for --container NAME"),
        (["--interval", "5"], "are for --container NAME"),
        (["--container", "x", "--interval", "5"], "--interval is for --watch SECONDS"),
        (["--container", "x", "--watch", "0"], "0.0 is not in the range"),
        (["--container", "x", "--watch", "soon"], "not a valid float"),
    ],
)
def test_what_does_not_go_together(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, before anything is looked at."""
    assert run(["doctor", *words]) == 2

    assert says in capsys.readouterr().err
