"""Clean: remove containers that nobody looks after any more."""

from collections.abc import Callable
from typing import Any

from rocmrun.system.caller import process_runs
from rocmrun.usecases.engine_protocol import Engine

ROLE_LABEL = "io.rocmrun.role"
CONTROLLER_LABEL = "io.rocmrun.controller"
KEEP_LABEL = "io.rocmrun.keep"


def clean(
    engine: Engine, *, dry_run: bool, runs: Callable[[str], bool] = process_runs
) -> list[tuple[str, str]]:
    """Remove what crashed runs left; return (name, why) of each.

    *runs* says whether the process that a container's label names is still there.
    """
    found = []
    for container in engine.containers(ROLE_LABEL):
        why = _why_stray(container, runs)
        if why is None:
            continue
        if not dry_run:
            engine.remove(container["Id"])
        name = (container.get("Names") or [container["Id"][:12]])[0].lstrip("/")
        found.append((name, why))
    return sorted(found)


def _why_stray(container: dict[str, Any], runs: Callable[[str], bool]) -> str | None:
    labels = container["Labels"]
    controller = labels.get(CONTROLLER_LABEL, "")
    running = container.get("State") == "running"
    if controller and runs(controller):
        return None
    if not controller:
        # Detached: it is on its own while it runs, and its log stays readable until it is removed.
        return None if running or labels.get(KEEP_LABEL) else "a detached workload that has ended"
    if labels.get(KEEP_LABEL) and not running:
        return None
    state = "still running" if running else "left behind"
    return f"{labels[ROLE_LABEL]} of a rocmrun that is gone, {state}"
