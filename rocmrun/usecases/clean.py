"""Clean: remove containers that nobody looks after any more."""

from collections.abc import Callable
from typing import Any

from rocmrun.system.caller import process_runs
from rocmrun.usecases.engine_protocol import Engine

RUN_LABEL = "io.rocmrun.run"
ROLE_LABEL = "io.rocmrun.role"
CONTROLLER_LABEL = "io.rocmrun.controller"
DETACHED_LABEL = "io.rocmrun.detached"
KEEP_LABEL = "io.rocmrun.keep"
# Between two tries of a restart policy a container is "restarting".
ALIVE = frozenset({"running", "paused", "restarting", "removing"})


def clean(
    engine: Engine, *, dry_run: bool, runs: Callable[[str], bool] = process_runs
) -> list[tuple[str, str]]:
    """Remove what crashed runs left; return (name, why) of each.

    *runs* says whether the process that a container's label names is still there.
    """
    found = []
    for container in engine.containers(ROLE_LABEL):
        why = _why_stray(container, runs)
        if why is None or _labelled_by_its_image(engine, container):
            continue
        if not dry_run:
            engine.remove(container["Id"])
        name = (container.get("Names") or [container["Id"][:12]])[0].lstrip("/")
        found.append((name, why))
    return sorted(found)


def _labelled_by_its_image(engine: Engine, container: dict[str, Any]) -> bool:
    """Whether the container's labels are its image's own: `docker commit` of one of ours bakes them."""
    image = engine.image(container.get("ImageID") or container.get("Image") or "")
    baked = dict(image.labels) if image is not None else {}
    run = container["Labels"].get(RUN_LABEL, "")
    return ROLE_LABEL in baked and run == baked.get(RUN_LABEL, "")


def _why_stray(container: dict[str, Any], runs: Callable[[str], bool]) -> str | None:
    labels, state = container["Labels"], container.get("State")
    if runs(labels.get(CONTROLLER_LABEL, "")):
        # Looked after, or being started at this moment.
        return None
    alive = state in ALIVE
    if labels.get(DETACHED_LABEL) and state != "created":
        # On its own while it runs; afterwards its log stays readable until it is removed.
        return None if alive or labels.get(KEEP_LABEL) else "a detached workload that has ended"
    if labels.get(KEEP_LABEL) and state == "exited":
        return None
    what = "still running" if alive else "left behind"
    return f"{labels[ROLE_LABEL]} of a rocmrun that is gone, {what}"
