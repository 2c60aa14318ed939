"""Render what a probe found: a table for people, and JSON."""

from typing import Any

from rich.console import Console
from rich.table import Table

from rocmrun.console.output import JSON_VERSION, print_table
from rocmrun.core.report import RunRecord
from rocmrun.errors import ProbeFailed

LINE = 110


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
    """Print a row a check, then the verdict."""
    report = record.probe
    if report is None:
        return
    table = Table("check", "status", "seconds", "what was seen", box=None, pad_edge=False)
    for check in report.checks:
        table.add_row(
            check.label,
            check.status,
            f"{check.seconds:.2f}",
            check.reason or _evidence(check.evidence),
        )
    print_table(console, table)
    if not report.checks:
        for line in report.stderr_tail:
            console.print(f"  {line}")
    console.print()
    versions = ", ".join(
        f"{name} {value}"
        for name, value in (
            ("torch", record.torch_version),
            ("ROCm", record.rocm_version),
            ("CUDA", record.cuda_version),
        )
        if value
    )
    counts = ", ".join(f"{count} {status}" for status, count in sorted(report.counts.items()))
    console.print(f"{record.image_ref} on {record.host.kernel}: {versions or 'versions unknown'}")
    console.print(
        f"verdict: {report.status} ({counts or 'no checks'}, {report.seconds:.1f} s)"
        + (f": {report.reason}" if report.reason else ""),
        style="bold",
    )


def _evidence(evidence: dict[str, Any]) -> str:
    """Return the scalars of *evidence* in one line; the whole of it is in the JSON."""
    parts = [
        f"{key} {_short(value)}"
        for key, value in evidence.items()
        if isinstance(value, (str, int, float)) and value != ""
    ]
    text = ", ".join(parts)
    return text if len(text) <= LINE else text[: LINE - 1] + "…"


def _short(value: str | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
