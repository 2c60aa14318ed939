"""What a probe's report says to the rules: what did not pass, and nothing of what did."""

from rocmrun.core.diagnosis.from_report import report_text
from rocmrun.core.report.model import ProbeCheck, ProbeReport

PASSED = ProbeCheck(group="device", name="allocate", status="pass", device="cpu")
FAILED = ProbeCheck(
    group="device", name="matmul_fp32", status="fail", device="cpu", reason="3 results are wrong"
)
TOLD = (
    "probe: [device cpu] allocate pass 0.01s",
    "probe: fail: {'pass': 1, 'degraded': 0, 'fail': 1, 'skipped': 0}: device: matmul_fp32",
    "libgomp: something of a library",
)


def test_a_proof_on_the_cpu_is_no_complaint_about_one() -> None:
    report = ProbeReport(
        status="fail", reason="wrong", checks=(PASSED, FAILED), stderr_tail=TOLD, accelerator="cpu"
    )

    assert report_text(report).splitlines() == [
        "probe fail, wrong",
        "device: matmul_fp32, 3 results are wrong",
        "libgomp: something of a library",
    ]


def test_a_report_that_passed_says_nothing() -> None:
    report = ProbeReport(status="pass", checks=(PASSED,), stderr_tail=TOLD[:1], accelerator="cpu")

    assert report_text(report) == ""
