"""`ps`, `logs`, `stop` and `wait` on the command line: their failures have codes that scripts can tell apart."""

import json

import pytest

from rocmrun.__main__ import run

NO_ENGINE = ("ps",), ("logs", "x"), ("stop", "x"), ("wait", "x")


pytestmark = [
    pytest.mark.usefixtures("no_engine"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("words", NO_ENGINE, ids=lambda words: words[0])
def test_without_an_engine_each_says_so(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """`wait` returns a workload's code, so its own failures have one that `docker run` has for its own."""
    code = run(list(words))

    assert code == (125 if words[0] == "wait" else 6)
    assert "error[engine-unreachable]" in capsys.readouterr().err


def test_with_json_the_class_of_a_failed_wait_is_in_the_object(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["wait", "x", "--json"]) == 125

    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["slug"], error["code"]) == ("engine-unreachable", 125)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["stop"], 2),
        (["logs"], 2),
        (["logs", "x", "--tail", "-1"], 2),
        (["stop", "x", "--time", "soon"], 2),
        (["wait"], 125),
        (["wait", "x", "--nope"], 125),
    ],
)
def test_what_is_no_command_line(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == code

    assert "go after --" not in capsys.readouterr().err
