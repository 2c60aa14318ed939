"""Clean: remove containers that nobody looks after any more."""

from collections.abc import Callable
from typing import Any

from rocmrun.core import labels
from rocmrun.core.workloads import ALIVE, is_ours, name_of
from rocmrun.system.caller import process_runs
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.workloads import labelled_by_its_image


def clean(
    engine: Engine, *, dry_run: bool, runs: Callable[[str], bool] = process_runs
) -> list[tuple[str, str]]:
    """Remove what crashed runs left; return (name, why) of each.

    *runs* says whether the process that a container's label names is still there.
    """
    found = []
    for container in engine.containers(labels.ROLE):
        why = _why_stray(container, runs) if is_ours(container) else None
        if why is None or labelled_by_its_image(engine, container):
            continue
        if not dry_run:
            engine.remove(container["Id"])
        found.append((name_of(container), why))
    return sorted(found)


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
