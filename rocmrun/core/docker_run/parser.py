"""Read a published `docker run` line: what it asks for, in values. Judges nothing and expands nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rocmrun.core.docker_run.options import (
    GLOBAL_SHORT_VALUED,
    GLOBAL_VALUED,
    RunOption,
    is_true,
    take_options,
)
from rocmrun.core.docker_run.shell_words import OPEN, Word, expressions, plain, read_shell
from rocmrun.errors import UsageError

PROGRAMS = frozenset({"docker", "podman", "nerdctl"})
_PREFIXES = frozenset({"sudo", "exec", "time", "command", "nohup"})
_SUBCOMMANDS = frozenset({"run", "create"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PROMPT = re.compile(r"\A\s*[$>%#] +(?=\S)")
_SUBSTITUTED = re.compile(r"\A\s*[A-Za-z_]\w*=\$\((.*)\)\s*\Z", re.DOTALL)
_ALIAS = re.compile(
    r"\A\s*alias +([\w-]+)='([^']*)'\s*\n\s*\1(?=\s)(.*)\Z", re.DOTALL
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerRun:
    """A `docker run` line, taken apart. Texts hold marked expressions (`rocmrun.core.docker_run.shell_words`).

    Attributes:
        options: In the order given; an option that may be repeated adds up, of others the last counts.
        image: "" where the line has none.
        repairs: What bash or docker would have refused, and how it was read.
        expansions: Variables that stand for whole options: what they hold is not known.
    """

    options: tuple[RunOption, ...]
    image: str
    command: tuple[str, ...]
    repairs: tuple[str, ...] = ()
    expansions: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of an option."""
        return tuple(option.value for option in self.options if option.name == name)

    def last(self, name: str) -> str | None:
        """Return the value that counts of an option; None where it is not given."""
        return next(iter(self.all(name)[::-1]), None)

    def has(self, flag: str) -> bool:
        """Whether a flag is on."""
        return is_true(self.last(flag) or "")

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Every expression that stands in it, as written."""
        texts = (*(option.value for option in self.options), self.image, *self.command)
        found = [expression for text in texts for expression in expressions(text)]
        return tuple(dict.fromkeys((*self.vanished, *self.expansions, *found)))


def parse_docker_run(text: str) -> DockerRun:
    """Return what the `docker run` (or create, or podman's) line in *text* says.

    Raises:
        UsageError: there is none in it, or it has an option that engines do not have.
    """
    body = _unwrapped(text)
    try:
        shell = read_shell(body)
        words = _run_words(shell.commands)
        options, rest, expansions = take_options(words)
    except ValueError as error:
        msg = f"the docker run line cannot be read: {error}"
        raise UsageError(
            msg, hint="pass the whole line in single quotes, as it was published"
        ) from error
    image = rest[0].text if rest else ""
    return DockerRun(
        options=tuple(options),
        image=image,
        command=tuple(word.text for word in rest[1:]),
        repairs=shell.repairs,
        expansions=tuple(expansions),
        vanished=shell.vanished,
    )


def _unwrapped(text: str) -> str:
    """Take the command out of a prompt, an assignment or an alias with its use."""
    body = _PROMPT.sub("", text)
    if match := _SUBSTITUTED.match(body):
        return match[1]
    if match := _ALIAS.match(body):
        return f"{match[2]} {match[3]}"
    return body


def _run_words(commands: Sequence[Sequence[Word]]) -> list[Word]:
    """Return the words after `docker run` of the first command that is one."""
    for command in commands:
        words = list(command)
        while words and (words[0].text in _PREFIXES or _ASSIGNMENT.match(words[0].text)):
            words.pop(0)
        if words and plain(words[0].text).rpartition("/")[2] in PROGRAMS:
            found = _after_subcommand(words[1:])
            if found is not None:
                return found
    msg = "there is no `docker run` in it"
    raise ValueError(msg)


def _after_subcommand(words: list[Word]) -> list[Word] | None:
    """Return the words after run or create, with --runtime of the program itself in front; None for another."""
    own: list[Word] = []
    while words and words[0].text.startswith("-"):
        option = words.pop(0)
        name, equals, _ = option.text.lstrip("-").partition("=")
        valued = name in GLOBAL_VALUED or name in GLOBAL_SHORT_VALUED
        value = [words.pop(0)] if valued and not equals and words else []
        own += [option, *value] if name == "runtime" else []
    if words and words[0].text == "container":
        words.pop(0)
    if not words or words[0].text not in _SUBCOMMANDS or OPEN in words[0].text:
        return None
    return [*own, *words[1:]]
