"""What the kernel tells of this process and its container."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import signal
from pathlib import Path


def signal_name(number: int) -> str:
    """Return "SIGSEGV" for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def is_visibility(name: str) -> bool:
    """Whether an environment variable hides devices."""
    return name.endswith("_VISIBLE_DEVICES") or name == "GPU_DEVICE_ORDINAL"


def process_status() -> dict[str, str]:
    """Return /proc/self/status as a mapping."""
    lines = Path("/proc/self/status").read_text(errors="replace").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def open_error(path: str) -> OSError | None:
    """Return why *path* cannot be opened read-write, None when it can."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return error
    return None


def errno_name(error: OSError) -> str:
    """Return "EACCES" for 13."""
    return errno.errorcode.get(error.errno or 0, str(error.errno))


def try_to_create(folder: str) -> str:
    """Return "created" when a file can be created in *folder*, else the errno's name."""
    path = f"{folder.rstrip('/')}/.probe-{os.getpid()}"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.unlink(path)  # noqa: PTH108 - os.open above made it
    except OSError as error:
        return errno_name(error)
    return "created"


def first_line(*paths: str) -> str | None:
    """Return the first line of the first file that can be read."""
    for path in paths:
        with contextlib.suppress(OSError):
            lines = Path(path).read_text(errors="replace").splitlines()
            if lines:
                return lines[0].strip()
    return None


def number(text: str | None) -> int | None:
    """Return a limit as a number; "max", absent and unreadable are no limit."""
    return int(text) if text is not None and text.isdigit() else None


def cgroup_value(controller: str, name_v2: str, name_v1: str) -> str | None:
    """Return a cgroup file's first line, from this process's own cgroup or the namespace's root."""
    own: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), path))
    v1 = f"/sys/fs/cgroup/{controller}"
    return first_line(
        f"/sys/fs/cgroup{own.get('', '/')}/{name_v2}",
        f"/sys/fs/cgroup/{name_v2}",
        f"{v1}{own.get(controller, '/')}/{name_v1}",
        f"{v1}/{name_v1}",
    )


def memory_limit() -> int | None:
    """Return the cgroup's memory limit in bytes; None is none."""
    limit = number(cgroup_value("memory", "memory.max", "memory.limit_in_bytes"))
    return None if limit is None or limit >= 1 << 62 else limit  # v1 writes "none" as a huge number


def oom_kills() -> int:
    """Return how often the cgroup's memory limit has killed a process."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        with contextlib.suppress(OSError):
            for line in Path(path).read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return number(value) or 0
    return 0


def processor_name() -> str:
    """Return the processor's model, or the architecture where the kernel names no model."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.machine()
