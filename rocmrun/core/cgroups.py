"""Which control groups a process is in, and by their names which container."""

import re

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def container_id_in(text: str) -> str | None:
    """Return the id in the content of /proc/PID/cgroup; None for a process of the host.

    Docker has "/docker/ID" or "/system.slice/docker-ID.scope", Podman "libpod-ID.scope", Kubernetes both
    below a pod: the last id is the innermost container's.
    """
    for path in group_paths(text).values():
        if found := _ID.findall(path):
            return str(found[-1])
    return None


def group_paths(text: str) -> dict[str, str]:
    """Return controller → path of the group, from /proc/PID/cgroup; "" is version 2."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if hierarchy.isdecimal() and colon:
            found.update(dict.fromkeys(controllers.split(","), path))
    return found
