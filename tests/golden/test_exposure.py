"""The exposure of four containers, every row of it: a change of weight or wording is seen, and is a decision.

To accept new values: pytest tests/golden/test_exposure.py --snapshot-update, and a new version of the
score where a number changed.
"""

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from tests.exposures import REFERENCE


@pytest.mark.parametrize("name", REFERENCE)
def test_exposure_is_the_golden_one(name: str, snapshot: SnapshotAssertion) -> None:
    assert REFERENCE[name]().to_json() == snapshot(extension_class=JSONSnapshotExtension)
