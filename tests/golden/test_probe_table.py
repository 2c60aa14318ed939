"""What `rocmrun probe` shows in the end.

A change here is a change of what people read. Look at it, then: pytest tests/golden --snapshot-update
"""

import io
from typing import Any

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from rocmrun.console.probe import print_report
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.run_record import RunRecord
from tests.builders import ENGINE, host, plan

WIDTH = 110
DEVICE_CHECKS = ("identity", "allocate", "matmul_fp32", "matmul_fp16")


def check(group: str, name: str, device: int | str | None = None, **changes: Any) -> ProbeCheck:
    values: dict[str, Any] = {"status": "pass", "seconds": 0.25, **changes}
    return ProbeCheck(group=group, name=name, device=device, **values)


COMMON = (
    check("environment", "user", evidence={"uid": 1000, "gid": 1000, "groups": [44, 992]}),
    check("build", "torch", seconds=2.1, evidence={"version": "2.9.1", "python": "3.12.3"}),
)
LESS_THAN_PROMISED = check(
    "own", "serves", status="fail", seconds=12.5, evidence={"exit_code": 0, "metrics": {"tps": 5}},
    reason="its metric tps is 5, less than 6", threshold=6.0,
    threshold_source="the profile: metrics.tps.min of check serves",
)  # fmt: skip
ONE = (
    *COMMON,
    check("device", "matmul_fp32", "cpu", evidence={"size": 512, "wrong": 0, "gflops": 80.669}),
    check("collectives", "all_reduce", status="skipped", reason="there is only one device"),
    LESS_THAN_PROMISED,
)
BAD = check(
    "device", "matmul_fp16", 1, status="fail", reason="3 of 64 results are wrong", threshold=1.0,
    threshold_source="Higham and Mary",
)  # fmt: skip
TWO = (
    *COMMON,
    *(check("device", name, 0) for name in DEVICE_CHECKS),
    *(check("device", name, 1, seconds=0.5) for name in DEVICE_CHECKS[:3]),
    BAD,
    check("device", "copy", 0, status="degraded", reason="8 GB/s, device 1 does 24 GB/s"),
    check("model", "load", 0),
    check("model", "load", 1, status="skipped", reason="the device failed on its own"),
    check("collectives", "all_reduce", status="skipped", reason="device 1 failed on its own"),
)
MANY = (
    *COMMON,
    *(
        check("device", "matmul_fp16", index, status="fail", reason="NaN")
        if index in {3, 17}
        else check("device", "matmul_fp16", index)
        for index in range(64)
    ),
)
REPORTS = {
    "one device": ProbeReport(status="fail", reason="own: serves", seconds=16.0, checks=ONE),
    "two devices": ProbeReport(
        status="fail", reason="device 1: matmul_fp16: 3 of 64 results are wrong", seconds=9.0,
        checks=TWO,
    ),
    "64 partitions": ProbeReport(status="fail", reason="NaN", seconds=60.0, checks=MANY),
    "all well": ProbeReport(status="pass", seconds=6.0, checks=ONE[:4]),
    "no report": ProbeReport(
        status="broken", reason="the probe reported nothing (exit code 1)",
        stderr_tail=("SyntaxError: invalid syntax",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REPORTS)
def test_table(case: str, snapshot: SnapshotAssertion) -> None:
    record = RunRecord.begin(plan(), host(), ENGINE, started_at="2026-01-01T00:00:00+00:00")
    shown = io.StringIO()

    print_report(
        Console(file=shown, width=WIDTH, highlight=False, markup=False, no_color=True),
        record.with_probe(REPORTS[case]),
    )

    assert shown.getvalue() == snapshot
