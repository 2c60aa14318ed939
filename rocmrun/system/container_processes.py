"""Processes of a container as /proc of this machine shows them: processor time, open GPU nodes, shared memory."""

import contextlib
import os
from pathlib import Path

from rocmrun.core.running.process import DrmClient, Process, is_gpu_node, parse_fdinfo, parse_stat
from rocmrun.core.text import one_line

_NAME_LENGTH = 32


def read_process(pid: int, root: Path = Path("/")) -> Process | None:
    """Return a process as it is now; None for one that has ended.

    Whose descriptors it may not see, this user's reading leaves out: only root and the process's own
    user may look at them.
    """
    place = root / f"proc/{pid}"
    try:
        stat = (place / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = parse_stat(stat, os.sysconf("SC_CLK_TCK"))
    if found is None:
        return None
    name, seconds, runnable = found
    nodes, clients = _open_nodes(place)
    return Process(
        pid=pid,
        name=one_line(name, _NAME_LENGTH),
        cpu_seconds=seconds,
        runnable=runnable,
        nodes=nodes,
        clients=clients,
    )


def _open_nodes(place: Path) -> tuple[frozenset[str] | None, tuple[DrmClient, ...]]:
    try:
        descriptors = os.listdir(place / "fd")  # noqa: PTH208  # a server has thousands of them
    except OSError:
        return None, ()
    nodes, clients = set(), []
    for descriptor in descriptors:
        # It may be closed by now.
        with contextlib.suppress(OSError):
            path = os.readlink(place / "fd" / descriptor)  # noqa: PTH115  # as the kernel prints it
            if is_gpu_node(path):
                nodes.add(path)
                text = (place / "fdinfo" / descriptor).read_text(encoding="utf-8", errors="replace")
                clients += [client] if (client := parse_fdinfo(text)) else []
    return frozenset(nodes), tuple(clients)


def shm_use(pid: int, root: Path = Path("/")) -> tuple[int, int] | None:
    """Return used bytes and size of the /dev/shm that process *pid* sees; None where this user may not look."""
    try:
        facts = os.statvfs(root / f"proc/{pid}/root/dev/shm")
    except OSError:
        return None
    size = facts.f_blocks * facts.f_frsize
    return size - facts.f_bfree * facts.f_frsize, size
