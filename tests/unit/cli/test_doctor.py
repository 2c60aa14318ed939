"""`rocmrun doctor` and `rocmrun explain` as their users run them."""

import io
import json
from pathlib import Path

import pytest

from rocmrun.__main__ import run
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.usecases.doctor import examine
from tests.fakes import no_engine
from tests.hosts import FakeGpu, FakeNode, build_host
from tests.unit.core.diagnosis.catalogue import KINDS

DENIED = 'ok\nUnable to open /dev/kfd read-write: Permission denied\nnodes: {"/dev/kfd": "root:992 0660"}\ngroups: 1000 44\n'


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    value: dict[str, object] = json.loads(capsys.readouterr().out)
    return value


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text(DENIED, encoding="utf-8")
    return path


def test_a_log_gives_findings_and_exit_code_1(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kind, confidence, the line that shows it, the next step; no host is looked at."""
    code = run(["doctor", "--log", str(log), "--json"])

    answer = said(capsys)
    findings = answer["findings"]
    assert isinstance(findings, list)
    first = findings[0]
    assert code == 1
    assert (answer["ok"], answer["checks"]) == (False, [])
    assert (first["kind"], first["confidence"]) == ("render-gid-mismatch", "high")
    assert first["evidence"][0]["line"] == 2
    assert "stat -c" in first["next"]
    assert "reinstalling torch" in first["note"]


def test_a_log_comes_on_stdin_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dash, as everywhere."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(DENIED.encode())))

    assert run(["doctor", "--log", "-"]) == 1
    assert "line 2: Unable to open /dev/kfd" in capsys.readouterr().out


def test_a_log_without_a_failure_is_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And says that nothing was found."""
    log = tmp_path / "run.log"
    log.write_text("epoch 1 loss 2.3\n", encoding="utf-8")

    assert run(["doctor", "--log", str(log)]) == 0
    assert "nothing was found" in capsys.readouterr().out


def test_a_log_that_is_not_there_is_the_callers_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, no traceback."""
    assert run(["doctor", "--log", "/nowhere/run.log"]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_probes_report_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Errno and owner stand in its evidence."""
    failed = ProbeCheck(
        group="environment",
        name="open:/dev/kfd",
        status="fail",
        reason="cannot open /dev/kfd: EPERM, not permitted: the device cgroup does not allow this node",
    )
    path = tmp_path / "report.json"
    path.write_text(
        ProbeReport(status="fail", checks=(failed,)).model_dump_json(), encoding="utf-8"
    )

    assert run(["doctor", "--probe-report", str(path), "--json"]) == 1
    findings = said(capsys)["findings"]
    assert isinstance(findings, list)
    assert findings[0]["kind"] == "cgroup-device-denied"


def test_what_is_no_report_is_refused(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the command that makes one."""
    assert run(["doctor", "--probe-report", str(log)]) == 2
    assert "--report FILE" in capsys.readouterr().err


def test_a_hosts_blocker_becomes_a_finding(tmp_path: Path) -> None:
    """A saved tree is enough, and no engine is needed."""
    root = build_host(tmp_path / "host", [FakeGpu()], kfd=FakeNode(mode=0o600))

    found = examine(None, host_root=root, log=None, report=None, connect=no_engine)

    assert found.blocked
    assert "host-udev-perms" in [finding.kind.slug for finding in found.findings]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_explained(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Cause, how to tell, what to do."""
    assert run(["explain", kind]) == 0
    text = capsys.readouterr().out
    assert KINDS[kind].title in text
    assert "what to do:" in text


def test_a_kind_that_there_is_not_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """People mistype."""
    assert run(["explain", "render-gid-mismach"]) == 2
    assert "rocmrun explain render-gid-mismatch" in capsys.readouterr().err


def test_all_kinds_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of mending."""
    assert run(["explain", "--list", "--json"]) == 0
    kinds = said(capsys)["kinds"]
    assert isinstance(kinds, list)
    assert [row["kind"] for row in kinds] == list(KINDS)


def test_a_log_without_a_name_is_no_question_about_the_host(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--log "$LOG"` with a variable that is not set must not say that all is well."""
    assert run(["doctor", "--log", "", "--json"]) == 2

    assert said(capsys)["error"] == {
        "slug": "usage", "code": 2, "message": "--log names no file", "hint": "- is standard input", "details": [],
    }  # fmt: skip
