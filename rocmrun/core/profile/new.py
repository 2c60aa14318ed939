"""The text of a profile that `rocmrun profiles new` writes: values with the comments that a person needs. Pure."""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from rocmrun.core.docker_run.as_profile import ImportedRun
from rocmrun.core.docker_run.notes import LeftOutOption
from rocmrun.core.text import printable
from rocmrun.core.toml import dump_toml, load_toml
from rocmrun.errors import UsageError

# What --model fills in, by the names that profiles give it.
MODEL_PARAMETERS = ("model_dir", "models_dir")
_EXAMPLES = """
# What the parent says holds unless it is said here. Tables merge, lists replace. For example:
#
# [gpus]
# select = ["index:0"]                  # all | none | index:0 | pci:0000:63:00.0 | numa:1 | arch:gfx942
#
# [container]
# command = ["/model", "--max-model-len", "8192"]
# env = { NAME = "value" }
# env_from = ["NAME"]                   # taken from your environment; never shown, logged or recorded
#
# Every right beyond the baseline is written down with its reason:
# [[privileges]]
# grant = "seccomp:+mempolicy"
# reason = "binds its buffers to NUMA nodes with mbind"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProfile:
    """What was written.

    Attributes:
        path: Where; None for stdout.
        changed: What a docker run line says in another form.
        left_out: What of a docker run line the profile does not have.
        missing: Parameters that have no value yet, with their help.
        shadows: Whether it hides a shipped profile of its name.
    """

    text: str
    path: str | None
    changed: tuple[str, ...] = ()
    left_out: tuple[LeftOutOption, ...] = ()
    missing: Mapping[str, str]
    shadows: bool = False


def derived_text(
    name: str, parent: str, parameters: Mapping[str, Mapping[str, Any]], values: Mapping[str, str]
) -> str:
    """Return a profile that extends *parent*, whose *parameters* have *values* where they are known."""
    lines = [
        f"description = {_one(f'{name}, on the shipped profile {parent}')}",
        f"extends = {_one(parent)}",
        "",
        "[parameters]",
    ]
    for parameter, table in parameters.items():
        known = values.get(parameter, str(table.get("default", "…")))
        line = f"{parameter} = {{ help = {_one(str(table.get('help', '')))}, default = {_value(known)} }}"
        if parameter in values:
            lines.append(line)
        elif "default" in table:
            lines += ["# The parent's own value:", f"# {line}"]
        else:
            lines += [
                f"# Without a value it must be set at each launch: --set {parameter}=…",
                f"# {line}",
            ]
    if not parameters:
        lines.pop()
    return _header(name) + "\n".join(lines) + "\n" + _EXAMPLES


def imported_text(name: str, imported: ImportedRun, values: Mapping[str, str]) -> str:
    """Return the profile of a docker run line, with what was left out and why as comments."""
    data = {"description": f"{name}, from a docker run line", **imported.data}
    parameters = {
        parameter: {
            **table,
            **({"default": _plain_value(values[parameter])} if parameter in values else {}),
        }
        for parameter, table in data.get("parameters", {}).items()
    }
    if parameters:
        data["parameters"] = parameters
    lines = []
    if imported.changed:
        lines += ["#", "# In another form:", *_list(imported.changed)]
    if imported.left_out:
        lines += ["#", "# Left out of the docker run line:"]
        lines += _list(f"{item.what}: {item.reason}" for item in imported.left_out)
    comments = "\n".join(lines)
    return _header(name) + (f"{comments}\n" if comments else "") + "\n" + dump_toml(data)


def parsed(text: str) -> dict[str, Any]:
    """Return the values of a text made here."""
    return load_toml(text)


def given_values(
    settings: Mapping[str, str],
    *,
    known: Iterable[str],
    model: str | None,
    port: int | None,
    directory: str,
) -> dict[str, str]:
    """Return parameter → value from --set, --model and --port; relative paths become absolute.

    Raises:
        UsageError: --model or --port, and the profile has no such parameter.
    """
    names = tuple(known)
    values = {name: _absolute(value, directory) for name, value in settings.items()}
    if model is not None:
        parameter = next((name for name in MODEL_PARAMETERS if name in names), "")
        if not parameter:
            _refuse("--model", " or ".join(MODEL_PARAMETERS), names)
        values[parameter] = _absolute(model if "/" in model else f"./{model}", directory)
    if port is not None:
        if "port" not in names:
            _refuse("--port", "port", names)
        values["port"] = str(port)
    return values


def _refuse(option: str, wanted: str, names: tuple[str, ...]) -> NoReturn:
    msg = f"{option} sets the parameter {wanted}, which this profile does not have"
    if not names:
        raise UsageError(msg, hint="it has none: write [[mounts]] and ports into the new file")
    raise UsageError(
        msg, hint=f"its parameters are {', '.join(names)}; set one with --set NAME=VALUE"
    )


def _absolute(value: str, directory: str) -> str:
    """A parameter's default is read from any directory, so that a relative path means nothing in it."""
    if value in {".", ".."} or value.startswith(("./", "../")):
        return posixpath.normpath(posixpath.join(directory, value))
    return value


def _header(name: str) -> str:
    return (
        f"# Made by `rocmrun profiles new {name}`; yours to change. What each key means: docs/profiles.md.\n"
        f"#   rocmrun lock {name}      pin its image to a digest, and keep the lock file\n"
        f"#   rocmrun plan {name}      every right that it gets, with the reason\n"
        f"#   rocmrun launch {name}\n"
    )


def _list(sentences: Iterable[str]) -> list[str]:
    """Return each sentence as a comment on a line of its own; a control character has no place in TOML."""
    return [f"# - {' '.join(printable(sentence).split())}" for sentence in sentences]


def _value(text: str) -> str:
    return _one(_plain_value(text))


def _one(value: str | int) -> str:
    return dump_toml({"x": value}).removeprefix("x = ").strip()


def _plain_value(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdigit() and str(int(text)) == text else text
