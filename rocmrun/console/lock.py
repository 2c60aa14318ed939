"""What `rocmrun lock` did and what its check found, for people and as JSON."""

from collections.abc import Iterator
from typing import Any

from rocmrun.core.lock import PinnedImage
from rocmrun.core.lock_changes import Change, ChangeKind, pin_label
from rocmrun.core.lock_report import CheckReport, FileReport, LockReport
from rocmrun.core.reference import parse_reference
from rocmrun.core.text import printable

_MARKS = {
    ChangeKind.ADDED: "+",
    ChangeKind.REMOVED: "-",
    ChangeKind.CHANGED: "~",
    ChangeKind.UPDATED: "*",
}


def report_lines(report: LockReport) -> Iterator[str]:
    """Yield what a run did: one line a changed pin, then one line a file."""
    for file in report.files:
        for change in file.changes:
            if change.kind is not ChangeKind.KEPT:
                yield printable(_change_line(change))
        for item in file.inherited:
            name = parse_reference(item.pin.ref).familiar
            yield printable(f"= {name}  {pin_label(item.pin)}  as pinned in {item.path}")
        yield printable(_file_line(file, dry_run=report.dry_run))
    for signature in report.verified:
        yield printable(f"signature verified: {signature.reference} by {signature.signer}")


def report_as_json(report: LockReport) -> dict[str, Any]:
    """Return a run's report as JSON."""
    return {
        "v": 1,
        "ok": True,
        "dry_run": report.dry_run,
        "asked": report.asked,
        "warnings": list(report.warnings),
        "verified": [item.model_dump(mode="json") for item in report.verified],
        "locks": [
            {
                "path": file.path,
                "written": file.written,
                "images": [_change_as_json(change) for change in file.changes],
                "inherited": [
                    {"path": item.path, "pin": _pin_as_json(item.pin)} for item in file.inherited
                ],
            }
            for file in report.files
        ],
    }


def check_lines(report: CheckReport) -> Iterator[str]:
    """Yield what a check without findings says."""
    count = len(report.checked)
    images = f"{count} image{'' if count == 1 else 's'}"
    scope = "" if report.offline else ", and every tag still names its digest"
    if signed := len(report.verified):
        scope += f"; {signed} signature{'' if signed == 1 else 's'} verified"
    yield printable(f"{', '.join(report.paths)}: {images} locked as the profiles ask{scope}")


def check_as_json(report: CheckReport) -> dict[str, Any]:
    """Return a check's report as JSON; the error that decides the exit code is in it too."""
    failure = report.failure
    error = failure and {
        "slug": failure.slug,
        "code": failure.exit_code,
        "message": failure.message,
        "hint": failure.hint,
        "details": list(failure.details),
    }
    return {
        "v": 1,
        "ok": failure is None,
        **({"error": error} if error else {}),
        "offline": report.offline,
        "locks": list(report.paths),
        "checked": list(report.checked),
        "warnings": list(report.warnings),
        "verified": [item.model_dump(mode="json") for item in report.verified],
        "findings": [
            {
                "ref": finding.ref,
                "slug": finding.error.slug,
                "code": finding.error.exit_code,
                "message": finding.error.message,
                "hint": finding.error.hint,
            }
            for finding in report.findings
        ],
    }


def _change_line(change: Change) -> str:
    name = parse_reference(change.ref).familiar
    before, after = change.before, change.after
    if change.kind is ChangeKind.CHANGED and before and after:
        digests = f"{pin_label(before)} -> {pin_label(after)}"
    else:
        known = after or before
        digests = pin_label(known) if known else ""
    local = "local image" if after and after.source == "local" else ""
    words = [f"{_MARKS[change.kind]} {name}", digests, local, *change.details]
    return "  ".join(word for word in words if word)


def _file_line(file: FileReport, *, dry_run: bool) -> str:
    counts = dict.fromkeys(ChangeKind, 0)
    for change in file.changes:
        counts[change.kind] += 1
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    if dry_run:
        state = "would be written" if len(file.changes) > counts[ChangeKind.KEPT] else "would stay"
    elif file.written:
        state = "written"
    else:
        state = "unchanged" if file.changes else "nothing to write"
    return f"{file.path}: {state}" + (f" ({told})" if told else "")


def _change_as_json(change: Change) -> dict[str, Any]:
    return {
        "change": str(change.kind),
        "ref": change.ref,
        "before": _pin_as_json(change.before),
        "after": _pin_as_json(change.after),
        "details": list(change.details),
    }


def _pin_as_json(pin: PinnedImage | None) -> dict[str, Any] | None:
    return None if pin is None else pin.model_dump(mode="json", exclude_none=True)
