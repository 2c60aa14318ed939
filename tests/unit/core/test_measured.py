"""What a probe's report says of the image, and how it goes together with what the image claims."""

from typing import Any

import pytest

from rocmrun.core.lock import LockedFacts
from rocmrun.core.measured import measured_facts, with_measured
from rocmrun.core.report.model import ProbeCheck, ProbeReport


def report(*, python: str = "", arch_list: object = None, torch: object = None) -> ProbeReport:
    evidence: dict[str, dict[str, Any]] = {
        "torch": {"version": torch},
        "arch_list": {"arch_list": arch_list},
    }
    checks = tuple(
        ProbeCheck(group="build", name=name, status="pass", evidence=values)
        for name, values in evidence.items()
    )
    return ProbeReport(status="pass", python=python, checks=checks)


def facts(source: str = "probe", **values: Any) -> LockedFacts:
    return LockedFacts(**values, sources=dict.fromkeys(values, source))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (report(), None),
        (ProbeReport(status="pass"), None),
        (report(torch="2.13.0+cpu"), facts(torch="2.13.0+cpu")),
        (report(python="3.12.3"), facts(python="3.12.3")),
        (
            report(torch="2.9.1+rocm7.2.4.git7e1940d4", arch_list=["gfx942", "gfx90a:sramecc+:xnack-"]),
            facts(
                rocm="7.2.4",
                torch="2.9.1+rocm7.2.4.git7e1940d4",
                gfx=("gfx90a:sramecc+:xnack-", "gfx942"),
            ),
        ),
        (report(arch_list=["gfx1100", "gfx942"]), facts(gfx=("gfx942", "gfx1100"))),
        (report(arch_list=["sm_90", "compute_90"]), None),
        (report(arch_list="gfx942"), None),
        (report(arch_list=[{"x": 1}, None]), None),
        (report(torch="\x1b[31mred", python="3 12"), None),
        (report(torch=7), None),
    ],
)  # fmt: skip
def test_only_what_looks_like_a_version_or_a_target_is_a_fact(
    found: ProbeReport, expected: LockedFacts | None
) -> None:
    """A report comes out of a container."""
    assert measured_facts(found) == expected


def test_a_measurement_replaces_a_claim_and_keeps_the_rest() -> None:
    claimed = LockedFacts(
        user="1000",
        torch="2.9",
        gfx=("gfx906",),
        sources={"user": "config", "torch": "tag", "gfx": "env:PYTORCH_ROCM_ARCH"},
    )

    found = with_measured(claimed, facts(torch="2.9.1", gfx=("gfx942",)))

    assert found == LockedFacts(
        user="1000",
        torch="2.9.1",
        gfx=("gfx942",),
        sources={"user": "config", "torch": "probe", "gfx": "probe"},
    )


def test_a_more_exact_claim_stays() -> None:
    """torch says which ROCm it was built for by two numbers at times; 7.20 is no 7.2."""
    exact = facts("env:ROCM_VERSION", rocm="7.2.4")

    assert with_measured(exact, facts(rocm="7.2")) == exact
    assert with_measured(facts("tag", rocm="7.20"), facts(rocm="7.2")) == facts(rocm="7.2")


def test_one_of_the_two_may_be_missing() -> None:
    one = facts(torch="2.9.1")

    assert with_measured(None, one) == one
    assert with_measured(one, None) == one
    assert with_measured(None, None) is None
