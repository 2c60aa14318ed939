"""What is refused whatever the profile says, each with the reason and the narrower way."""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from rocmrun.core.host import EngineFacts, PathFacts
from rocmrun.core.host_paths import (
    KERNEL_TREES,
    SOCKETS,
    is_inside,
    is_raw_device,
    names_socket,
    touches,
)
from rocmrun.core.plan import Plan, PlannedDevice, PlannedMount
from rocmrun.errors import PlanRefused

# Never with root: each of them is the host (docs/grants.md names the escapes).
HOST_CAPABILITIES = frozenset({"SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "BPF"})

_USER_RUNTIME = re.compile(r"(/var)?/run/user(/\d+)?")


def check_policy(plan: Plan, engine: EngineFacts | None, paths: Mapping[str, PathFacts]) -> None:
    """Refuse what no plan may hold.

    Raises:
        PlanRefused: with every reason at once.
    """
    refusals = [
        *_mount_refusals(plan.mounts, engine, paths),
        *_device_refusals(plan.devices),
        *_capability_refusals(plan),
    ]
    if refusals:
        msg = f"profile {plan.profile} asks for what rocmrun never grants"
        raise PlanRefused(msg, details=tuple(refusals))


def _mount_refusals(
    mounts: Iterable[PlannedMount], engine: EngineFacts | None, paths: Mapping[str, PathFacts]
) -> list[str]:
    refusals = []
    for mount in mounts:
        if mount.kind != "bind":
            continue
        facts = paths.get(mount.source)
        # A symlink is another name for the same thing: both names are judged.
        names = {mount.source, (facts.real_path if facts else None) or mount.source}
        why = next(
            (reason for name in sorted(names) if (reason := _why_not(name, mount, engine))), None
        )
        if why:
            refusals.append(
                f"mount {mount.source} → {mount.target}: {why}; mount only the directory that the job reads"
            )
    return refusals


def _why_not(source: str, mount: PlannedMount, engine: EngineFacts | None) -> str | None:
    path = PurePosixPath(source)
    if path == PurePosixPath("/"):
        return "is the whole host"
    if path == PurePosixPath("/etc") or (not mount.read_only and is_inside(source, "/etc")):
        return "is the host's configuration"
    for top in KERNEL_TREES:
        if is_inside(source, top):
            return f"is inside {top}; device nodes go under [[devices]], one by one"
    return _why_not_engine(source, engine)


def _why_not_engine(source: str, engine: EngineFacts | None) -> str | None:
    for socket in (*SOCKETS, *_own_socket(engine)):
        if touches(source, socket):
            return f"reaches {socket}, which is root on this host"
    if names_socket(source):
        return "is an engine's socket, which is root on this host"
    if _USER_RUNTIME.fullmatch(source):
        return "holds the sockets of a user's own engine and session"
    root = engine.root_directory if engine else None
    if root and touches(source, root):
        return f"reaches the engine's own files ({root})"
    return None


def _own_socket(engine: EngineFacts | None) -> tuple[str, ...]:
    address = engine.address if engine else ""
    return (address.removeprefix("unix://"),) if address.startswith("unix:///") else ()


def _device_refusals(devices: Iterable[PlannedDevice]) -> list[str]:
    refusals = []
    for device in devices:
        if is_raw_device(device.path):
            refusals.append(
                f"device {device.path}: is raw memory or a disk of the host; ROCm needs neither"
            )
        elif "*" in device.path or device.path.rstrip("/") in {"/dev", "/dev/dri"}:
            refusals.append(f"device {device.path}: is a whole directory; name the nodes")
    return refusals


def _capability_refusals(plan: Plan) -> list[str]:
    if plan.uid != 0:
        return []
    return [
        f"capability {name} together with root: is the host; run as a non-root user, where the same grant only unlocks system calls"
        for name in sorted(set(plan.cap_add) & HOST_CAPABILITIES)
    ]
