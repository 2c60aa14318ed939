"""Commands are documented, helped, and right wherever they are shown."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rocmrun.__main__ import run
from rocmrun.cli.main import COMMANDS, cli
from rocmrun.core.host_json import host_to_json
from rocmrun.system.profile_search import ProfileDirectory, ProfileSearch, shipped_directory
from rocmrun.usecases.profiles import load_profile
from scripts.docs.commands import subcommand
from scripts.docs.session import mi300x_host
from tests.docs.documents import (
    DOCUMENTS,
    README,
    ROOT,
    anchors,
    blocks,
    named_commands,
    parse,
    shown_commands,
    words_of,
)

MODELS = "/srv/models"
ENGINE_NEEDED = {
    "launch", "probe", "lock", "clean", "ps", "logs", "stop", "wait", "diff-privileges",
}  # fmt: skip
SHIPPED = ProfileSearch(
    directories=(ProfileDirectory(path=shipped_directory(), origin="shipped"),),
    working_directory=ROOT,
    home=None,
)


def leaves(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its words."""
    for name in group.list_commands(click.Context(group)):
        command = subcommand(group, name)
        if isinstance(command, click.Group):
            yield from leaves(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


LEAVES = dict(leaves(cli))


def examples(command: click.Command) -> list[str]:
    """Return the lines of a help text that show the command at work."""
    lines = (line.strip() for line in (command.help or "").splitlines())
    return [line for line in lines if line.startswith("rocmrun ")]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_in_the_readme_and_in_the_reference(name: str) -> None:
    """Both are generated: `make docs` after a new command."""
    assert f"[`{name}`](docs/commands.md#rocmrun-{name})" in README.read_text(encoding="utf-8")
    assert f"rocmrun-{name}" in anchors(ROOT / "docs" / "commands.md")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_one_of_the_command(name: str) -> None:
    """`rocmrun --help` lists commands without importing them; both must say the same."""
    command = subcommand(cli, name)

    assert COMMANDS[name][1] == command.get_short_help_str(limit=200)


@pytest.mark.parametrize("name", LEAVES)
def test_a_command_and_its_options_have_help(name: str) -> None:
    """Every command shows an example of itself, every option that is not hidden says what it does."""
    command = LEAVES[name]
    options = [option for option in command.params if isinstance(option, click.Option)]
    silent = [option.name for option in options if not option.hidden and not option.help]

    assert any(f"rocmrun {name}" in line for line in (command.help or "").splitlines())
    assert silent == []


@pytest.mark.parametrize("name", LEAVES)
def test_examples_of_help_are_right(name: str) -> None:
    """They parse, and set only parameters that their profile has."""
    for line in examples(LEAVES[name]):
        check(words_of(line))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_in_documents_are_right(document: Path) -> None:
    """Every `rocmrun …` in a block parses; in running text it may leave out arguments."""
    for words in shown_commands(document):
        check(words)
    for words in named_commands(document):
        with contextlib.suppress(click.MissingParameter):
            check(words)


def check(words: tuple[str, ...]) -> None:
    """Fail unless *words* is a command line that rocmrun takes; nothing is run."""
    try:
        context = parse(words)
    except click.MissingParameter:
        raise
    except (click.ClickException, ValueError) as error:
        pytest.fail(f"rocmrun {' '.join(words)}: {error}")
    parameters = context.params if context else {}
    profile = parameters.get("profile")
    if profile in {file.name for file in SHIPPED.all()} and (
        settings := parameters.get("settings")
    ):
        load_profile(profile, search=SHIPPED, settings=settings)


@pytest.fixture
def corner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the README's reader has it: the profile that it shows, the model, a saved host."""
    (profile,) = blocks(README, "toml")
    (tmp_path / "models").mkdir()
    (tmp_path / "profiles").mkdir()
    text = profile.replace(MODELS, str(tmp_path / "models"))
    (tmp_path / "profiles" / "serve.toml").write_text(text, encoding="utf-8")
    saved = {"v": 1, "ok": True, **host_to_json(mi300x_host())}
    (tmp_path / "host.json").write_text(json.dumps(saved), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readme_runs(corner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command in it that needs no engine is run, on a saved host where GPUs are planned for."""
    ran = set()
    for words in (*shown_commands(README), *named_commands(README)):
        if words[0] in ENGINE_NEEDED or (words[0] == "plan" and "--offline" not in words):
            continue
        here = [word.replace(MODELS, str(corner / "models")) for word in words]
        if words[0] == "plan" and "--host" not in words:
            here += ["--host", "host.json"]
        code = run(here)
        said = capsys.readouterr()
        assert code == 0, f"rocmrun {' '.join(here)}\n{said.err}"
        ran.add((words[0], "--offline" in words))

    assert ran == {("plan", True), ("profiles", False), ("host", False)}


def test_the_readmes_profile_gets_what_it_asks_for(
    corner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its grant, its mount and its command are in the plan, with the reason that it gives."""
    code = run(["plan", "serve", "--offline", "--host", "host.json", "--json"])

    said = capsys.readouterr()
    assert code == 0, said.err
    plan = json.loads(said.out)["plan"]
    reasons = {grant["what"]: grant["reason"] for grant in plan["grants"]}
    assert "serve.py binds its buffers to NUMA nodes with mbind" in reasons["seccomp:+mempolicy"]
    assert f"bind of {corner / 'models'}" == reasons["mount:/models:ro"]
    assert plan["command"] == ["python3", "/models/serve.py"]
