"""Profile parameters: ${name} in a value stands for what --set or a default says. $${ is a literal ${."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rocmrun.core.closest import did_you_mean
from rocmrun.core.profile.values import ParameterText
from rocmrun.core.toml import KeyPath, key_path
from rocmrun.errors import ParameterMissing, UsageError

# What describes a profile is not part of what it asks for.
PLAIN = ("description", "extends", "parameters")

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)(\}|\Z)")
_ESCAPE = "$${"


def parameter_values(
    data: Mapping[str, Any], settings: Mapping[str, str], name: str
) -> dict[str, str]:
    """Return the value of every parameter of profile *name* that has one: its default, or what *settings* says.

    Raises:
        UsageError: *settings* names a parameter that the profile does not have.
    """
    declared = _declared(data)
    unknown = [setting for setting in settings if setting not in declared]
    if unknown:
        known = f"its parameters are {', '.join(sorted(declared))}" if declared else "it has none"
        msg = f"profile {name} has no parameter {', '.join(map(repr, unknown))}"
        raise UsageError(msg + (did_you_mean(unknown[0], declared) or f"; {known}"))
    defaults = {
        parameter: _default_text(table["default"])
        for parameter, table in declared.items()
        if "default" in table
    }
    return defaults | dict(settings)


def missing_parameters(data: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
    """Return name → help of the declared parameters that *data* uses and *values* lacks."""
    used = {name for _, name in parameter_references(data)}
    return {
        name: str(table.get("help", ""))
        for name, table in _declared(data).items()
        if name in used and name not in values
    }


def missing_error(missing: Mapping[str, str], name: str) -> ParameterMissing:
    """Return the one error that names all *missing* parameters of profile *name* with their help."""
    several = f"{len(missing)} parameters that are" if len(missing) > 1 else "a parameter that is"
    options = " ".join(f"--set {parameter}=…" for parameter in missing)
    return ParameterMissing(
        f"profile {name} needs {several} not set",
        hint=f"add {options}",
        details=tuple(f"{parameter}: {help_text}" for parameter, help_text in missing.items()),
    )


def undeclared_references(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (key path, what is wrong) for every reference to a parameter that the profile does not declare."""
    declared = _declared(data)
    for path, name in parameter_references(data):
        if name not in declared:
            wrong = (
                "is not closed"
                if name is None
                else f"names no parameter{did_you_mean(name, declared)}"
            )
            written = "${" if name is None else f"${{{name}}}"
            yield key_path(path), f'"{written}" {wrong}; a literal ${{ is written $${{'


def parameter_references(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str | None]]:
    """Yield (key path, parameter name) of every reference; the name is None where the brace is not closed."""
    for path, text in _texts({key: value for key, value in data.items() if key not in PLAIN}, ()):
        for match in _REFERENCE.finditer(text):
            if match[0] != _ESCAPE:
                yield path, match[1] if match[2] else None


def filled_in(data: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """Return *data* with every reference replaced and every escape undone. All names must have a value."""

    def replace(text: str) -> str:
        filled = _REFERENCE.sub(
            lambda match: "${" if match[0] == _ESCAPE else values[match[1]], text
        )
        return ParameterText(filled) if filled != text else text

    return _with_texts(data, replace)


def partly_filled_in(data: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """Return *data* with the references that *values* answers; the rest stays as written, so it is a profile still."""

    def replace(match: re.Match[str]) -> str:
        known = match[0] != _ESCAPE and match[1] in values
        return escaped(values[match[1]]) if known else match[0]

    def fill(text: str) -> str:
        filled = _REFERENCE.sub(replace, text)
        return ParameterText(filled) if filled != text else text

    return _with_texts(data, fill)


def escaped_texts(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return *data* so that reading it as a profile gives these very texts."""
    return _with_texts(data, escaped)


def escaped(text: str) -> str:
    """Return *text* as a profile writes it when nothing in it is a parameter."""
    return text.replace("${", _ESCAPE)


def has_reference(value: object) -> bool:
    """Whether *value* is text that still waits for a parameter."""
    return isinstance(value, str) and any(
        match[0] != _ESCAPE for match in _REFERENCE.finditer(value)
    )


def _declared(data: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the well-formed parameter tables; what is wrong with the others is the model's to say."""
    tables = data.get("parameters")
    if not isinstance(tables, Mapping):
        return {}
    return {name: table for name, table in tables.items() if isinstance(table, Mapping)}


def _default_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


def _with_texts(data: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, Mapping):
            return {key: changed(item) for key, item in value.items()}
        return [changed(item) for item in value] if isinstance(value, list) else value

    return {key: value if key in PLAIN else changed(value) for key, value in data.items()}
