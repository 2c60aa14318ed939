"""Which container a process is in, by the name of its cgroup."""

import re

_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def container_id_in(text: str) -> str | None:
    """Return the id in the content of /proc/PID/cgroup; None for a process of the host.

    Docker has "/docker/ID" or "/system.slice/docker-ID.scope", Podman "libpod-ID.scope", Kubernetes both
    below a pod: the last id is the innermost container's.
    """
    for line in text.splitlines():
        if found := _ID.findall(line.split(":", 2)[-1]):
            return str(found[-1])
    return None
