"""What Podman does whatever it is asked: written into the plan, so that it is bounded and has a reason.

Read off Podman 4.3.1 and its source (github.com/containers/podman).
"""

from typing import Literal

from rocmrun.core.planning.draft import Draft
from rocmrun.core.text import MIB

PODMAN_TMPFS = 64 * MIB
# What Podman's default profile says of the calls that a rule unlocks in Docker's (containers/common, seccomp.json).
PODMAN_ALLOWS = {
    "+mempolicy": "Podman's own profile allows mbind, get_mempolicy and set_mempolicy",
    "+pidfd": "Podman's own profile allows pidfd_getfd; kcmp and process_madvise stay refused",
}
_READ_ONLY_TMPFS = frozenset({"/run", "/var/tmp"})  # noqa: S108  # the container's own; /tmp every plan has
# The smallest number of process ids that a kernel has by default.
_LEAST_PIDS = 32768


def runs_on_podman(draft: Draft) -> bool:
    """Whether the engine that was asked is Podman."""
    return draft.request.engine is not None and draft.request.engine.podman


def podman_tmpfs(draft: Draft) -> frozenset[str]:
    """Return where Podman mounts a writable, unbounded tmpfs unless one is there (pkg/specgenutil, volumes.go)."""
    read_only = not draft.asked("rootfs")
    return _READ_ONLY_TMPFS if read_only and runs_on_podman(draft) else frozenset()


def podman_nproc(draft: Draft) -> int | None:
    """Return the RLIMIT_NPROC to ask for, granting it: unasked, Podman asks for 1048576, which not every host can give.

    It takes nothing away: processes are limited by the cgroup (`[container] pids`).
    """
    if not runs_on_podman(draft):
        return None
    found = draft.request.host.nproc_limit or _LEAST_PIDS
    draft.grant(
        f"ulimit:nproc={found}",
        "as many as this host has: Podman sets one whatever is asked; the pids limit counts",
        "engine",
    )
    return found


def cgroup_namespace(draft: Draft) -> Literal["private", "host"]:
    """Return the cgroup namespace: through its Docker socket Podman makes none on cgroup v1 (pkg/specgen, namespaces.go)."""
    engine = draft.request.engine
    if engine is None or not engine.podman or engine.cgroup_version != 1:
        return "private"
    draft.grant(
        "cgroupns:host",
        "Podman makes no cgroup namespace on cgroup v1: the names of this host's cgroups can be read inside",
        "engine",
    )
    return "host"
