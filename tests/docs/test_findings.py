"""Every finding has its page."""

import pytest

from rocmrun.core.diagnosis.finding import Kind
from tests.docs.documents import ROOT, sections
from tests.unit.core.diagnosis.catalogue import KINDS

PAGES = sections(ROOT / "docs" / "findings.md")


def test_the_pages_are_the_kinds() -> None:
    """In the same order; `make docs` after a change."""
    assert list(PAGES) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_page_says_what_is_needed(kind: Kind) -> None:
    """What it is, how to tell, what to do, what looks alike, where it was reported."""
    page = PAGES[kind.slug]

    assert kind.cause in page
    assert "How to tell:" in page
    assert "What to do:" in page
    assert all(f"[{other}](#{other})" in page for other in kind.look_alikes)
    assert all(source in page for source in kind.sources)
