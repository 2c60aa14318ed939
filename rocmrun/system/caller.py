"""Who runs this process, and where its files belong: the only reader of that part of the environment."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from rocmrun.core.caller import Caller
from rocmrun.core.ids import is_id

SYSTEM_CACHE = "/var/cache/rocmrun"
SYSTEM_STATE = "/var/lib/rocmrun"
PROC = Path("/proc")
# No kernel has more (PID_MAX_LIMIT is 2^22); a label is whatever somebody wrote.
_PID_DIGITS = 10


def read_caller(environment: Mapping[str, str] = os.environ) -> Caller:
    """Return the user on whose behalf we run: under sudo the one who typed it."""
    uid, gid = os.getuid(), os.getgid()
    typed_uid = _id(environment, "SUDO_UID")
    if uid == 0 and typed_uid is not None:
        typed_gid = _id(environment, "SUDO_GID")
        uid, gid = typed_uid, typed_uid if typed_gid is None else typed_gid
    return Caller(
        uid=uid,
        gid=gid,
        cache_root=str(_directory(environment, "XDG_CACHE_HOME", ".cache", SYSTEM_CACHE)),
        in_ci=environment.get("CI", "").lower() not in {"", "0", "false"},
    )


def _id(environment: Mapping[str, str], variable: str) -> int | None:
    text = environment.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() and is_id(text) else None


def state_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where records of earlier runs are kept."""
    return _directory(environment, "XDG_STATE_HOME", ".local/state", SYSTEM_STATE)


def _directory(environment: Mapping[str, str], variable: str, below_home: str, system: str) -> Path:
    if environment.get(variable, "").startswith("/"):  # a relative one counts as unset (XDG)
        return Path(environment[variable]) / "rocmrun"
    if os.getuid() == 0:
        return Path(system)
    home = environment.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  # Path.home() raises without one
    return Path(home) / below_home / "rocmrun"


def values_of(names: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the caller's values for *names*; names that are not set are absent."""
    return {name: environment[name] for name in names if name in environment}


def boot_id() -> str:
    """Return the kernel's id of this boot; "" where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_label() -> str:
    """Return "PID:START:NAMESPACE" of this process: enough to tell later whether it still runs.

    The namespace has the machine in it where that has an id: the first one has the same number everywhere.
    """
    return f"{os.getpid()}:{_start_time(os.getpid())}:{_pid_namespace()}"


def process_runs(label: str, proc: Path = PROC) -> bool:
    """Return whether the process that `process_label` named still runs; *proc* is where processes are shown."""
    pid, _, rest = label.partition(":")
    start, _, namespace = rest.partition(":")
    if namespace and namespace != _pid_namespace():
        # Its number means nothing here: it may run, so that it counts as running.
        return True
    if not (pid.isascii() and pid.isdigit() and len(pid) <= _PID_DIGITS and start):
        return False
    found = _start_time(int(pid), proc)
    return found == start if found else _is_hidden(int(pid))


def _is_hidden(pid: int) -> bool:
    """Whether a process is there that /proc does not show: mounted with hidepid it has the caller's own alone."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _pid_namespace() -> str:
    try:
        number = str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:
        return ""
    return "-".join(filter(None, (number, _machine())))


def _machine() -> str:
    """Return what tells this machine from others, and not its id itself, which machine-id(5) wants kept from others."""
    try:
        text = Path("/etc/machine-id").read_text().strip()
    except (OSError, ValueError):
        return ""
    return hashlib.sha256(f"rocmrun {text}".encode()).hexdigest()[:12] if text else ""


def _start_time(pid: int, proc: Path = PROC) -> str:
    try:
        # Its name is whatever the process chose, and need be no text.
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # Field 22; the name in field 2 may hold blanks and parentheses.
    return text.rpartition(")")[2].split()[19]
