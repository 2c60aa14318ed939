"""Containers whose exposure is known: what people run today, and what rocmrun makes."""

from collections.abc import Callable
from typing import Any

from rocmrun.core.create_request import create_request
from rocmrun.core.exposure.container_rights import Surroundings
from rocmrun.core.exposure.score import Exposure, score_request
from tests.builders import plan

CONFINED = Surroundings(lsm=True, engine_lsm=True)
HOST: dict[str, Any] = {"NetworkMode": "host", "PidMode": "host"}
DOCKER_DEFAULT: dict[str, Any] = {"User": "", "HostConfig": {}}
# --cap-add=SYS_PTRACE --security-opt seccomp=unconfined --device=/dev/kfd --device=/dev/dri
# --group-add video --ipc=host --shm-size 8G
AMD_RECIPE: dict[str, Any] = {
    "User": "",
    "HostConfig": {
        "CapAdd": ["SYS_PTRACE"],
        "SecurityOpt": ["seccomp=unconfined"],
        "Devices": [
            {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"}
            for path in ("/dev/kfd", "/dev/dri")
        ],
        "GroupAdd": ["video"],
        "IpcMode": "host",
        "ShmSize": 8 << 30,
    },
}
PRIVILEGED: dict[str, Any] = {"User": "", "HostConfig": {"Privileged": True, **HOST}}
# The baseline without a cache and without an executable /tmp.
MINIMAL: dict[str, Any] = {
    "User": "1000:1000",
    "HostConfig": {
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true"],
        "Devices": [{"PathOnHost": "/dev/kfd"}, {"PathOnHost": "/dev/dri/renderD128"}],
        "GroupAdd": ["992"],
        "NetworkMode": "none",
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "ReadonlyRootfs": True,
        "PidsLimit": 4096,
        "Memory": 1 << 30,
        "LogConfig": {"Type": "none"},
    },
}


def changed(request: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return *request* with other fields of HostConfig."""
    return {**request, "HostConfig": {**request["HostConfig"], **fields}}


def baseline() -> Exposure:
    """Return the exposure of a profile that asks for one GPU and nothing else."""
    made = plan()
    own = frozenset(mount.source for mount in made.mounts if mount.cache)
    return score_request(
        create_request(made, role="workload"),
        Surroundings(lsm=True, engine_lsm=True, own_sources=own),
    )


REFERENCE: dict[str, Callable[[], Exposure]] = {
    "amd-recipe": lambda: score_request(AMD_RECIPE, CONFINED),
    "docker-default": lambda: score_request(DOCKER_DEFAULT, CONFINED),
    "baseline": baseline,
    "privileged": lambda: score_request(PRIVILEGED, CONFINED),
}
