"""Render what came of tailoring a seccomp filter."""

from rich.console import Console
from rich.table import Table

from rocmrun.console.tables import plain_table, print_table
from rocmrun.core.seccomp_tailored import GroupVerdict, TailoredSeccomp
from rocmrun.core.text import printable
from rocmrun.core.verification import Verification

_PROBE = {
    "passes": "passes under it",
    "fails": "fails under the whole filter too, so that a launch needs --no-probe: ",
    "untested": "untested: ",
}


def print_filter(console: Console, found: TailoredSeccomp) -> None:
    """Print the groups that were kept with their evidence, those that went, and what that is worth."""
    if found.base is None or found.verification is None:
        console.print(printable(f"no seccomp profile: {found.reason}"))
        return
    kept = [verdict for verdict in found.groups if verdict.verdict != "removed"]
    if kept:
        print_table(console, _table(kept))
        console.print()
    for line in _summary(found, found.verification):
        console.print(printable(line))
    for verdict in found.groups:
        if verdict.warning:
            console.print(printable(f"note: {verdict.group}: {verdict.warning}"))


def _table(verdicts: list[GroupVerdict]) -> Table:
    table = plain_table("system calls", "verdict", "evidence", "exposes")
    for verdict in verdicts:
        table.add_row(verdict.group, verdict.verdict, printable(verdict.evidence), verdict.exposes)
    return table


def _summary(found: TailoredSeccomp, seen: Verification) -> list[str]:
    source = found.base.source if found.base else ""
    lines = [
        f"{found.file}: {found.calls_after} system calls of the {found.calls_before} of {source}; passed {seen.passes} of "
        f"{seen.runs}, the whole filter {seen.control_passes} of {seen.control_runs}: {reliability(seen)}",
        # The search has the mildest first; a reader wants to know which doors are closed.
        f"without {', '.join(reversed(found.removed)) or 'none of its groups'}",
    ]
    if found.probe != "job":
        lines.append(
            f"the probe that a launch runs first: {_PROBE[found.probe]}{found.probe_reason}"
        )
    if found.rules:
        lines.append(f"{', '.join(found.rules)} is in it: no capability need unlock that any more")
    if not found.one_minimal:
        lines.append(
            "not every kept group was left out by itself: the filter passes, and can allow too much"
        )
    lines.append(
        "calls that only an error, another input or another version of a library makes were not seen: watch the first runs"
    )
    return lines


def reliability(seen: Verification) -> str:
    """Say what a number of passes tells of how often a job fails."""
    if seen.passes < seen.runs:
        return "the job fails at times, whatever it may"
    if seen.runs <= 1:
        return "seen once, which says little of how often it fails"
    return f"it fails in less than {seen.excluded_failure_rate:.0%} of runs (at 95 %)"
