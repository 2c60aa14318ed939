"""Which engine: the one seam through which use-cases reach it."""

import threading
from collections.abc import Callable

from rocmrun.system.signals import wait_until
from rocmrun.usecases.engine_protocol import Engine


def connect() -> Engine:
    """Return the engine of this user's environment.

    docker is imported here: a command that needs no engine never pays for it.
    """
    from rocmrun.system.engine import DockerEngine  # noqa: PLC0415

    return DockerEngine.connect()


def connect_early() -> Callable[[], Engine]:
    """Connect in the background, facts included, and return what waits for the engine.

    The engine takes a while to describe itself; meanwhile this process imports what it needs to plan.
    What goes wrong is raised by the function that is returned.
    """
    found: list[Engine] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            engine = connect()
            engine.facts()
        except BaseException as error:  # noqa: BLE001  # raised again where the engine is asked for
            failed.append(error)
        else:
            found.append(engine)
        done.set()

    threading.Thread(target=work, daemon=True).start()

    def result() -> Engine:
        wait_until(done.wait)
        if failed:
            raise failed[0]
        return found[0]

    return result
