"""Reports that were frozen before any rule saw them, and were mended for since: none may be lost again."""

import pytest

from tests.unit.core.diagnosis.catalogue import (
    FIFTH,
    FOURTH,
    LATER,
    THIRD,
    Case,
    cases,
    found_in,
    from_mechanisms,
    held_out,
    names,
)

CASES = (
    *held_out(),
    *held_out(LATER),
    *held_out(THIRD),
    *held_out(FOURTH),
    *held_out(FIFTH),
    *from_mechanisms(),
)
# What the report tells fits another kind as well, and says so: which of both it was stands in its thread.
OPEN = {"hartmark-sd-rocm-3": "not-rocm-build"}
# What the report tells is two kinds at once: a root that is read-only, and with it the directory for temporary files.
BOTH = {"vertica-vertica-kubernetes-253": "tmp-missing"}


def test_none_of_them_is_in_the_catalogue() -> None:
    """A report stands in one of the two."""
    assert {case.name for case in CASES}.isdisjoint({case.name for case in cases()})
    assert len(CASES) == len({case.name for case in CASES}) >= 660


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.kind and case.name not in {*OPEN, *BOTH}],
    ids=lambda case: case.name,
)
def test_a_report_has_its_kind_first(case: Case) -> None:
    """As its thread decided it."""
    assert names(found_in(case.text))[:1] == [case.kind]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in OPEN], ids=lambda c: c.name
)
def test_a_report_that_fits_two_kinds_names_both_and_is_sure_of_none(case: Case) -> None:
    """The likelier one first."""
    found = found_in(case.text)
    assert names(found)[:2] == [OPEN[case.name], case.kind]
    assert "high" not in {finding.confidence for finding in found}
    assert case.kind in found[0].undecided


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in BOTH], ids=lambda c: c.name
)
def test_a_report_of_two_kinds_names_both(case: Case) -> None:
    """The narrower one first."""
    assert names(found_in(case.text))[:2] == [BOTH[case.name], case.kind]


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.kind], ids=lambda case: case.name
)
def test_a_report_of_another_cause_gets_no_sure_one(case: Case) -> None:
    """It looks like a kind, and its thread says that it is none."""
    assert [found.kind.slug for found in found_in(case.text) if found.confidence == "high"] == []
