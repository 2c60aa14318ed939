"""A probe's report as text that rules can read: what failed, with what was seen."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rocmrun.core.report.model import ProbeReport

# A check that was slow or lacked something still says what it saw.
_TELLING = frozenset({"fail", "degraded"})
_MOST_VALUES = 40
# The probe's own lines for people repeat the checks, those that passed too.
_PROGRESS = re.compile(
    r"probe: (?:\[[^\]]+\] \S+ (?:pass|degraded|fail|skipped)|(?:pass|degraded|fail): \{)"
)


def report_text(report: ProbeReport) -> str:
    """Return the checks that did not pass, a line each and their evidence below, and the probe's last words."""
    return "\n".join(_lines(report))


def _lines(report: ProbeReport) -> Iterator[str]:
    if report.reason:
        yield f"probe {report.status}, {report.reason}"
    for check in report.checks:
        if check.status in _TELLING:
            # "device cpu" is where a proof without GPUs runs, and no complaint.
            label = check.label if check.device != "cpu" else f"{check.group}: {check.name}"
            yield f"{label}, {check.reason}"
            yield from _values(check.evidence)
    yield from (line for line in report.stderr_tail if not _PROGRESS.match(line))
    yield from report.noise


def _values(evidence: Mapping[str, Any]) -> Iterator[str]:
    for name, value in list(evidence.items())[:_MOST_VALUES]:
        if isinstance(value, str) and "\n" in value:
            yield from value.splitlines()[:_MOST_VALUES]
        elif isinstance(value, str | int | float):
            yield f"{name}: {value}"
