"""The text of /etc/os-release, /proc/meminfo and the kernel's CPU lists, as values."""

import re

from rocmrun.core.text import KIB, printable

_CPU_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
_MEM_TOTAL = re.compile(r"^MemTotal: +([0-9]{1,15}) kB$", re.MULTILINE)
_VALUE_LIMIT = 200


def parse_os_release(text: str) -> dict[str, str]:
    """Return the NAME=value lines of an os-release file, quotes removed."""
    values = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            values[name] = printable(re.sub(r"\\(.)", r"\1", _unquoted(value)), _VALUE_LIMIT)
    return values


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def parse_mem_total(text: str) -> int | None:
    """Return MemTotal of /proc/meminfo in bytes."""
    match = _MEM_TOTAL.search(text)
    return int(match[1]) * KIB if match else None


def count_cpus(cpu_list: str | None) -> int | None:
    """Return how many processors a kernel list such as "0-15,32-47" names; None when it is no list."""
    if not cpu_list:
        return None
    matches = [_CPU_RANGE.fullmatch(part) for part in cpu_list.split(",")]
    if not all(matches):
        return None
    return sum(int(match[2] or match[1]) - int(match[1]) + 1 for match in matches if match)
