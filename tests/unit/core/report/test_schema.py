"""The published schema of reports: up to date, true of what is written, and not of anything else."""

import json
from pathlib import Path

import pytest

from rocmrun.__main__ import run
from rocmrun.console.probe import report_as_json
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.run_record import RecordedError, RefusedRun, RunRecord
from tests.builders import ENGINE, host, plan
from tests.schema import REPORT_SCHEMA, problems

AT = "2026-01-01T00:00:00+00:00"
CHECK = ProbeCheck(group="device", name="matmul_fp32", status="fail", device=0, threshold=1.0)
ERROR = RecordedError(slug="lock-missing", code=3, message="no lock")


def record() -> RunRecord:
    report = ProbeReport(status="fail", reason="wrong", checks=(CHECK,), exit_code=1)
    return RunRecord.begin(plan(), host(), ENGINE, started_at=AT).with_probe(report)


def test_the_published_file_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """When this fails: rocmrun probe --schema > schema/report.schema.json."""
    assert run(["probe", "--schema"]) == 0

    assert REPORT_SCHEMA.read_text(encoding="utf-8") == capsys.readouterr().out


def test_what_is_written_and_what_is_printed_keeps_to_it(tmp_path: Path) -> None:
    refused = RefusedRun(profile="job", error=ERROR, started_at=AT, ended_at=AT)
    written = [value.model_dump(mode="json") for value in (record(), refused)]

    assert problems(tmp_path, *written, report_as_json(record())) == ""


def test_every_key_of_a_check_is_always_there() -> None:
    schema = json.loads(REPORT_SCHEMA.read_text(encoding="utf-8"))

    assert schema["$defs"]["ProbeCheck"]["required"] == [
        "group", "name", "status", "device", "seconds", "evidence", "reason", "threshold",
        "threshold_source",
    ]  # fmt: skip


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    wrong = record().model_dump(mode="json")
    wrong["probe"]["checks"][0]["status"] = "splendid"

    assert "splendid" in problems(tmp_path, wrong)
