"""Show what the doctor found: checks as a table, findings with the lines that show them."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from rocmrun.console.output import JSON_VERSION
from rocmrun.console.tables import plain_table, print_table
from rocmrun.core.diagnosis.finding import HOST_STEPS, Finding, Kind
from rocmrun.core.diagnosis.masking import masked
from rocmrun.core.doctor import SURE, Check, Diagnosis

NO_WHEEL_HELPS = "reinstalling torch or another package cannot help: it is not in the image"
NOTHING = "nothing was found that these rules know"


def diagnosis_as_json(found: Diagnosis) -> dict[str, Any]:
    """Return one object: ok is whether nothing stands in the way."""
    return {
        "v": JSON_VERSION,
        "ok": not found.blocked,
        "checks": [
            {**check.to_json(), "evidence": masked(check.evidence, 600)} for check in found.checks
        ],
        "findings": [finding_as_json(finding) for finding in found.findings],
        "probe_failure": masked(found.failure, 600) or None,
    }


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON values, with nothing private in it."""
    kind = finding.kind
    return {
        "kind": kind.slug,
        "title": kind.title,
        "confidence": finding.confidence,
        "step": kind.step,
        "cause": kind.cause,
        "cannot_tell": finding.undecided or None,
        "evidence": [
            {"line": line.number or None, "text": masked(line.text), "repeated": line.repeated, "says": reason.meaning}
            for reason in finding.reasons
            for line in reason.lines
            if reason.points > 0
        ],
        "signs": [{"says": reason.meaning, "points": reason.points} for reason in finding.reasons],
        "look_alikes": [{"kind": other.kind, "standing": other.standing} for other in finding.look_alikes],
        "next": kind.next or None,
        "remedy": kind.remedy,
        "note": NO_WHEEL_HELPS if kind.step in HOST_STEPS else None,
        "explain": f"rocmrun explain {kind.slug}",
    }  # fmt: skip


def print_diagnosis(console: Console, found: Diagnosis) -> None:
    """Print the checks, then the findings: likely ones whole, suspicions in a line."""
    if found.checks:
        _print_checks(console, found.checks)
    sure = [finding for finding in found.findings if finding.confidence in SURE]
    for number, finding in enumerate(sure, start=1):
        print_finding(console, finding, number=number if len(sure) > 1 else None)
    others = [finding for finding in found.findings if finding not in sure]
    if others:
        console.print("It could also be:" if sure else "It cannot be told from this. Possible:")
        for finding in others:
            what = f": {finding.undecided}" if finding.undecided and not sure else ""
            console.print(f"  {finding.kind.slug}: {finding.kind.title}{what}")
    if not found.findings and not found.checks:
        console.print(NOTHING)
    if found.failure and not sure:
        console.print(masked(f"the probe failed: {found.failure}", 600))


def print_finding(console: Console, finding: Finding, *, number: int | None = None) -> None:
    """Print one finding: what, why it is thought, the next step."""
    kind = finding.kind
    first = f"{number}. " if number else ""
    console.print(
        f"{first}{kind.title} ({kind.slug}, confidence {finding.confidence})", style="bold"
    )
    console.print(f"  {kind.cause}")
    for reason in finding.reasons:
        sign = "+" if reason.points > 0 else "-"
        console.print(f"  {sign} {reason.meaning}")
        for line in reason.lines:
            more = f" ({line.repeated} times)" if line.repeated > 1 else ""
            where = f"line {line.number}: " if line.number else ""
            console.print(f"      {where}{masked(line.text)}{more}")
    if finding.undecided:
        console.print(f"  cannot tell: {finding.undecided}")
    out = [other.kind for other in finding.look_alikes if other.standing == "ruled out"]
    if out:
        console.print(f"  ruled out: {', '.join(out)}")
    if kind.step in HOST_STEPS:
        console.print(f"  {NO_WHEEL_HELPS}")
    console.print(f"  do: {kind.remedy}")
    if kind.next:
        console.print(f"  next: {kind.next}")
    console.print(f"  more: rocmrun explain {kind.slug}\n")


def _print_checks(console: Console, checks: tuple[Check, ...]) -> None:
    table = plain_table("check", "result", "what was seen", "hint")
    for check in checks:
        hint = check.hint + (f" ({check.kind})" if check.kind and check.result != "ok" else "")
        table.add_row(check.id, check.result, masked(check.evidence, 600), hint)
    print_table(console, table)
    console.print()


def kind_as_json(kind: Kind) -> dict[str, Any]:
    """Return all that is known of a kind."""
    names = ("title", "step", "cause", "recognise", "remedy", "next", "look_alikes", "sources")
    return {"v": JSON_VERSION, "ok": True, "kind": kind.slug, **{name: getattr(kind, name) for name in names}}  # fmt: skip


def print_kind(console: Console, kind: Kind, kinds: Mapping[str, Kind]) -> None:
    """Print the page of a kind."""
    console.print(f"{kind.slug}: {kind.title}\n", style="bold")
    console.print(f"{kind.cause}\n")
    console.print(f"how to tell: {kind.recognise}")
    console.print(f"what to do:  {kind.remedy}")
    if kind.next:
        console.print(f"next:        {kind.next}")
    if kind.step in HOST_STEPS:
        console.print(f"note:        {NO_WHEEL_HELPS}")
    for other in kind.look_alikes:
        console.print(f"looks alike: {other}, {kinds[other].title}")
    for source in kind.sources:
        console.print(f"source:      {source}")
