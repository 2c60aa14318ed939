"""Plain values as TOML text and back; what parses it is tomllib."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

KeyPath = tuple[str | int, ...]

# No profile and no lock goes deeper than five; dotted keys make thousands of levels that recursion cannot follow.
_DEPTH = 32
_TOO_DEEP = "is nested too deeply"
_TOO_LARGE = "has an integer of more than 64 bits"

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def dump_toml(
    table: Mapping[str, Any], comment: Callable[[KeyPath], str] = lambda _path: ""
) -> str:
    """Return *table* as TOML; *comment* may add a word at the end of a key's (or array table's) line."""
    return "\n".join(_lines(table, (), comment)).strip("\n") + "\n"


def key_path(path: KeyPath) -> str:
    """Return *path* as people write it: 'mounts[0].target', 'container.tmpfs."/scratch"'."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_key(part)}"
    return text.removeprefix(".")


def _lines(
    table: Mapping[str, Any], path: KeyPath, comment: Callable[[KeyPath], str]
) -> Iterator[str]:
    below = {key: value for key, value in table.items() if _is_table(value) or _is_tables(value)}
    for key, value in table.items():
        if key not in below:
            yield f"{_key(key)} = {_value(value)}{_remark(comment((*path, key)))}"
    for key, value in below.items():
        here = (*path, key)
        if _is_table(value):
            if not value or not all(_is_table(item) for item in value.values()):
                yield from ("", f"[{_header(here)}]")
            yield from _lines(value, here, comment)
            continue
        for index, item in enumerate(value):
            yield from ("", f"[[{_header(here)}]]{_remark(comment((*here, index)))}")
            yield from _lines(item, here, lambda _path: "")


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_table, value))


def _header(path: KeyPath) -> str:
    return ".".join(_key(str(part)) for part in path)


def _remark(text: str) -> str:
    return f"  # {text}" if text else ""


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped and JSON leaves.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
        )
    return "[" + ", ".join(map(_value, value)) + "]"


def load_toml(text: str) -> dict[str, Any]:
    """Return the values of TOML *text* that a person may have written: integers of 64 bits, tables in tables to 32.

    Raises:
        ValueError: with what is wrong, to be read after a file's name.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"is not TOML: {error}"
        raise ValueError(msg) from error
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    except ValueError as error:  # Python's own, of an integer with thousands of digits
        raise ValueError(_TOO_LARGE) from error
    level: list[Any] = [table]
    for _ in range(_DEPTH):
        level = [item for value in level for item in _inside(value)]
        if any(isinstance(item, int) and not -(2**63) <= item < 2**63 for item in level):
            raise ValueError(_TOO_LARGE)
    if level:
        raise ValueError(_TOO_DEEP)
    return table


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
