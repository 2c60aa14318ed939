"""System calls by name: numbers differ between architectures, and the kernel's trace has numbers alone."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNames:
    """The system calls of one architecture.

    Attributes:
        names: Number → name.
        numbers: Name → number.
    """

    names: Mapping[int, str]
    numbers: Mapping[str, int]


def parse_call_names(table: str, architecture: str) -> CallNames | None:
    """Return the calls of *architecture*, as `uname -m` spells it; None where the table does not have it.

    *table* is rocmrun/data/system-calls.tsv: "name", then a number for each architecture, "-" for none.
    """
    head, *rows = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    if architecture not in head[1:]:
        return None
    column = head.index(architecture)
    numbers = {row[0]: int(row[column]) for row in rows if row[column] != "-"}
    return CallNames(names={number: name for name, number in numbers.items()}, numbers=numbers)
