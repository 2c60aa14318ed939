"""Clean: remove containers that nobody looks after any more, and finish handovers that were cut off."""

import contextlib
from collections.abc import Callable, Collection
from typing import Any

from rocmrun.core import labels
from rocmrun.core.workloads import ALIVE, is_ours, name_of, workload_of
from rocmrun.errors import EngineFailed
from rocmrun.system.caller import process_runs
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.replace import cut_off
from rocmrun.usecases.workloads import labelled_by_its_image, list_workloads


def clean(
    engine: Engine, *, dry_run: bool, runs: Callable[[str], bool] = process_runs
) -> list[tuple[str, str]]:
    """Remove what crashed runs left; return (name, why) of each.

    *runs* says whether the process that a container's label names is still there.
    """
    found = []
    ours = [container for container in engine.containers(labels.ROLE) if is_ours(container)]
    # Stopped for a successor that is being started, and started again where that does not come up.
    awaited = {
        workload.successor_of
        for workload in map(workload_of, ours)
        if workload.handing_over and runs(workload.controller)
    }
    for container in ours:
        why = _why_stray(container, runs)
        if why is None or name_of(container) in awaited or labelled_by_its_image(engine, container):
            continue
        if not dry_run:
            engine.remove(container["Id"])
        found.append((name_of(container), why))
    return sorted(found)


def finish_handovers(
    engine: Engine,
    *,
    removed: Collection[str],
    dry_run: bool,
    runs: Callable[[str], bool] = process_runs,
) -> list[tuple[str, str]]:
    """Give successors that run on under a temporary name the one that they were to get; return (old, new) name of each.

    One whose name somebody else has keeps its own.

    Args:
        engine: Where.
        removed: Names of containers that `clean` has removed, or would.
        dry_run: Only say what would be done.
        runs: Says whether the process that a container's label names is still there.
    """
    found = list_workloads(engine, ended=True)
    taken = {workload.name for workload in found if workload.name not in removed}
    renamed = []
    for workload in cut_off(found, runs):
        if not workload.alive or workload.successor_of in taken:
            continue
        with contextlib.suppress(EngineFailed):
            if not dry_run:
                engine.rename(workload.container_id, workload.successor_of)
            renamed.append((workload.name, workload.successor_of))
            taken.add(workload.successor_of)
    return renamed


def _why_stray(container: dict[str, Any], runs: Callable[[str], bool]) -> str | None:
    found, state = container["Labels"], container.get("State")
    if runs(found.get(labels.CONTROLLER, "")):
        # Looked after, or being started at this moment.
        return None
    alive = state in ALIVE
    if found.get(labels.DETACHED) and state != "created":
        # On its own while it runs; afterwards its log stays readable until it is removed.
        return None if alive or found.get(labels.KEEP) else "a detached workload that has ended"
    if found.get(labels.KEEP) and state == "exited":
        return None
    what = "still running" if alive else "left behind"
    return f"{found[labels.ROLE]} of a rocmrun that is gone, {what}"
