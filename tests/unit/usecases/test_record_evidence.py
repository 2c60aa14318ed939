"""Recording evidence where there is none to record, and cleaning up after recorders: no kernel's trace is needed."""

from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.oracle import CommandOracle
from rocmrun.core.recording import NOT_ASKED
from rocmrun.core.search_space import Settings
from rocmrun.usecases.clean_traces import clean_traces, owner_name
from rocmrun.usecases.diff_privileges import diff_privileges
from rocmrun.usecases.privilege_request import DiffRequest
from rocmrun.usecases.record_evidence import Recorder
from tests.unit.usecases.stage import CPU_JOB, Stage
from tests.unit.usecases.test_diff_privileges import WIDE, Job, writable


def found(stage: Stage, recorder: Recorder | None) -> Any:
    stage.profile(CPU_JOB + WIDE)
    request = DiffRequest(
        ask=stage.ask(),
        oracle=CommandOracle(),
        lock_directory=stage.path / "locks",
        settings=Settings(retries=1, repeats=2),
        recorder=recorder,
    )
    return diff_privileges(
        request, connect=stage.connect(Job(writable)), voice=stage.heard.voice
    ).certificate


@pytest.mark.parametrize(
    ("uid", "why"),
    [(0, "has no trace instances: this kernel has no tracefs"), (1000, "lets only root trace")],
)
def test_what_cannot_be_recorded_is_said_and_skipped(stage: Stage, uid: int, why: str) -> None:
    """A warning, the reason in the certificate, and the search as without it."""
    (stage.path / "empty").mkdir()

    certificate = found(stage, Recorder(root=stage.path / "empty", uid=uid))

    assert certificate.minimal == ("rootfs:rw",)
    assert not certificate.evidence.recorded
    assert why in certificate.evidence.why
    assert any(
        f"no evidence is recorded: {certificate.evidence.why}" in w for w in stage.heard.warnings
    )
    assert "recording" not in {run.purpose for run in certificate.runs}
    assert {""} == {verdict.seen for verdict in certificate.verdicts}


def test_nothing_is_recorded_unless_somebody_asks(stage: Stage) -> None:
    """The certificate says how to."""
    certificate = found(stage, None)

    assert certificate.evidence == NOT_ASKED
    assert "--record-evidence" in certificate.evidence.why


def test_the_traced_run_is_in_the_estimate(stage: Stage) -> None:
    """Whether it will be possible is known later."""
    found(stage, Recorder(root=stage.path, uid=1000))

    assert any("5 runs when none is needed" in said for said in stage.heard.said)


def test_clean_removes_instances_whose_owner_is_gone(tmp_path: Path) -> None:
    """Its own stays while it runs, and so does what is not rocmrun's; what it cannot remove is said."""
    mine, gone, stuck = owner_name("aa"), "bb.1.2.3-f", "cc.1.2.3-f"
    for name in (f"rocmrun-{mine}", f"rocmrun-{gone}", f"rocmrun-{stuck}/open", "perf"):
        (tmp_path / "instances" / name).mkdir(parents=True)

    def runs(label: str) -> bool:
        return label != "1:2:3-f"

    planned = clean_traces(dry_run=True, runs=runs, root=tmp_path, uid=0)
    cleaned = clean_traces(dry_run=False, runs=runs, root=tmp_path, uid=0)

    names = [f"trace instance rocmrun-{name}" for name in (gone, stuck)]
    why = "left by a rocmrun that is gone"
    assert planned == [(name, why) for name in names]
    assert cleaned == [(names[0], why), (names[1], f"{why}; it stays: Directory not empty")]
    left = {path.name for path in (tmp_path / "instances").iterdir()}
    assert left == {f"rocmrun-{mine}", f"rocmrun-{stuck}", "perf"}


def test_a_running_owner_is_recognised(tmp_path: Path) -> None:
    """By what the name of its instance says of it."""
    (tmp_path / "instances" / f"rocmrun-{owner_name('aa')}").mkdir(parents=True)

    assert clean_traces(dry_run=False, root=tmp_path, uid=0) == []


def test_who_may_not_trace_has_nothing_to_clean(tmp_path: Path) -> None:
    """No error: most who clean are not root."""
    assert clean_traces(dry_run=False, root=tmp_path, uid=1000) == []
