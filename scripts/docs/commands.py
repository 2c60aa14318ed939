"""The reference of every command, docs/commands.md: from the same declarations as `--help`."""

import inspect
from collections.abc import Collection
from textwrap import dedent

import click

from rocmrun.cli.main import COMMANDS, cli
from scripts.docs.markdown import anchor, fenced, table

Record = tuple[str, str]

# The options that these have in common are one set: they ask for the same plan.
PLANNING = ("launch", "plan", "probe")
PLANNING_HEADING = "Options that change a plan"


def reference() -> str:
    """Return every command with its help, its examples and its options."""
    shared = _shared()
    parts = ["## rocmrun", _options(_records(cli, "rocmrun"))]
    for name in COMMANDS:
        parts += _command(
            f"rocmrun {name}", subcommand(cli, name), shared if name in PLANNING else ()
        )
    parts += [f"## {PLANNING_HEADING}", "Of `launch`, `plan` and `probe`.", _options(shared)]
    return "\n\n".join(part for part in parts if part)


def subcommand(group: click.Group, name: str) -> click.Command:
    """Return the command of that name."""
    command = group.get_command(click.Context(group), name)
    if command is None:
        msg = f"{group.name} has no command {name}"
        raise ValueError(msg)
    return command


def _command(path: str, command: click.Command, shared: Collection[Record]) -> list[str]:
    context = click.Context(command, info_name=path)
    usage = " ".join((path, *command.collect_usage_pieces(context)))
    own = [record for record in _records(command, path) if record not in shared]
    parts = [f"## {path}", f"`{usage}`", *_help(command), _options(own)]
    if shared:
        parts.append(f"Also the [{PLANNING_HEADING.lower()}](#{anchor(PLANNING_HEADING)}).")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            parts += _command(f"{path} {name}", subcommand(command, name), ())
    return parts


def _help(command: click.Command) -> list[str]:
    """Return the paragraphs of a help text; examples, which click prints as they stand, become blocks."""
    parts = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        mark, *lines = paragraph.splitlines()
        if mark == "\b":
            examples = dedent("\n".join(lines[1:])).splitlines()
            parts.append(fenced("console", (f"$ {example}" for example in examples)))
        else:
            parts.append(" ".join((mark, *lines)))
    return parts


def _shared() -> tuple[Record, ...]:
    first, *others = (_records(subcommand(cli, name), f"rocmrun {name}") for name in PLANNING)
    return tuple(record for record in first if all(record in other for other in others))


def _records(command: click.Command, path: str) -> tuple[Record, ...]:
    """Return spelling and help of each option, hidden ones and --help left out."""
    context = click.Context(command, info_name=path)
    options = [option for option in command.params if isinstance(option, click.Option)]
    return tuple(record for option in options if (record := option.get_help_record(context)))


def _options(records: Collection[Record]) -> str:
    return table(("option", "meaning"), [(f"`{spelling}`", text) for spelling, text in records])
