"""When a workload is up: it runs, and where a health check is asked for it is healthy."""

import threading
from collections.abc import Callable
from time import sleep

from rocmrun.core.text import printable
from rocmrun.errors import EngineFailed, RocmrunError, WorkloadNotUp
from rocmrun.usecases.engine_protocol import Engine

LOOK_SECONDS = 0.5
LAST_LINES = 5


def check_up(
    engine: Engine,
    container_id: str,
    *,
    health: bool,
    settle_seconds: float,
    pause: Callable[[float], object] = sleep,
) -> None:
    """Return when a started container is up.

    It is when it still runs after *settle_seconds*, and with *health* when its health check has passed.

    Raises:
        WorkloadNotUp: it has ended, or its health check failed as often as may be.
    """
    try:
        code = engine.wait(container_id, settle_seconds)
    except TimeoutError:
        pass
    else:
        msg = f"the new workload ended at once with exit code {code}"
        raise WorkloadNotUp(msg, details=_last_words(engine, container_id))
    while health:
        state = engine.state(container_id)
        if state.health == "healthy":
            return
        if state.health == "unhealthy" or state.status not in {"running", "restarting"}:
            found = state.health if state.status == "running" else state.status
            msg = f"the new workload did not become healthy: it is {found}"
            raise WorkloadNotUp(msg, details=_last_words(engine, container_id))
        pause(LOOK_SECONDS)


def when_healthy(
    engine: Engine,
    container_id: str,
    then: Callable[[], None],
    *,
    pause: Callable[[float], object] = sleep,
) -> threading.Thread:
    """Call *then* once the container is healthy, from the thread returned; never where it ends before."""

    def look() -> None:
        try:
            while (state := engine.state(container_id)).status in {"running", "restarting"}:
                if state.health == "healthy":
                    then()
                    return
                pause(LOOK_SECONDS)
        except RocmrunError:
            # Removed, or the engine has gone: whoever waits for the workload tells.
            return

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    return looking


def _last_words(engine: Engine, container_id: str) -> tuple[str, ...]:
    try:
        data = b"".join(
            data for _, data in engine.logs(container_id, follow=False, tail=LAST_LINES)
        )
    except EngineFailed:
        return ()
    lines = data.decode(errors="replace").splitlines()[-LAST_LINES:]
    return tuple(printable(line, 200) for line in lines)
