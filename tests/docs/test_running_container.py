"""The page on the doctor has every check of a container that runs."""

import re

from rocmrun.core.running.checks import CONTAINER_CHECKS
from tests.docs.documents import ROOT, sections


def test_every_check_of_a_container_is_on_its_page() -> None:
    """In the order in which it is printed."""
    section = sections(ROOT / "docs" / "doctor.md")["A container that runs"]

    assert list(CONTAINER_CHECKS) == re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)
