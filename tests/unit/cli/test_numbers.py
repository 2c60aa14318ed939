"""Options that take a number: what is none is refused, by every command."""

import importlib
import json

import click
import pytest

from rocmrun.__main__ import run
from rocmrun.cli.main import COMMANDS
from rocmrun.cli.options import Number, Seconds


def every_command() -> list[click.Command]:
    found = []
    for module, _ in COMMANDS.values():
        command = importlib.import_module(module).command
        found += [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
    return found


def test_no_command_takes_what_is_no_number() -> None:
    """click's own range takes "nan", with which every comparison is false: a budget would never be exceeded."""
    plain = [
        (command.name, option.name)
        for command in every_command()
        for option in command.params
        if isinstance(option.type, click.types.FloatParamType)
        and not isinstance(option.type, Number)
    ]

    assert plain == []


@pytest.mark.parametrize("text", ["nan", "inf", "1e300"])
@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "--container", "x", "--watch"],
        ["doctor", "--container", "x", "--watch", "5", "--interval"],
        ["diff-privileges", "x", "--timeout"],
        ["launch", "x", "--wait"],
        ["lock", "--timeout"],
    ],
)
def test_a_time_is_a_number_that_ends(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage, and no bug when the clock is asked for it."""
    run([*words, text, *([] if words[0] == "launch" else ["--json"])])

    shown = capsys.readouterr()
    said = json.loads(shown.out)["error"] if shown.out else {"message": shown.err}
    assert "nan' is no number" in said["message"] or "is more than a year" in said["message"]


def test_a_range_still_holds() -> None:
    """Its ends, open or not."""
    with pytest.raises(click.BadParameter, match="not in the range"):
        Seconds(0, min_open=True).convert("0", None, None)
    assert Seconds(0).convert("0.5", None, None) == 0.5
    assert Number(0, 10).convert("10", None, None) == 10
