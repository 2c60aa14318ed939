"""JUnit XML that any parser reads, whatever a container put into its report."""

from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmrun.core.report.junit import junit_xml
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.run_record import RecordedError, RefusedRun, RunRecord
from tests.builders import ENGINE, host, plan

AT = "2026-01-01T00:00:00+00:00"


def check(status: str = "pass", **changes: Any) -> ProbeCheck:
    values: dict[str, Any] = {"group": "device", "name": "matmul_fp32", "device": 0, "seconds": 0.5}
    return ProbeCheck(**(values | {"status": status} | changes))


def document(*checks: ProbeCheck, **report: Any) -> Xml.Element:
    """Return the parsed document of a report with *checks*."""
    record = RunRecord.begin(plan(), host(), ENGINE, started_at=AT)
    values: dict[str, Any] = {"status": "pass", "seconds": 2.0, "checks": checks}
    return Xml.fromstring(junit_xml(record.with_probe(ProbeReport(**(values | report)))))


def only(root: Xml.Element, path: str) -> Xml.Element:
    (found,) = root.findall(path)
    return found


def test_a_suite_a_group_and_a_case_a_check() -> None:
    root = document(
        check(), check(device=1), check(group="build", name="torch", device=None), status="pass"
    )

    assert [suite.get("name") for suite in root] == ["device", "build", "verdict"]
    assert (root.get("tests"), root.get("failures"), root.get("time")) == ("4", "0", "2.000")
    assert [
        (case.get("classname"), case.get("name"), case.get("time"))
        for case in root.iter("testcase")
    ] == [
        ("device 0", "matmul_fp32", "0.500"), ("device 1", "matmul_fp32", "0.500"),
        ("container", "torch", "0.500"), ("job", "probe", "2.000"),
    ]  # fmt: skip
    assert {suite.get("timestamp") for suite in root} == {AT}


def test_failed_skipped_and_degraded_checks_say_why() -> None:
    root = document(
        check("fail", reason="1 of 64 wrong", threshold=1.0, threshold_source="Higham"),
        check("skipped", device=1, reason="no node"),
        check("degraded", device=2, reason="slow", evidence={"gflops": 1.5}),
        status="fail", reason="device 0: matmul_fp32: 1 of 64 wrong",
    )  # fmt: skip
    suite = root[0]

    assert [suite.get(key) for key in ("tests", "failures", "skipped", "errors")] == list("3110")
    assert only(suite, ".//failure").get("message") == "1 of 64 wrong"
    assert only(suite, ".//skipped").get("message") == "no node"
    outputs = [case.findtext("system-out") for case in suite]
    assert (outputs[0] or "").startswith("threshold 1: Higham\n")
    assert (outputs[2] or "").splitlines() == ["degraded: slow", "{", ' "gflops": 1.5', "}"]
    assert only(root[1], ".//failure").get("message") == "device 0: matmul_fp32: 1 of 64 wrong"


def test_a_broken_report_is_an_error_with_the_last_words() -> None:
    root = document(status="broken", reason="the probe reported nothing", stderr_tail=("oops",))

    assert only(root, ".//error").get("message") == "the probe reported nothing"
    assert root.findtext(".//system-out") == "broken: the probe reported nothing\noops"


def test_a_run_that_was_refused_is_an_error() -> None:
    error = RecordedError(slug="lock-missing", code=3, message="no lock")

    root = Xml.fromstring(
        junit_xml(RefusedRun(profile="job", error=error, started_at=AT, ended_at=AT))
    )

    assert [root.get(key) for key in ("tests", "errors", "failures")] == ["1", "1", "0"]
    assert only(root, ".//error").attrib == {"message": "no lock", "type": "lock-missing"}


def test_a_run_that_was_not_probed_has_no_verdict() -> None:
    record = RunRecord.begin(plan(), host(), ENGINE, started_at=AT).without_probe("--no-probe")

    root = Xml.fromstring(junit_xml(record))

    assert [root.get(key) for key in ("tests", "skipped", "errors")] == ["1", "1", "0"]


@pytest.mark.parametrize("nasty", ["a\x00\x1b[2Jb", "a\ud800\uffffb", "]]>&<\"'", "\x85\u2028"])
def test_no_text_breaks_the_document(nasty: str) -> None:
    root = document(
        check("fail", name=nasty, reason=nasty, evidence={nasty: nasty}),
        reason=nasty,
        status="fail",
    )

    assert "\x00" not in Xml.tostring(root, encoding="unicode")
    assert (
        only(root, "./testsuite/testcase/failure[@type='fail']/..[@classname='device 0']")
        is not None
    )


@settings(deadline=None)
@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_whatever_a_check_says_is_read_back(text: str, seconds: float) -> None:
    root = document(check("fail", reason=text, name=text, seconds=seconds, evidence={"x": text}))

    assert len(list(root.iter("testcase"))) == 2
