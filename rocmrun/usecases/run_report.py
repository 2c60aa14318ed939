"""The record of a run on its way into --report FILE: written in the end, whatever the end is."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel

from rocmrun.core.report.junit import junit_xml
from rocmrun.core.run_record import RecordedError, RefusedRun, RunRecord
from rocmrun.errors import ReportUnwritable, RocmrunError, UsageError
from rocmrun.system.files import write_atomic


def check_result_paths(places: Mapping[str, Path | None]) -> None:
    """Refuse files that results could not be written to (option → file), before the hours that they take.

    Raises:
        UsageError: two options name one file.
        ReportUnwritable: with the reason.
    """
    named: dict[Path, str] = {}
    for option, path in places.items():
        if path is None:
            continue
        first = named.setdefault(path.resolve(), option)
        if first != option:
            msg = f"{first} and {option} name the same file, {path}"
            raise UsageError(msg, hint="a file of its own for each")
        # These take what they are given.
        if not (path.is_char_device() or path.is_fifo()):
            check_report_path(path, option, "the result")


def check_report_path(
    path: Path | None, option: str = "--report", what: str = "the report"
) -> None:
    """Refuse a path that no report can be written to: a day's work should not end in a lost record.

    *option* is what named it, *what* is to be written.

    Raises:
        ReportUnwritable: with the reason.
    """
    if path is None:
        return
    if str(path) == "-":
        msg = f"{option} takes a file: stdout belongs to the workload"
        raise ReportUnwritable(msg)
    directory = path.resolve().parent
    problem = (
        f"{path} is a directory"
        if path.is_dir()
        else None
        if directory.is_dir()
        else f"{directory} is no directory"
    )
    try:
        if problem is None:
            with tempfile.TemporaryFile(dir=directory):
                return
    except OSError as error:
        problem = f"{directory}: {error.strerror}"
    msg = f"cannot write {what}: {problem}"
    raise ReportUnwritable(msg)


@contextlib.contextmanager
def refusal_reported(path: Path | None, profile: str, junit: Path | None = None) -> Iterator[None]:
    """Report what goes wrong before there is a plan; when nothing does, others write the report."""
    started_at = now()
    try:
        yield
    except RocmrunError as error:
        refused = RefusedRun(
            profile=profile,
            error=RecordedError.of(error),
            started_at=started_at,
            ended_at=now(),
        )
        write_report(path, refused)
        write_junit(junit, refused)
        raise


def now() -> str:
    """Return the time as records hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_report(path: Path | None, record: BaseModel) -> None:
    """Write *record* to the report file, where one is wanted."""
    if path is not None:
        write_atomic(path, record.model_dump_json(indent=2) + "\n", error=ReportUnwritable)


def write_junit(path: Path | None, record: RunRecord | RefusedRun) -> None:
    """Write *record* as JUnit XML, where that is wanted."""
    if path is not None:
        write_atomic(path, junit_xml(record), error=ReportUnwritable)
