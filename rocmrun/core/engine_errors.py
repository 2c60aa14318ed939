"""What an engine's error text means. Texts were read off Docker Engine 20.10 to 28, Podman 4.3 and 5."""

import re

from rocmrun.core.registry_errors import classify
from rocmrun.core.text import printable
from rocmrun.errors import (
    CommandNotExecutable,
    CommandNotFound,
    DevicesMissing,
    EngineFailed,
    HostNotReady,
    ImageGone,
    MountSourceInvalid,
    OutOfDisk,
    PlatformMismatch,
    PortTaken,
    RocmrunError,
    UsageError,
)

# (text to find, error class, hint); the first match wins.
_CONTAINER_ERRORS: tuple[tuple[str, type[RocmrunError], str | None], ...] = (
    (r"port is already allocated|address already in use", PortTaken,
     "stop what listens there (ss -ltnp), or publish another port"),
    (r"bind source path does not exist|invalid mount config.*source path", MountSourceInvalid, None),
    (r"not a directory.*(mount|directory onto a file)|mount.*not a directory", MountSourceInvalid,
     "a file can only be mounted over a file, a directory over a directory"),
    (r"error gathering device information|no such (file or directory|device).*/dev/|/dev/.*no such (file|device)",
     DevicesMissing, "rocmrun host"),
    (r"exec: .*docker-init.*no such file", MountSourceInvalid,
     "a mount hides the directory where the engine puts its init program: mount below another path"),
    (r"container-init binary not found", HostNotReady,
     "install the init program that Podman puts into every container that asks for one: the package catatonit"),
    (r"executable file not found|no such file or directory.*\bexec\b|\bexec(:| failed| [\"/]).*no such file", CommandNotFound, None),
    (r"exec.*permission denied", CommandNotExecutable, None),
    (r"no space left on device", OutOfDisk, "free some space (docker system df shows what takes it)"),
    (r"error setting rlimit|setrlimit|rlimits?\b.*not permitted", HostNotReady,
     "the engine itself has a lower limit: ask for less, or raise the engine's (systemctl edit docker, or podman)"),
    (r"name .* is already in use", UsageError, "choose another --name, or remove that container"),
    (r"invalid container name", UsageError, None),
    (r"no such image", ImageGone, "launch again: the image is fetched anew"),
    (r"does not match the (detected host|specified) platform", PlatformMismatch, None),
    (r"error setting cgroup config|invalid CPU|Requested CPUs are not available|Requested memory nodes",
     HostNotReady, None),
)  # fmt: skip


def container_error(what: str, status: int | None, text: str) -> RocmrunError:
    """Return the error that an engine's refusal to create or start a container means."""
    clean = printable(" ".join(text.split()), limit=600)
    message = f"cannot {what}: {clean}"
    for pattern, error, hint in _CONTAINER_ERRORS:
        if re.search(pattern, text, re.IGNORECASE | re.DOTALL):
            return error(message, hint=hint)
    return EngineFailed(f"{message} (status {status})" if status else message)


def pull_error(name: str, text: str, *, status: int | None = None) -> RocmrunError:
    """Return the error that a failed pull or resolution of *name* means."""
    if "no space left on device" in text:
        return OutOfDisk(
            f"the engine's disk is full: pulling {name} stopped",
            hint="free some space (docker system df shows what takes it), then run the same command again",
        )
    if "Cannot overwrite digest" in text:
        return PlatformMismatch(
            f"another platform of {name} is already loaded, and this engine keeps one per digest",
            hint=f"remove it first: docker image rm {name}",
        )
    return classify(status, text, name)
