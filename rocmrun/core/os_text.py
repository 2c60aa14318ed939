"""The text of /etc/os-release, /proc/meminfo, the kernel's lists of CPUs and its numbers, as values."""

import re

from rocmrun.core.text import KIB, printable

_CPU_RANGE = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?")
_DECIMAL = re.compile(r"[0-9]{1,20}")
# More than any kernel is built for (CONFIG_NR_CPUS): a broken list costs no memory.
_MOST_CPUS = 2**16
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
    if not cpu_list or not all(_CPU_RANGE.fullmatch(part) for part in cpu_list.split(",")):
        return None
    return len(cpu_numbers(cpu_list))


def cpu_numbers(text: str) -> frozenset[int]:
    """Return the numbers that a kernel list such as "0-3,8" names; what is no number or range is left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        start, end = number(first), number(last or first)
        if start is not None and end is not None:
            found.update(range(start, min(end, _MOST_CPUS) + 1))
    return frozenset(found)


def number(text: str | None) -> int | None:
    """Return a plain decimal number of at most 20 digits; None for anything else, negative ones included."""
    return int(text) if text and _DECIMAL.fullmatch(text) else None
