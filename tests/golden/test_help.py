"""What every command says of itself.

A change here is a change of what people read. Look at it, then: pytest tests/golden --snapshot-update
"""

import importlib

import click
import pytest
from syrupy.assertion import SnapshotAssertion

from rocmrun.__main__ import run
from rocmrun.cli.main import COMMANDS


def names() -> list[str]:
    """Return the words that name each command and subcommand, "" first."""
    found = [""]
    for name, (module, _) in COMMANDS.items():
        command = importlib.import_module(module).command
        found.append(name)
        if isinstance(command, click.Group):
            found += [f"{name} {child}" for child in command.commands]
    return found


@pytest.mark.parametrize("name", names())
def test_help(
    name: str,
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    assert run([*name.split(), "--help"]) == 0

    assert capsys.readouterr().out == snapshot
