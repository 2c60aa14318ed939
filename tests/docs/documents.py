"""The project's Markdown files, taken apart: headings, links, and the commands that they show."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import click

from rocmrun.cli.main import cli
from scripts.docs.commands import subcommand
from scripts.docs.markdown import anchor

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
DOCUMENTS = (
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
)
# What stands in for something else in a command that is shown.
PLACEHOLDERS = ("…", "COMMAND", "[OPTIONS]")

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENDS_COMMAND = (">", "|", "&&")


def blocks(path: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return [body for name, body in _FENCED.findall(text_of(path)) if name == language]


def prose(path: Path) -> str:
    """Return the text without its fenced blocks."""
    return _FENCED.sub("", text_of(path))


def sections(path: Path) -> dict[str, str]:
    """Return heading → text of every section of the second level, in order."""
    _, *parts = re.split(r"^## (.+)$", text_of(path), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def anchors(path: Path) -> set[str]:
    """Return the anchors of all headings."""
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)}


def links(path: Path) -> list[str]:
    """Return the targets of all links."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(path))


def spans(path: Path) -> list[str]:
    """Return what stands between backticks in running text."""
    return re.findall(r"`([^`\n]+)`", prose(path))


def shown_commands(path: Path) -> list[tuple[str, ...]]:
    """Return the words of every `rocmrun` command in blocks."""
    lines = (line for block in blocks(path, "console") for line in block.splitlines())
    return _commands(line.removeprefix("$ ") for line in lines if line.startswith("$ "))


def named_commands(path: Path) -> list[tuple[str, ...]]:
    """Return the words of every `rocmrun` command in running text; arguments may be left out there."""
    return _commands(spans(path))


def _commands(lines: Iterable[str]) -> list[tuple[str, ...]]:
    return [
        words_of(line)
        for line in lines
        if line.startswith("rocmrun ") and not any(word in line for word in PLACEHOLDERS)
    ]


def words_of(line: str) -> tuple[str, ...]:
    """Return the words after `rocmrun` in one line of shell, without comment and redirection."""
    words = shlex.split(line, comments=True)[1:]
    end = next((n for n, word in enumerate(words) if word in _ENDS_COMMAND), len(words))
    return tuple(words[:end])


def parse(words: tuple[str, ...]) -> click.Context | None:
    """Parse a command without running it; None where click has answered already, as for --help.

    Raises:
        click.ClickException: there is no such command or option, or a value has the wrong form.
    """
    command: click.Command = cli
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        command = subcommand(command, rest.pop(0))
    try:
        return command.make_context(command.name, rest)
    except click.exceptions.Exit:
        return None


def text_of(path: Path) -> str:
    """Return the whole text."""
    return path.read_text(encoding="utf-8")
