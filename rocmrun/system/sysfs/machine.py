"""The machine around the GPUs: kernel, memory, driver, limits and security modules."""

import os
import re
import resource
from pathlib import Path
from typing import Any, Literal

from rocmrun.core.host import NumaNode
from rocmrun.core.os_text import count_cpus, parse_mem_total, parse_os_release
from rocmrun.system.sysfs.tree import Tree

CAP_SYS_RESOURCE = 24
_NUMA = "/sys/devices/system/node"


def read_machine(tree: Tree) -> dict[str, Any]:
    """Return the fields of HostFacts that are no GPU and no node."""
    kernel = _read_kernel(tree)
    return {
        **kernel,
        **_read_os_release(tree),
        **_read_driver(tree, kernel["kernel"]),
        "cmdline": tree.line("/proc/cmdline"),
        "cpu_count": count_cpus(tree.line("/sys/devices/system/cpu/online"))
        or (os.cpu_count() if tree.live else None),
        "memory_bytes": parse_mem_total(tree.text("/proc/meminfo") or ""),
        "numa_balancing": _switch(tree.line("/proc/sys/kernel/numa_balancing")),
        "nvidia": _present(tree, "/proc", "/proc/driver/nvidia/version"),
        "cgroup_version": _cgroup_version(tree),
        "selinux": _selinux(tree),
        "apparmor": _apparmor(tree),
        "yama_ptrace_scope": tree.number("/proc/sys/kernel/yama/ptrace_scope"),
        "memlock_bytes": resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] if tree.live else None,
        "nofile_limit": _binding_limit(resource.RLIMIT_NOFILE),
        "nproc_limit": _nproc_limit(),
    }


def _binding_limit(kind: int) -> int | None:
    """Return the hard limit that binds even an engine: where nothing on the machine has CAP_SYS_RESOURCE.

    Always this machine's, also under another root: containers start here.
    """
    try:
        status = Path("/proc/1/status").read_text()
    except OSError:
        return None
    bounding = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    if bounding is None or int(bounding[1], 16) >> CAP_SYS_RESOURCE & 1:
        return None
    hard = resource.getrlimit(kind)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def _nproc_limit() -> int | None:
    """Return how many processes there can be: the engine's own limit is that too (containers/common, default.go)."""
    try:
        ids = int(Path("/proc/sys/kernel/pid_max").read_text())
    except (OSError, ValueError):
        return None
    bound = _binding_limit(resource.RLIMIT_NPROC)
    return ids if bound is None else min(ids, bound)


def read_numa_nodes(tree: Tree) -> tuple[NumaNode, ...]:
    """Return every NUMA node in numeric order, those without processors with an empty list."""
    return tuple(
        NumaNode(node=node, cpus=tree.line(f"{_NUMA}/node{node}/cpulist") or "")
        for node in tree.numbers(_NUMA, "node")
    )


def _read_kernel(tree: Tree) -> dict[str, Any]:
    kernel = os.uname().release if tree.live else tree.line("/proc/sys/kernel/osrelease")
    return {
        "hostname": os.uname().nodename if tree.live else tree.line("/proc/sys/kernel/hostname"),
        "kernel": kernel,
        "architecture": os.uname().machine if tree.live else tree.line("/proc/sys/kernel/arch"),
        "wsl": "microsoft" in kernel.lower() or tree.has("/dev/dxg") if kernel else None,
    }


def _read_os_release(tree: Tree) -> dict[str, Any]:
    text = tree.text("/etc/os-release") or tree.text("/usr/lib/os-release") or ""
    values = parse_os_release(text)
    return {
        "os_id": values.get("ID"),
        "os_version": values.get("VERSION_ID"),
        "os_name": values.get("PRETTY_NAME"),
    }


def _read_driver(tree: Tree, kernel: str | None) -> dict[str, Any]:
    """Only AMD's own packages give the module a version; the kernel's driver goes by the kernel release."""
    if not tree.has("/sys/module/amdgpu"):
        return {"driver_version": None, "driver_source": None}
    version = tree.line("/sys/module/amdgpu/version")
    if version:
        return {"driver_version": version, "driver_source": "dkms"}
    return {"driver_version": kernel, "driver_source": "in-tree"}


def _switch(line: str | None) -> bool | None:
    return line != "0" if line and line.isdigit() else None


def _present(tree: Tree, directory: str, path: str) -> bool | None:
    """Return whether *path* exists; None when the *directory* that would hold it was not copied."""
    return tree.has(path) if tree.has(directory) else None


def _cgroup_version(tree: Tree) -> int | None:
    if tree.has("/sys/fs/cgroup/cgroup.controllers"):
        return 2
    return 1 if tree.names("/sys/fs/cgroup") else None


def _selinux(tree: Tree) -> Literal["enforcing", "permissive", "disabled"] | None:
    enforce = tree.line("/sys/fs/selinux/enforce")
    if enforce is None:
        return "disabled" if _present(tree, "/sys/fs", "/sys/fs/selinux/enforce") is False else None
    return "permissive" if enforce == "0" else "enforcing"


def _apparmor(tree: Tree) -> bool | None:
    enabled = tree.line("/sys/module/apparmor/parameters/enabled")
    if enabled is None:
        return False if tree.has("/sys/module") and not tree.has("/sys/module/apparmor") else None
    return enabled == "Y"
