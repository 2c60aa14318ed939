"""Processes, network and names: whether this container has its own."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.grants import Grants
from rocmrun.probe.parts.isolation_kernel import process_of
from rocmrun.probe.parts.machine import errno_name, first_line

# The inode numbers of the first namespaces, which the kernel fixes (include/linux/proc_ns.h).
FIRST_NAMESPACES = {
    "ipc": 0xEFFFFFFF,
    "uts": 0xEFFFFFFE,
    "user": 0xEFFFFFFD,
    "pid": 0xEFFFFFFC,
    "cgroup": 0xEFFFFFFB,
}
NOWHERE = ("192.0.2.1", 9)  # TEST-NET-1 of RFC 5737: nobody has it, a route to it leads outside
INTERFACE_IS_UP = 0x1  # IFF_UP, in /sys/class/net/NAME/flags


def namespace(kind: str) -> int | None:
    """Return a namespace's number; None where the kernel has no such kind."""
    try:
        return os.stat(f"/proc/self/ns/{kind}").st_ino  # noqa: PTH116
    except OSError:
        return None


def check_processes(check: Check, grants: Grants) -> None:
    """Look for processes that are not this container's: the host's, or another container's."""
    own = namespace("pid")
    oldest = oldest_ancestor()
    threads = (first_line("/proc/2/comm") or "") == "kthreadd"
    check.evidence.update(
        namespace=own,
        pid_1=first_line("/proc/1/comm"),
        oldest_ancestor=oldest,
        visible=sum(name.isdigit() for name in os.listdir("/proc")),  # noqa: PTH208
    )
    reached = []
    if own == FIRST_NAMESPACES["pid"] or threads:
        reached.append("the host's processes are visible")
    elif oldest != 1:
        reached.append("processes of another container are visible: PID 1 did not start this one")
    grants.judge(check, reached, granted=grants.word("pid") == "host")


def oldest_ancestor() -> int:
    """Return the process at the top of this one's line of parents, 1 in a container of its own."""
    pid = os.getpid()
    while pid > 1:
        parent = int(process_of(str(pid)).get("PPid") or "0")
        if parent == 0:  # its parent is outside
            break
        pid = parent
    return pid


def check_network(check: Check, grants: Grants) -> None:
    """Compare interfaces and routes with the plan's network."""
    up = [name for _, name in socket.if_nameindex() if name != "lo" and is_up(name)]
    hosts = [name for name in up if is_hosts(name)]
    check.evidence.update(
        namespace=namespace("net"), interfaces=up, of_the_host=hosts, route=route_outside()
    )
    planned = grants.word("network")
    reached = [f"the host's interface {name} is here" for name in hosts]
    if planned in (None, "none"):
        reached += [f"the interface {name} is up" for name in up if name not in hosts]
        if check.evidence["route"] == "found":
            reached.append("there is a route to other machines")
    grants.judge(check, reached, granted=planned == "host")


def is_up(name: str) -> bool:
    """Whether an interface is up; one that cannot be asked counts as up."""
    flags = first_line(f"/sys/class/net/{name}/flags")
    return flags is None or bool(int(flags, 16) & INTERFACE_IS_UP)


def is_hosts(name: str) -> bool:
    """Whether an interface is a machine's: hardware, or a bridge that containers hang on."""
    folder = Path("/sys/class/net") / name
    return (folder / "device").exists() or (folder / "bridge").exists()


def route_outside() -> str:
    """Return "found" when the kernel has a way to other machines; no packet is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(NOWHERE)
    except OSError as error:  # also of a kernel or a filter that has no such sockets
        return errno_name(error)
    return "found"


def check_namespaces(check: Check, grants: Grants) -> None:
    """Compare ipc, uts and cgroup with the host's own, and record the user namespace."""
    reached = []
    for kind in ("ipc", "uts", "cgroup", "user"):
        number = namespace(kind)
        shared = number == FIRST_NAMESPACES[kind]
        check.evidence[kind] = {"number": number, "is_the_hosts": shared}
        allowed = kind == "user" or grants.word(kind) == "host"
        if shared and not allowed:
            reached.append(f"the {kind} namespace is the host's")
    grants.judge(check, reached)
