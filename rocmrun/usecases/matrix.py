"""Read AMD's support matrix for people: what it lists, how old it is, and which images serve a GPU."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from rocmrun.core.gpu_table import parse_gpu_table
from rocmrun.core.lock import PinnedImage
from rocmrun.core.support.matrix import parse_matrix
from rocmrun.core.support.query import Reading, answers, asked_gpu, carriers
from rocmrun.system.package_data import read_gpu_table, read_support_matrix
from rocmrun.usecases.locks import LockPlaces, read_lock


def read_matrix(
    *,
    gpu: str | None = None,
    rocm: str | None = None,
    system: str | None = None,
    lockfile: Path | None = None,
    today: date | None = None,
) -> Reading:
    """Return the lines about what is asked.

    Raises:
        UsageError: nothing is known by that name.
    """
    matrix = parse_matrix(read_support_matrix())
    asked = asked_gpu(gpu, matrix, parse_gpu_table(read_gpu_table()))
    day = today or datetime.now(UTC).date()
    return Reading(
        matrix=matrix,
        age_days=(day - date.fromisoformat(matrix.newest_fact)).days,
        answers=answers(matrix, asked, rocm=rocm, system=system),
        images=carriers(_pins(lockfile), asked) if gpu else None,
    )


def _pins(lockfile: Path | None) -> Iterator[PinnedImage]:
    """Yield the images of every lock that can answer here."""
    places = LockPlaces.here(lockfile)
    paths = (places.project, places.user, places.system, places.shipped)
    for path in (places.option,) if places.option else paths:
        lock = read_lock(path)
        yield from lock.images if lock else ()
