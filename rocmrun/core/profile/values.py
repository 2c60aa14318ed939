"""Values that a profile writes as text and that mean more: sizes and ports. Each keeps its text."""

import ipaddress
import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

HIGHEST_PORT = 65535
WHOLE_PERCENT = 100
IPV6 = 6

# Docker's letters count in powers of 1024, with and without "iB" (go-units RAMInBytes).
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(?:([kmgtp])i?)?b?", re.IGNORECASE)
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?%")
_PORT = re.compile(r"(\[[^]]*\]|[^:]*):([0-9]+):([0-9]+)(?:/(tcp|udp))?")


class ParameterText(str):
    """Text that a parameter filled in: the only text that may stand where a number or a boolean is due."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value written as text in TOML. Subclasses take it apart in `parse`, which raises ValueError."""

    text: str
    schema: ClassVar[dict[str, Any]] = {"type": "string"}

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return the value that *value* (text, or what `schema` allows) stands for."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(value),
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return dict(cls.schema)


@dataclass(frozen=True, slots=True)
class Size(TextValue):
    """An amount of memory: "9GiB", "512m", or a whole number of bytes. All letters count in powers of 1024."""

    bytes: int
    schema: ClassVar[dict[str, Any]] = {
        "title": "size",
        "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}],
        "examples": ["9GiB", "512m", 1073741824],
    }

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return the size, which must be at least one byte."""
        text = text_or_integer(value, "a size")
        match = _SIZE.fullmatch(text)
        if not match:
            msg = f'"{text}" is not a size; write one such as "9GiB", "512MiB" or a number of bytes'
            raise ValueError(msg)
        size = math.floor(float(match[1]) * 1024 ** " kmgtp".index((match[2] or " ").lower()))
        if size < 1:
            msg = f'"{text}" is less than a byte'
            raise ValueError(msg)
        return cls(text, size)


@dataclass(frozen=True, slots=True)
class MemoryLimit(TextValue):
    """A Size, or a share of the host's memory such as "90%". Exactly one of the two fields is set."""

    bytes: int | None
    percent: float | None
    schema: ClassVar[dict[str, Any]] = Size.schema | {
        "title": "size or percentage",
        "examples": ["90%", "64GiB"],
    }

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return the limit; a share is above 0 and at most 100 %."""
        text = text_or_integer(value, "a size or a percentage")
        match = _PERCENT.fullmatch(text)
        if not match:
            return cls(text, Size.parse(text).bytes, None)
        percent = float(match[1])
        if not 0 < percent <= WHOLE_PERCENT:
            msg = f'"{text}" is not a share of the memory; write one above 0% and up to 100%'
            raise ValueError(msg)
        return cls(text, None, percent)

    def of(self, total_bytes: int) -> int:
        """Return the limit in bytes on a host with *total_bytes* of memory."""
        return (
            self.bytes
            if self.bytes is not None
            else int(total_bytes * (self.percent or 0) / WHOLE_PERCENT)
        )


@dataclass(frozen=True, slots=True)
class Port(TextValue):
    """A published port, "ADDRESS:HOST:CONTAINER[/PROTOCOL]". The address is never implied; IPv6 stands in brackets."""

    address: str
    host_port: int
    container_port: int
    protocol: str
    schema: ClassVar[dict[str, Any]] = {
        "title": "port",
        "type": "string",
        "examples": ["127.0.0.1:8000:8000", "[::1]:8000:8000/tcp"],
    }

    @classmethod
    def parse(cls, value: object) -> Self:
        """Return the mapping with its address checked."""
        text = _text(value, "a port")
        match = _PORT.fullmatch(text)
        if not match:
            near = (
                f'; did you mean "127.0.0.1:{text}"?'
                if re.fullmatch(r"\d+:\d+(/\w+)?", text)
                else ""
            )
            msg = f'"{text}" is not ADDRESS:HOST:CONTAINER[/tcp|/udp]{near}'
            raise ValueError(msg)
        address = _address(match[1], text)
        ports = int(match[2]), int(match[3])
        if not all(1 <= port <= HIGHEST_PORT for port in ports):
            msg = f'"{text}" has a port outside 1 to {HIGHEST_PORT}'
            raise ValueError(msg)
        return cls(text, address, *ports, match[4] or "tcp")


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        msg = f"expected {what}, got {describe(value)}"
        raise ValueError(msg)  # noqa: TRY004  # pydantic collects ValueError, not TypeError
    return str(value)


def text_or_integer(value: object, what: str) -> str:
    """Return *value*, text or a whole number, as text; *what* names it in the ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(value, what)


def describe(value: object) -> str:
    """Return what a TOML value is, in TOML's words: "a string", "a table"."""
    names = {bool: "a boolean", str: "a string", int: "an integer", float: "a float"}
    for kind, name in names.items():
        if isinstance(value, kind):
            return name
    if isinstance(value, list | tuple):
        return "a list"
    return "a table" if isinstance(value, dict) else "a date or time"


def _address(text: str, port: str) -> str:
    bare = text.removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        msg = f'"{port}" needs an IP address before the ports; write 127.0.0.1, or 0.0.0.0 for all'
        raise ValueError(msg) from None
    if (address.version == IPV6) != text.startswith("["):
        msg = f'"{port}": an IPv6 address, and only that, stands in brackets'
        raise ValueError(msg)
    return bare
