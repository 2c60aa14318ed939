"""The Docker daemon through the Docker SDK: the only package that imports docker.

Calls return our own values and raise our own errors; nothing here decides what a container may do.
"""

from rocmrun.system.engine.daemon import DockerEngine, engine_address

__all__ = ["DockerEngine", "engine_address"]
