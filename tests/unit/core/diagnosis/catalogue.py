"""The open catalogue of public reports, each as somebody would give it to the doctor."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rocmrun.core.diagnosis.diagnose import diagnose
from rocmrun.core.diagnosis.finding import Finding, Kind
from rocmrun.core.diagnosis.kinds import parse_kinds
from rocmrun.core.diagnosis.reading import read_text
from rocmrun.system.package_data import read_findings

DATA = Path(__file__).parents[3] / "data" / "failures.jsonl"
HELD_OUT = Path(__file__).parents[3] / "data" / "held-out.jsonl"
LATER = Path(__file__).parents[3] / "data" / "held-out-later.jsonl"
THIRD = Path(__file__).parents[3] / "data" / "held-out-third.jsonl"
FOURTH = Path(__file__).parents[3] / "data" / "held-out-fourth.jsonl"
FIFTH = Path(__file__).parents[3] / "data" / "held-out-fifth.jsonl"
KINDS: Mapping[str, Kind] = parse_kinds(read_findings())


@dataclass(frozen=True, kw_only=True)
class Case:
    """One report: what was printed, what was told beside it, and what it turned out to be.

    Attributes:
        kind: "" for what is none of the doctor's kinds.
        facts: How many lines of the text tell something beside what was printed.
    """

    name: str
    kind: str
    text: str
    verbatim: bool
    confirmed: bool
    facts: int = 0


def cases() -> tuple[Case, ...]:
    """Return every case of the catalogue."""
    return tuple(_case(row) for row in _rows(DATA))


def held_out(file: Path = HELD_OUT) -> tuple[Case, ...]:
    """Return public reports that were collected and frozen before any rule was tried on them."""
    return tuple(_frozen(row) for row in _rows(file) if not row.get("made"))


def from_mechanisms() -> tuple[Case, ...]:
    """Return texts that were written from a kind's mechanism alone, and frozen as well."""
    return tuple(_frozen(row) for row in _rows(THIRD) if row.get("made"))


def found_in(text: str) -> tuple[Finding, ...]:
    """Return what the doctor finds in a text."""
    return diagnose(read_text(text), KINDS)


def names(found: tuple[Finding, ...]) -> list[str]:
    """Return the kinds of findings, in their order."""
    return [finding.kind.slug for finding in found]


def _rows(file: Path) -> list[dict[str, object]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _frozen(row: dict[str, object]) -> Case:
    return Case(
        name=str(row["id"]),
        kind=str(row["kind"] or ""),
        text=_text(row),
        verbatim=True,
        confirmed=True,
        facts=_told(row).count("\n") + 1,
    )


def _case(row: dict[str, object]) -> Case:
    return Case(
        name=str(row["id"]),
        kind=str(row["kind"]),
        text=_text(row),
        verbatim=row["symptom_verbatim"] is True,
        confirmed="unconfirmed" not in str(row["cause"]),
        facts=_told(row).count("\n") + 1,
    )


def _text(row: dict[str, object]) -> str:
    return "\n".join(filter(None, [str(row["symptom_text"]), _told(row)]))


def _told(row: dict[str, object]) -> str:
    evidence = row["evidence"]
    assert isinstance(evidence, dict)
    return "\n".join(
        f"{key}: {value if isinstance(value, str) else json.dumps(value)}"
        for key, value in evidence.items()
    )


def first(text: str) -> str:
    """Return the kind that a text points to first, "nothing" where it points to none."""
    found = names(found_in(text))
    return found[0] if found else "nothing"


def sure(text: str) -> set[str]:
    """Return the kinds that are said with confidence."""
    return {found.kind.slug for found in found_in(text) if found.confidence == "high"}
