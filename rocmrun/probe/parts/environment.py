"""What this process may do here, compared with what was planned."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import platform
import pwd
import sys
import tempfile
from pathlib import Path
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.limits import check_limits
from rocmrun.probe.parts.machine import (
    errno_name,
    first_line,
    is_visibility,
    open_error,
    process_status,
    try_to_create,
)
from rocmrun.probe.parts.mounts import check_mounts
from rocmrun.probe.parts.topology import check_kfd_topology

ERRNO_MEANINGS = {
    errno.EACCES: "permission denied: the node's group is not among this process's groups",
    errno.EPERM: "not permitted: the device cgroup does not allow this node",
    errno.ENOENT: "no such node: it was not passed in",
    errno.ENXIO: "no driver stands behind the node",
    errno.ENODEV: "no driver stands behind the node",
    errno.EINVAL: "the kernel refuses a compute process: a stuck GPU or a driver conflict",
    errno.ENOMEM: "the driver has no GPU that it can use for compute",
}

# AppArmor's word, and the SELinux types of containers that are left alone.
UNCONFINED = ("unconfined", "unconfined_t", "spc_t")

CACHE_VARIABLES = (
    "HOME",
    "XDG_CACHE_HOME",
    "MIOPEN_USER_DB_PATH",
    "MIOPEN_CUSTOM_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "NUMBA_CACHE_DIR",
    "MPLCONFIGDIR",
    "HF_HOME",
    "VLLM_CACHE_ROOT",
)


def stage_environment(job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]) -> None:
    """Record what this process may do here, and compare it with what was planned."""
    expect = job["expect"]
    for name, examine in (
        ("kernel", check_kernel),
        ("user", check_user),
        ("groups", check_groups),
        ("capabilities", check_capabilities),
        ("no_new_privileges", check_no_new_privileges),
        ("seccomp", check_seccomp),
        ("security_module", check_security_module),
        ("root_filesystem", check_root_filesystem),
        ("shared_memory", check_shared_memory),
        ("temporary_directory", check_temporary_directory),
        ("home", check_home),
        ("visibility", check_visibility),
        ("limits", check_limits),
        ("mounts", check_mounts),
        ("device_nodes", check_device_nodes),
    ):
        with reporter.check("environment", name) as check:
            examine(check, expect)
    paths = list(expect.get("devices") or [])
    if job["accelerator"] == "rocm" and "/dev/kfd" not in paths:
        paths.insert(0, "/dev/kfd")
    for path in paths:
        with reporter.check("environment", f"open:{path}") as check:
            check_open(check, path)
    if job["accelerator"] == "rocm":
        with reporter.check("environment", "kfd_topology") as check:
            check_kfd_topology(check, list(expect.get("gpus") or []))


def check_kernel(check: Check, _expect: dict[str, Any]) -> None:
    """Record kernel and interpreter."""
    check.evidence.update(
        release=platform.release(),
        machine=platform.machine(),
        python=platform.python_version(),
        executable=sys.executable,
    )


def check_user(check: Check, expect: dict[str, Any]) -> None:
    """Compare the user with the planned one."""
    try:
        entry: str | None = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        entry = None
    check.evidence.update(uid=os.getuid(), gid=os.getgid(), passwd_entry=entry)
    check.evidence.update({name: os.environ.get(name) for name in ("USER", "LOGNAME")})
    check.require("the user id", os.getuid(), expect.get("uid"))
    check.require("the group id", os.getgid(), expect.get("gid"))
    for name in ("USER", "LOGNAME"):
        check.require(name, os.environ.get(name), expect.get("user_name"))


def check_groups(check: Check, expect: dict[str, Any]) -> None:
    """Compare the supplementary groups: one too few closes a node, one too many is an ungranted right."""
    groups = sorted(set(os.getgroups()) - {os.getgid()})
    check.evidence["groups"] = groups
    if expect.get("groups") is not None:
        planned = sorted({int(group) for group in expect["groups"]} - {os.getgid()})
        check.require("the list of supplementary groups", groups, planned)


def check_capabilities(check: Check, expect: dict[str, Any]) -> None:
    """Compare the capability sets, as hexadecimal masks."""
    status = process_status()
    for name in ("CapEff", "CapBnd", "CapPrm", "CapInh", "CapAmb"):
        check.evidence[name] = status.get(name)
    for name, key in (("CapEff", "cap_eff"), ("CapBnd", "cap_bnd")):
        planned = expect.get(key)
        if planned is not None:
            mask = planned if isinstance(planned, int) else int(planned, 16)
            check.require(name, status.get(name), f"{mask:016x}")


def check_no_new_privileges(check: Check, expect: dict[str, Any]) -> None:
    """Compare the flag that keeps set-user-id files from raising anybody."""
    value = process_status().get("NoNewPrivs")
    seen = None if value is None else value == "1"
    check.evidence["no_new_privileges"] = seen
    check.require("no_new_privileges", seen, expect.get("no_new_privileges"))


def check_seccomp(check: Check, expect: dict[str, Any]) -> None:
    """Compare the seccomp mode: 0 is none, 2 is a filter."""
    status = process_status()
    seen = int(status["Seccomp"]) if "Seccomp" in status else None
    check.evidence.update(mode=seen, filters=status.get("Seccomp_filters"))
    check.require("the seccomp mode", seen, expect.get("seccomp_mode"))


def check_security_module(check: Check, expect: dict[str, Any]) -> None:
    """Record the AppArmor profile or SELinux label; one that confines nothing is no grant of the plan."""
    label = first_line("/proc/self/attr/apparmor/current", "/proc/self/attr/current")
    label = None if label is None else label.rstrip("\0")
    enabled = first_line("/sys/module/apparmor/parameters/enabled") == "Y"
    check.evidence.update(label=label, apparmor_enabled=enabled)
    judge_label(check, label, (expect.get("granted") or {}).get("security_label"))


def judge_label(check: Check, label: str | None, granted: bool | None) -> None:  # noqa: FBT001
    """Degrade where the kernel has a security module and the engine did not confine this process."""
    kind = (label or "").split(":")[2] if (label or "").count(":") > 1 else label or ""
    check.evidence["confined"] = None if label is None else kind not in UNCONFINED
    if granted is False and kind in UNCONFINED:
        check.degrade(
            f"the security module confines nothing here ({label}), the plan did not ask for that"
        )


def check_root_filesystem(check: Check, expect: dict[str, Any]) -> None:
    """Try to create a file where nothing should be created, and read the mount's own flag."""
    read_only = bool(os.statvfs("/").f_flag & os.ST_RDONLY)
    created = {folder: try_to_create(folder) for folder in ("/", "/usr")}
    check.evidence.update(read_only=read_only, create=created)
    if expect.get("read_only_root"):
        written = [folder for folder, result in created.items() if result == "created"]
        if written:
            msg = f"files can be created in {', '.join(written)}, the plan has a read-only root"
            raise CheckFailed(msg)
        check.require("the read-only flag of /", read_only, True)  # noqa: FBT003


