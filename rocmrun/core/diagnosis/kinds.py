"""The kinds of failures, from the package's table."""

import tomllib
from collections.abc import Mapping

from rocmrun.core.diagnosis.finding import STEPS, Kind


def parse_kinds(text: str) -> Mapping[str, Kind]:
    """Return slug → kind, in the order in which they are mended.

    Raises:
        ValueError: the table names a step or a look-alike that there is not.
    """
    table = tomllib.loads(text)
    kinds = [
        Kind(
            slug=slug,
            **{**row, "look_alikes": tuple(row["look_alikes"]), "sources": tuple(row["sources"])},
        )
        for slug, row in table.items()
    ]
    for kind in kinds:
        unknown = {*kind.look_alikes} - table.keys() | ({kind.step} - {*STEPS})
        if unknown:
            msg = f"{kind.slug} names {', '.join(sorted(unknown))}"
            raise ValueError(msg)
    return {kind.slug: kind for kind in sorted(kinds, key=lambda kind: kind.order)}
