"""Which engine: the one seam through which use-cases reach it."""

from rocmrun.usecases.engine_protocol import Engine


def connect() -> Engine:
    """Return the engine of this user's environment.

    docker is imported here: a command that needs no engine never pays for it.
    """
    from rocmrun.system.engine import DockerEngine  # noqa: PLC0415

    return DockerEngine.connect()
