"""Messages as the programs involved print them, in their several languages: each has the kind of its mechanism first."""

import pytest

from tests.unit.core.diagnosis import printed_collectives, printed_limits, printed_running
from tests.unit.core.diagnosis.catalogue import first, sure

FAMILIES = (printed_limits, printed_collectives, printed_running)


@pytest.mark.parametrize(
    ("kind", "text"),
    [(kind, text) for family in FAMILIES for kind, _, text in family.PRINTED],
)
def test_a_program_that_is_refused_tells_by_whom(kind: str, text: str) -> None:
    """Whatever its language makes of the error."""
    assert first(text) == kind


@pytest.mark.parametrize(("kind", "text"), [case for family in FAMILIES for case in family.TOLD])
def test_what_is_told_without_a_message_has_its_kind(kind: str, text: str) -> None:
    """By what was counted, and by what helped."""
    assert first(text) == kind


@pytest.mark.parametrize("text", [text for family in FAMILIES for _, text in family.NONE_OF_THEM])
def test_what_only_looks_like_it_gives_no_sure_cause(text: str) -> None:
    """A banner, a warning, another limit than these."""
    assert sure(text) == set()


def test_each_message_stands_once_and_has_an_origin() -> None:
    """Where it can be looked up."""
    texts = [text for family in FAMILIES for _, _, text in family.PRINTED]

    assert len(texts) == len(set(texts))
    assert all(origin for family in FAMILIES for _, origin, _ in family.PRINTED)
