"""Raw sockets, new user namespaces and tracing: what capabilities and the seccomp filter keep shut."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import warnings
from pathlib import Path
from typing import Callable

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.grants import CAP_NET_RAW, CAP_SYS_ADMIN, CAP_SYS_PTRACE, Grants
from rocmrun.probe.parts.machine import errno_name, process_status

CLONE_NEWUSER = 0x10000000
PTRACE_SEIZE = 0x4206
RAW_SOCKETS = (
    ("ip", socket.AF_INET, socket.IPPROTO_ICMP),
    ("ip6", socket.AF_INET6, 58),
    ("packet", getattr(socket, "AF_PACKET", 17), 0),
)


def check_raw_sockets(check: Check, grants: Grants) -> None:
    """Open raw sockets, which can forge packets and listen to others'."""
    for name, family, protocol in RAW_SOCKETS:
        check.evidence[name] = open_raw_socket(family, protocol)
    reached = [
        f"a raw {name} socket can be opened"
        for name, _, _ in RAW_SOCKETS
        if check.evidence[name] == "opened"
    ]
    grants.judge(check, reached, granted=grants.capability(CAP_NET_RAW))


def open_raw_socket(family: int, protocol: int) -> str:
    """Return "opened", or the error's name."""
    try:
        socket.socket(family, socket.SOCK_RAW, protocol).close()
    except OSError as error:
        return errno_name(error)
    return "opened"


def check_user_namespaces(check: Check, grants: Grants) -> None:
    """Make a user namespace, in which every capability opens more of the kernel to be attacked.

    Docker's default filter refuses it, Podman's does not, and some kernels refuse it themselves.
    Under a filter it is a smaller kernel surface lost and nothing of the host reached: degraded.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    result = in_child(lambda: libc.unshare(CLONE_NEWUSER))
    filtered = process_status().get("Seccomp") != "0"
    check.evidence.update(unshare=result, seccomp_filter=filtered)
    granted = grants.word("seccomp") == "unconfined" or grants.capability(CAP_SYS_ADMIN)
    if result == "done" and filtered and grants.known and not granted:
        check.evidence.update(reached=["a user namespace can be made"], granted=False)
        own = grants.word("seccomp") == "own"
        whose = "the profile's own seccomp filter" if own else "this engine's seccomp filter"
        check.degrade(
            f"a user namespace can be made: {whose} allows it; nothing outside is reached, "
            "and more of the kernel can be"
        )
        return
    without = "" if filtered else ", with no seccomp filter"
    reached = [f"a user namespace can be made{without}"] if result == "done" else []
    grants.judge(check, reached, granted=granted)


def check_ptrace(check: Check, grants: Grants) -> None:
    """Attach to PID 1. A container's own init has this process's user and rights: nothing is gained."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    # Seizing stops nobody, and the tracer's end lets go again.
    result = in_child(lambda: int(libc.ptrace(PTRACE_SEIZE, 1, None, None)))
    more = "" if os.getpid() == 1 else more_rights(process_of("1"), process_status())
    check.evidence.update(attach=result, pid_1_beyond_us=more)
    reached = [f"PID 1 can be traced, and it has {more}"] if result == "done" and more else []
    grants.judge(check, reached, granted=grants.capability(CAP_SYS_PTRACE))


def process_of(pid: str) -> dict[str, str]:
    """Return a process's /proc/PID/status as a mapping; empty where it cannot be read."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return {}


def more_rights(other: dict[str, str], own: dict[str, str]) -> str:
    """Return what another process may do that this one may not, in words; "" is nothing."""
    found = []
    if other.get("Uid") != own.get("Uid"):
        found.append(f"another user ({(other.get('Uid') or 'unknown').split()[0]})")
    beyond = int(other.get("CapPrm") or "0", 16) & ~int(own.get("CapPrm") or "0", 16)
    if beyond:
        found.append(f"capabilities that are not ours ({beyond:016x})")
    return " and ".join(found)


def in_child(action: Callable[[], int]) -> str:
    """Run a call of the C library in a forked process, so that what it changes ends with it.

    Returns:
        "done", or the name of the error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of threads: this process's only other one never runs Python
        child = os.fork()
    if child == 0:
        code = 255
        with contextlib.suppress(BaseException):
            code = 0 if action() == 0 else min(ctypes.get_errno(), 254)
        os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    return "done" if code == 0 else errno.errorcode.get(code, str(code))
