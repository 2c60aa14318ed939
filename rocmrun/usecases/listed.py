"""Look at a container that the engine has just listed: for a moment it lists what it does not find by its id."""

import time
from collections.abc import Callable
from typing import Any

from rocmrun.errors import EngineFailed
from rocmrun.usecases.engine_protocol import Engine

# Docker 20.10 answers 404 for a container that it has just listed, while it is made and while it is removed.
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)


def record_of(
    engine: Engine, container_id: str, *, pause: Callable[[float], object] = time.sleep
) -> dict[str, Any] | None:
    """Return the engine's record of a container that it listed; None where it is gone by now.

    Raises:
        EngineFailed: it is still listed, and there is no record of it.
    """
    for seconds in _PAUSES:
        try:
            return engine.inspect(container_id)
        except EngineFailed:
            if container_id not in {summary["Id"] for summary in engine.containers("")}:
                return None
            pause(seconds)
    return engine.inspect(container_id)
