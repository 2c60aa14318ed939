"""Where a trial wrote in its image's tree, or was not let write: what a narrower right than a writable root is made from."""

from collections.abc import Callable, Iterable

from rocmrun.core.diagnosis.refused import read_only_paths
from rocmrun.core.oracle import TrialResult
from rocmrun.core.plan import Plan
from rocmrun.core.tmpfs_offer import targets_of
from rocmrun.core.writes import Writes, writes_of
from rocmrun.errors import EngineFailed
from rocmrun.usecases.engine_protocol import Engine

MOST_REFUSED = 16


def written_by(
    engine: Engine, container_id: str, plan: Plan, detail: Callable[[str], None]
) -> Writes | None:
    """Return where a container of *plan* that has ended wrote; None under a read-only root, or where the engine does not tell."""
    if plan.read_only_root:
        return None

    def is_directory(path: str) -> bool:
        found = engine.path_stat(container_id, path)
        return found is not None and found.is_directory

    try:
        layer = engine.written(container_id)
        return writes_of(layer, targets_of(plan), is_directory=is_directory)
    except EngineFailed as error:
        # It is one of two ways to know, and a search goes on without.
        detail(error.message)
        return None


def with_writes(
    result: TrialResult, writes: Writes | None, plan: Plan, said: Iterable[str]
) -> TrialResult:
    """Return *result* with where its run wrote; of one that failed under a read-only root, with what it *said* of paths there."""
    if result.passed:
        return result.model_copy(update={"writes": writes})
    if not plan.read_only_root:
        return result
    paths = read_only_paths("\n".join(said))[:MOST_REFUSED]
    return result.model_copy(update={"refused": paths})
