"""Writing the image, the kernel's settings, and reading what engines mask."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.grants import Grants
from rocmrun.probe.parts.machine import errno_name, try_to_create
from rocmrun.probe.parts.mounts import mount_points

ROOT_FOLDERS = (
    "/",
    "/etc",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/opt",
    "/srv",
    "/var",
    "/var/tmp",
    "/run",
)
SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/power/state",
)
# Where a mount that can be written would be the kernel's or other containers' to lose.
SETTING_MOUNTS = ("/proc/sys", "/sys")
MOST_HIERARCHIES = 4  # of control groups: cgroup v1 has a dozen, mounted alike
# Kernel memory, keys of other containers, firmware tables: engines put /dev/null or an empty,
# read-only tmpfs over them.
MASKED_FILES = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug")
MASKED_FOLDERS = ("/sys/firmware", "/proc/acpi", "/proc/scsi")


def check_root_writes(check: Check, grants: Grants) -> None:
    """Create a file in every usual folder of the image that no other mount covers."""
    root = os.stat("/").st_dev  # noqa: PTH116
    reached = []
    for folder in ROOT_FOLDERS:
        with contextlib.suppress(OSError):  # a folder above it may be closed to this user
            if os.path.isdir(folder) and os.stat(folder).st_dev == root:  # noqa: PTH112, PTH116
                check.evidence[folder] = try_to_create(folder)
                if check.evidence[folder] == "created":
                    reached.append(f"a file can be created in {folder}")
    if not os.statvfs("/").f_flag & os.ST_RDONLY:
        reached.append("/ is mounted writable")
    grants.judge(check, reached, granted=grants.known and not grants.read_only_root)


def check_kernel_settings(check: Check, grants: Grants) -> None:
    """Open the kernel's settings for writing, and write nothing; make a control group, and remove it."""
    system: list[str] = []
    process: list[str] = []
    for path in SETTINGS:
        if Path(path).exists():
            check.evidence[path] = open_for_writing(path)
            if check.evidence[path] == "opened":
                (process if path.startswith("/proc/") else system).append(f"{path} can be written")
    for folder in SETTING_MOUNTS:
        read_only = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
        check.evidence[folder] = "read-only" if read_only else "writable"
        if not read_only:
            (process if folder == "/proc/sys" else system).append(f"{folder} is mounted writable")
    groups = [mount.target for mount in mount_points() if mount.kind in ("cgroup", "cgroup2")]
    for folder in groups[:MOST_HIERARCHIES]:
        if (made := try_to_make_folder(folder)) == "made":
            system.append(f"a control group can be made in {folder}")
        check.evidence[f"{folder} (mkdir)"] = made
    # Unmasked means that /proc/sys is as the kernel has it; nothing ever opens /sys.
    unmasked = grants.word("masks") is False
    check.evidence["unmasked_as_planned"] = bool(unmasked and process)
    grants.judge(check, system if unmasked else system + process)


def open_for_writing(path: str) -> str:
    """Return "opened", or the error's name."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return errno_name(error)
    return "opened"


def try_to_make_folder(folder: str) -> str:
    """Return "made" when a folder can be made in *folder*, else the error's name."""
    path = Path(folder) / f"probe-{os.getpid()}"
    try:
        path.mkdir()
        path.rmdir()
    except OSError as error:
        return errno_name(error)
    return "made"


def check_masked_paths(check: Check, grants: Grants) -> None:
    """Read what the engine should have covered."""
    reached = []
    for path in MASKED_FILES:
        with contextlib.suppress(OSError):
            if stat.S_ISCHR(os.stat(path).st_mode):  # noqa: PTH116
                check.evidence[path] = "covered"
                continue
            with Path(path).open("rb") as file:
                check.evidence[path] = "readable" if file.read(1) else "empty"
            if check.evidence[path] == "readable":
                reached.append(f"{path} can be read")
    for path in MASKED_FOLDERS:
        with contextlib.suppress(OSError):
            names = os.listdir(path)  # noqa: PTH208
            check.evidence[path] = f"{len(names)} entries"
            if names:
                reached.append(f"{path} can be read")
    grants.judge(check, reached, granted=grants.word("masks") is False)
