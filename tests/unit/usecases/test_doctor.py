"""What a failed launch or probe adds to its error, and what a diagnosis is made of."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from rocmrun.console.doctor import diagnosis_as_json, print_diagnosis
from rocmrun.core.doctor import Seen
from rocmrun.core.host import HostFacts
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.errors import EngineFailed, ProbeFailed, UsageError
from rocmrun.usecases.doctor import (
    Case,
    add_cause,
    cause_lines,
    examine,
    explain,
    judged,
    likely_cause,
    read_report,
)
from rocmrun.usecases.launch import raise_if_failed
from tests.builders import probe_output
from tests.fakes import no_engine
from tests.hosts import FakeGpu, FakeNode, build_host

CLOSED = ProbeReport(
    status="fail",
    reason="cannot open /dev/kfd",
    checks=(
        ProbeCheck(
            group="environment",
            name="open:/dev/kfd",
            status="fail",
            reason="cannot open /dev/kfd: EPERM, not permitted: the device cgroup does not allow this node",
            evidence={"errno": "EPERM", "path": "/dev/kfd"},
        ),
    ),
)


def test_a_failed_probe_names_its_likely_cause() -> None:
    """From errno and evidence of its checks, beside the checks themselves."""
    with pytest.raises(ProbeFailed) as failed:
        raise_if_failed(CLOSED)

    assert "rocmrun explain cgroup-device-denied" in "\n".join(failed.value.details)


def test_a_probe_without_torch_is_told_what_to_write() -> None:
    """Another interpreter, HIP, or no proof: a look at every check would say nothing more."""
    lacks = ProbeCheck(group="build", name="torch", status="fail", reason="/usr/bin/python3 (Python 3.11.2) has no torch", evidence={"missing_module": "torch"})  # fmt: skip
    other = lacks.model_copy(update={"evidence": {**lacks.evidence, "python_elsewhere": "/opt/venv/bin/python3"}})  # fmt: skip
    with pytest.raises(ProbeFailed) as failed:
        raise_if_failed(ProbeReport(status="fail", reason=f"{lacks.label}: {lacks.reason}", checks=(lacks,)))  # fmt: skip
    with pytest.raises(ProbeFailed) as elsewhere:
        raise_if_failed(ProbeReport(status="fail", reason="build: torch", checks=(other,)))

    assert "rocmrun explain missing-torch" in "\n".join(failed.value.details)
    assert '[probe] python = "/opt/venv/bin/python3"' in str(elsewhere.value.hint)
    assert failed.value.hint is not None
    assert "[probe] python" in failed.value.hint
    assert "--no-probe" in failed.value.hint


def test_a_failed_report_stands_in_the_way_with_or_without_a_known_cause() -> None:
    """What the probe said is repeated where no rule says more."""
    unknown = judged(Case(report=ProbeReport(status="fail", reason="device: matmul_fp32: wrong")))
    known, fine = judged(Case(report=CLOSED)), judged(Case(report=ProbeReport(status="pass")))
    stream = io.StringIO()
    print_diagnosis(Console(file=stream, width=200), unknown)

    assert (unknown.blocked, known.blocked, fine.blocked) == (True, True, False)
    assert "the probe failed: device: matmul_fp32: wrong" in stream.getvalue()
    assert diagnosis_as_json(unknown)["probe_failure"] == "device: matmul_fp32: wrong"
    assert diagnosis_as_json(fine)["probe_failure"] is None


def test_a_host_without_gpus_explains_nothing_of_a_job_that_passes_none() -> None:
    """Such a job fails for a reason of its own; one that wants a GPU fails for want of /dev/kfd."""
    log = "OSError: [Errno 30] Read-only file system: '/opt/app'"
    seen = Seen(host=HostFacts(), wants_gpus=False)

    of_none, of_one = (
        {finding.kind.slug for finding in judged(Case(seen=one, log=log)).findings}
        for one in (seen, replace(seen, wants_gpus=True))
    )

    assert "readonly-rootfs" in of_none
    assert "kfd-missing-on-host" not in of_none
    assert "kfd-missing-on-host" in of_one


def test_a_probe_whose_cause_is_not_known_adds_nothing() -> None:
    """A guess would send people the wrong way."""
    assert likely_cause(ProbeReport(status="fail", reason="results differ")) is None
    assert cause_lines(None) == ()


def test_an_engines_own_words_are_explained() -> None:
    """The engine does not know what an AMD GPU needs."""
    error = EngineFailed(
        'error gathering device information while adding custom device "/dev/kfd": no such file or directory'
    )
    add_cause(error)

    assert "rocmrun explain kfd-missing-on-host" in error.details[0]


def test_an_engines_words_without_a_known_cause_stay_as_they_are() -> None:
    """Not every failure is one of these."""
    error = EngineFailed("i/o timeout")
    add_cause(error)

    assert error.details == ()


def test_a_text_alone_needs_neither_host_nor_engine(tmp_path: Path) -> None:
    """It may come from another machine."""
    found = examine(
        None, host_root=tmp_path / "nowhere", log="HIP error: invalid device function", report=None, connect=no_engine
    )  # fmt: skip

    assert found.checks == ()
    assert [finding.kind.slug for finding in found.findings] == ["arch-not-in-image"]


def test_what_blocks_here_comes_before_what_a_text_points_to(tmp_path: Path) -> None:
    """A host that is not ready explains much else."""
    root = build_host(tmp_path / "host", [FakeGpu()], kfd=FakeNode(mode=0o600))
    found = examine(None, host_root=root, log=None, report=None, connect=no_engine)

    assert found.blocked
    assert found.findings[0].kind.slug == "host-udev-perms"


def test_the_probes_own_lines_are_a_report(tmp_path: Path) -> None:
    """As much as the record that rocmrun writes."""
    path = tmp_path / "lines"
    path.write_bytes(probe_output())

    assert read_report(path).checks


def test_a_kind_that_there_is_not_is_refused() -> None:
    """With the list of those that there are."""
    with pytest.raises(UsageError) as refused:
        explain("xyzzy")

    assert refused.value.hint == "rocmrun explain --list"
