"""Render what a probe found: a table for people, and JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from rocmrun.console.output import JSON_VERSION
from rocmrun.console.tables import plain_table, print_table
from rocmrun.core.probing.image import WHOSE
from rocmrun.core.probing.progress import label
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.run_record import RunRecord
from rocmrun.errors import ProbeFailed

LINE = 110
WRONG = ("fail", "degraded")
DEVICE_COLUMNS = 8
NAMED_DEVICES = 10


def report_as_json(record: RunRecord) -> dict[str, Any]:
    """Return one JSON object; a failed probe has the error that `launch` would end with as well."""
    report = record.probe
    body: dict[str, Any] = {
        "v": JSON_VERSION,
        "ok": bool(report and report.usable),
        **record.model_dump(mode="json"),
    }
    if report is not None and not report.usable:
        body["error"] = {
            "slug": ProbeFailed.slug,
            "code": ProbeFailed.exit_code,
            "message": f"the probe failed: {report.reason}",
            "hint": None,
            "details": [f"{check.label}: {check.reason}" for check in report.failures],
        }
    return body


def print_report(console: Console, record: RunRecord) -> None:
    """Print what is wrong, then every check (devices beside each other where there are several), then the verdict."""
    report = record.probe
    if report is None:
        return
    _print_wrong(console, report)
    several = report.devices if len(report.devices) > 1 else ()
    if several:
        _print_devices(console, report)
    rest = [check for check in report.checks if not several or check.device is None]
    if rest:
        _print_checks(console, rest)
    if not report.checks:
        for line in report.stderr_tail:
            console.print(f"  {line}")
        console.print()
    _print_verdict(console, record, report)


def _print_wrong(console: Console, report: ProbeReport) -> None:
    """Print failed checks and then degraded ones, each with its reason and the number that decided."""
    wrong = [check for status in WRONG for check in report.checks if check.status == status]
    if not wrong:
        return
    table = plain_table("status", "where", "check", "reason")
    for check in wrong:
        place = label(check.device)
        table.add_row(check.status, place, f"{check.group} {check.name}", check.reason)
        if check.threshold is not None:
            source = f"threshold {check.threshold:.4g}: {check.threshold_source}"
            table.add_row("", "", "", source)
    print_table(console, table)
    console.print()


def _print_devices(console: Console, report: ProbeReport) -> None:
    """Print a row a check: a column for each device, or how many there are of each status where they are many."""
    rows: dict[tuple[str, str], dict[int | str, ProbeCheck]] = {}
    for check in report.checks:
        if check.device is not None:
            rows.setdefault((check.group, check.name), {})[check.device] = check
    few = len(report.devices) <= DEVICE_COLUMNS
    names = [f"device {device}" for device in report.devices] if few else ["devices"]
    table = plain_table("check", *names, "most seconds", "why skipped")
    for (group, name), checks in rows.items():
        cells = [_status_of(checks.get(device)) for device in report.devices]
        most = max(check.seconds for check in checks.values())
        why = next((c.reason for c in checks.values() if c.status == "skipped"), "")
        shown = cells if few else [_counted(checks)]
        table.add_row(f"{group} {name}", *shown, f"{most:.2f}", why)
    print_table(console, table)
    console.print()


def _status_of(check: ProbeCheck | None) -> str:
    return "" if check is None else check.status


def _counted(checks: Mapping[int | str, ProbeCheck]) -> str:
    """Return "62 pass, 2 fail (3, 17)": who is not well is named."""
    parts = []
    for status in ("pass", "degraded", "fail", "skipped"):
        found = [str(device) for device, check in checks.items() if check.status == status]
        named = f" ({', '.join(found[:NAMED_DEVICES])}" + (
            ", …)" if len(found) > NAMED_DEVICES else ")"
        )
        parts += [f"{len(found)} {status}{'' if status == 'pass' else named}"] if found else []
    return ", ".join(parts)


def _print_checks(console: Console, checks: Sequence[ProbeCheck]) -> None:
    table = plain_table("check", "status", "seconds", "what was seen")
    for check in checks:
        # What is wrong stands above, with its reason.
        seen = Text(check.reason)
        if check.status != "skipped":
            # One line each: the whole of it is in the JSON.
            seen = Text(_evidence(check.evidence), no_wrap=True, overflow="ellipsis")
        table.add_row(f"{check.group} {check.name}", check.status, f"{check.seconds:.2f}", seen)
    print_table(console, table)
    console.print()


def _print_verdict(console: Console, record: RunRecord, report: ProbeReport) -> None:
    versions = ", ".join(
        f"{name} {value}"
        for name, value in (
            ("torch", report.version_of("torch")),
            ("ROCm", report.version_of("hip")),
            ("CUDA", report.version_of("cuda")),
        )
        if value
    )
    counts = ", ".join(f"{count} {status}" for status, count in sorted(report.counts.items()))
    where = record.probe_image_ref or record.image_ref
    console.print(f"{where} on {record.host.kernel}: {versions or 'versions unknown'}")
    if record.probe_image_ref:
        console.print(f"probed for {record.image_ref} in {where}: {WHOSE}")
    console.print(
        f"verdict: {report.status} ({counts or 'no checks'}, {report.seconds:.1f} s)"
        + (f": {report.reason}" if report.reason else ""),
        style="bold",
    )


def _evidence(evidence: dict[str, Any]) -> str:
    """Return the scalars of *evidence* in one line; the whole of it is in the JSON."""
    metrics = evidence.get("metrics")
    parts = [
        f"{key} {_short(value)}"
        for key, value in {**evidence, **(metrics if isinstance(metrics, dict) else {})}.items()
        if isinstance(value, (str, int, float)) and value != ""
    ]
    text = ", ".join(parts)
    return text if len(text) <= LINE else text[: LINE - 1] + "…"


def _short(value: str | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
