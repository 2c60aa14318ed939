"""A report that answers another question proves nothing."""

from typing import Any

import pytest

from rocmrun.core.report.claims import believed
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from tests.builders import host, plan


def report(*devices: int, **changes: Any) -> ProbeReport:
    checks = tuple(
        ProbeCheck(group="device", name="matmul_fp32", status="pass", device=device)
        for device in devices
    )
    values: dict[str, Any] = {
        "status": "pass",
        "level": "quick",
        "accelerator": "rocm",
        "checks": checks,
    }
    return ProbeReport(**(values | changes))


def test_what_was_asked_is_believed() -> None:
    assert believed(report(0, 1), plan(host=host(2)), "quick").status == "pass"


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (report(0, 1, level="full"), "level full, quick was asked for"),
        (report(0, 1, accelerator="cpu"), "about cpu, rocm was asked for"),
        (report(0), "about 1 devices, 2 were passed"),
    ],
)
def test_another_answer_is_broken(found: ProbeReport, says: str) -> None:
    judged = believed(found, plan(host=host(2)), "quick")

    assert judged.status == "broken"
    assert says in judged.reason


def test_a_failure_stays_what_it_is() -> None:
    found = report(status="fail", reason="GPU 0 is wrong")

    assert believed(found, plan(host=host(2)), "quick") == found


def test_a_check_of_the_profile_without_a_result_is_no_proof() -> None:
    """Nobody may leave out the one check that matters; at a level that has it not, nothing is missed."""
    job = plan({"probe": {"checks": [{"name": "ours", "command": ["true"]}]}}, host=host(2))
    told = ProbeCheck(group="own", name="ours", status="pass")
    whole = report(0, 1, level="standard")

    assert believed(report(0, 1), job, "quick").status == "pass"
    assert believed(whole, job, "standard").reason == (
        "the report has no result of the profile's check ours"
    )
    assert (
        believed(whole.model_copy(update={"checks": (*whole.checks, told)}), job, "standard").status
        == "pass"
    )
