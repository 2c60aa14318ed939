"""YAML that every parser of it reads alike, for files that are shown and not read back."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# YAML 1.1 takes words such as "on" and "no" for booleans, "null" for nothing and "1e3" for a number, as keys too.
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_LAST_OF_16_BITS = 0xFFFF
_DELETE = "\x7f"


def dump_yaml(value: Mapping[str, Any]) -> str:
    """Return *value* as YAML: mappings and lists in blocks, scalars as JSON, which is YAML."""
    return "".join(f"{line}\n" for line in _block(value, 0))


def _block(value: Mapping[str, Any] | Sequence[Any], depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, Mapping | list) and item:
                yield f"{pad}{_key(key)}:"
                yield from _block(item, depth + 1)
            else:
                yield f"{pad}{_key(key)}: {_scalar(item)}"
        return
    for item in value:
        if isinstance(item, Mapping) and item:
            first, *rest = _block(item, depth + 1)
            yield f"{pad}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{pad}- {_scalar(item)}"


def _scalar(value: Any) -> str:
    return f'"{"".join(map(_escaped, value))}"' if isinstance(value, str) else json.dumps(value)


def _escaped(character: str) -> str:
    """Return a character as JSON has it, but for what JSON writes as two halves, and leaves as it is: YAML takes neither."""
    if character == _DELETE:
        return "\\x7f"
    beyond = ord(character) > _LAST_OF_16_BITS
    return f"\\U{ord(character):08x}" if beyond else json.dumps(character)[1:-1]


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key.lower() not in _WORDS else _scalar(key)