def check_shared_memory(check: Check, expect: dict[str, Any]) -> None:
    """Record the size of /dev/shm, which collectives need."""
    stat = os.statvfs("/dev/shm")
    total = stat.f_blocks * stat.f_frsize
    check.evidence.update(
        total_bytes=total,
        free_bytes=stat.f_bavail * stat.f_frsize,
        create=try_to_create("/dev/shm"),
    )
    planned = expect.get("shm_size_bytes")
    if planned is not None and total < planned - mmap.PAGESIZE:
        msg = f"/dev/shm has {total} bytes, not {planned} as planned"
        raise CheckFailed(msg)


def check_temporary_directory(check: Check, _expect: dict[str, Any]) -> None:
    """Write a file and map it executable, as the loader does with a library that was just compiled."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    stat = os.statvfs(folder)
    check.evidence.update(path=folder, free_bytes=stat.f_bavail * stat.f_frsize)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"\0" * mmap.PAGESIZE)
        file.flush()
        try:
            flags = {"flags": mmap.MAP_PRIVATE, "prot": mmap.PROT_READ | mmap.PROT_EXEC}
            mmap.mmap(file.fileno(), mmap.PAGESIZE, **flags).close()
            check.evidence["executable"] = True
        except OSError as error:
            check.evidence["executable"] = False
            check.degrade(
                f"{folder} is mounted noexec ({errno_name(error)}): kernels compiled there cannot be loaded"
            )


def check_home(check: Check, expect: dict[str, Any]) -> None:
    """Record where caches go and whether files can be created there."""
    for name in CACHE_VARIABLES:
        folder = os.environ.get(name)
        if folder:
            check.evidence[name] = {"path": folder, "create": try_to_create(folder)}
    check.require("HOME", os.environ.get("HOME"), expect.get("home"))
    if expect.get("home_writable"):
        home = check.evidence.get("HOME", {"path": "unset", "create": "unset"})
        check.require(f"creating a file in HOME ({home['path']})", home["create"], "created")


def check_visibility(check: Check, expect: dict[str, Any]) -> None:
    """Compare the variables that hide devices; what they leave is judged by the device count."""
    seen = {key: value for key, value in os.environ.items() if is_visibility(key)}
    check.evidence.update(seen)
    for key, value in (expect.get("visibility") or {}).items():
        check.require(key, seen.get(key), value)


def check_device_nodes(check: Check, _expect: dict[str, Any]) -> None:
    """Record which GPU nodes exist here and whether each opens read-write."""
    nodes = [
        Path("/dev/kfd"),
        *sorted(Path("/dev/dri").glob("*")),
        *sorted(Path("/dev").glob("nvidia*")),
    ]
    for node in nodes:
        if node.is_char_device():
            error = open_error(str(node))
            check.evidence[str(node)] = "opened" if error is None else errno_name(error)


def check_open(check: Check, path: str) -> None:
    """Open a node that the job needs, read-write: reading one tells nothing about a GPU."""
    with contextlib.suppress(OSError):
        stat = Path(path).stat()
        check.evidence.update(mode=f"{stat.st_mode & 0o7777:04o}", uid=stat.st_uid, gid=stat.st_gid)
        check.evidence["device"] = f"{os.major(stat.st_rdev)}:{os.minor(stat.st_rdev)}"
    error = open_error(path)
    check.evidence["errno"] = None if error is None else errno_name(error)
    if error is not None:
        meaning = ERRNO_MEANINGS.get(error.errno or 0, os.strerror(error.errno or 0))
        owner = ""
        if error.errno == errno.EACCES and "gid" in check.evidence:
            groups = sorted({os.getgid(), *os.getgroups()})
            owner = (
                f" (mode {check.evidence['mode']}, group {check.evidence['gid']}; groups {groups})"
            )
        msg = f"cannot open {path}: {errno_name(error)}, {meaning}{owner}"
        raise CheckFailed(msg)
