"""A probe's report as text that rules can read: what failed, with what was seen."""

from collections.abc import Iterator, Mapping
from typing import Any

from rocmrun.core.report import ProbeReport

# A check that was slow or lacked something still says what it saw.
_TELLING = frozenset({"fail", "degraded"})
_MOST_VALUES = 40


def report_text(report: ProbeReport) -> str:
    """Return the checks that did not pass, a line each and their evidence below, and the probe's last words."""
    return "\n".join(_lines(report))


def _lines(report: ProbeReport) -> Iterator[str]:
    if report.reason:
        yield f"probe {report.status}, {report.reason}"
    for check in report.checks:
        if check.status in _TELLING:
            yield f"{check.label}, {check.reason}"
            yield from _values(check.evidence)
    yield from report.stderr_tail
    yield from report.noise


def _values(evidence: Mapping[str, Any]) -> Iterator[str]:
    for name, value in list(evidence.items())[:_MOST_VALUES]:
        if isinstance(value, str) and "\n" in value:
            yield from value.splitlines()[:_MOST_VALUES]
        elif isinstance(value, str | int | float):
            yield f"{name}: {value}"
