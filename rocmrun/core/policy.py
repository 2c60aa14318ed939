"""What is refused whatever the profile says, each with the reason and the narrower way."""

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import DeviceNode
from rocmrun.core.host_paths import (
    ENGINE_FILES,
    KERNEL_TREES,
    SOCKETS,
    is_inside,
    is_raw_device,
    names_socket,
    touches,
)
from rocmrun.core.path_facts import PathFacts, VolumeFacts
from rocmrun.core.plan import Plan, PlannedDevice, PlannedMount
from rocmrun.errors import PlanRefused

# Never with root: each of them is the host (docs/grants.md names the escapes).
HOST_CAPABILITIES = frozenset({"SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "BPF"})

_MEMORY = frozenset({(1, 1), (1, 2), (1, 4)})  # mem, kmem, port
_SCSI_GENERIC = 21
# What a local volume may be mounted from besides a directory: it brings nothing of this host along.
_HARMLESS_TYPES = frozenset({"tmpfs", "nfs", "nfs4", "cifs"})
# Links in here are open files of whoever follows them, the runtime's own of the host among them (CVE-2024-21626).
_LINKS_TO_OPEN_FILES = ("/proc", "/dev/fd")
_USER_RUNTIME = re.compile(
    r"(/var)?/run/user(/\d+(/(bus|systemd|podman|docker|dockerd-rootless|containerd)(/.*)?)?)?"
)


def check_policy(
    plan: Plan,
    engine: EngineFacts | None,
    paths: Mapping[str, PathFacts],
    nodes: Iterable[DeviceNode] = (),
    volumes: Mapping[str, VolumeFacts] | None = None,
    workdir: str = "",
) -> None:
    """Refuse what no plan may hold.

    Args:
        plan: What would be held.
        engine: Its socket and its own files are never mounted.
        paths: Facts of mount sources: other names of the same place count like the place itself.
        nodes: The nodes behind the plan's devices: a disk is one by whatever name.
        volumes: Volumes that exist already: one can be a directory of the host.
        workdir: The working directory, the plan's or the image's own.

    Raises:
        PlanRefused: with every reason at once.
    """
    refusals = [
        *_mount_refusals(plan.mounts, engine, paths),
        *_volume_refusals(plan.mounts, engine, paths, volumes or {}),
        *_device_refusals(plan.devices, {node.path: node for node in nodes}),
        *_capability_refusals(plan),
        *_workdir_refusals(workdir),
    ]
    if refusals:
        msg = f"profile {plan.profile} asks for what rocmrun never grants"
        raise PlanRefused(msg, details=tuple(refusals))


def _mount_refusals(
    mounts: Iterable[PlannedMount], engine: EngineFacts | None, paths: Mapping[str, PathFacts]
) -> list[str]:
    return [
        f"mount {_written(mount, paths)} → {mount.target}: {why}; mount only the directory that the job reads"
        for mount in mounts
        if mount.kind == "bind" and (why := _refusal(mount, engine, paths.get(mount.source)))
    ]


def _written(mount: PlannedMount, paths: Mapping[str, PathFacts]) -> str:
    """Return the source as people wrote it; a plan has it after symlinks."""
    facts = paths.get(mount.source)
    return facts.path if facts else mount.source


def _volume_refusals(
    mounts: Iterable[PlannedMount],
    engine: EngineFacts | None,
    paths: Mapping[str, PathFacts],
    volumes: Mapping[str, VolumeFacts],
) -> list[str]:
    refusals = []
    for mount in mounts:
        # The engine makes an absent volume, empty and its own.
        volume = volumes.get(mount.source) if mount.kind == "volume" else None
        if volume and (why := _why_not_volume(volume, mount, engine, paths)):
            refusals.append(
                f"volume {mount.source} → {mount.target}: {why}; mount the one directory that the job reads, as a bind"
            )
    return refusals


def _why_not_volume(
    volume: VolumeFacts,
    mount: PlannedMount,
    engine: EngineFacts | None,
    paths: Mapping[str, PathFacts],
) -> str | None:
    """Judge a volume by what the engine mounts for it."""
    if volume.driver != "local":
        return f"is of the unknown volume driver {volume.driver}, which can mount anything"
    if source := volume.bind_source:
        why = _refusal(replace(mount, source=source, kind="bind"), engine, paths.get(source))
        return f"is a bind of {source}, which {why}" if why else None
    kind = volume.options.get("type", "")
    if volume.is_bind or (volume.options.keys() - {"size"} and kind not in _HARMLESS_TYPES):
        return f'mounts "{volume.options.get("device", "")}" of the host, type "{kind}"'
    return None


def _refusal(
    mount: PlannedMount, engine: EngineFacts | None, facts: PathFacts | None
) -> str | None:
    """Judge a source by every name of its place: as written, after symlinks, and what it is a bind mount of."""
    if facts is None:
        return _why_not(mount.source, mount, engine)
    for name in sorted({mount.source, facts.path, facts.real_path or mount.source}):
        if why := _why_not(name, mount, engine):
            return why
    return _why_not_its_way(facts) or _why_not_its_place(facts, mount, engine)


def _why_not_its_way(facts: PathFacts) -> str | None:
    for place in facts.through:
        if any(is_inside(place, top) for top in KERNEL_TREES):
            return f"leads through {place}, where links are another place for everybody who follows them"
    return None


def _why_not_its_place(
    facts: PathFacts, mount: PlannedMount, engine: EngineFacts | None
) -> str | None:
    for name in facts.other_names:
        if why := _why_not(name, mount, engine):
            return f"is the same place as {name}, which {why}"
    for point, names in facts.holds:
        for name in names:
            if why := _why_not(name, mount, engine):
                return f"holds {point}, the same place as {name}, which {why}"
    return None


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
    for files in (*((root,) if root else ()), *ENGINE_FILES):
        if touches(source, files):
            return f"reaches the engine's own files ({files})"
    return None


def _own_socket(engine: EngineFacts | None) -> tuple[str, ...]:
    address = engine.address if engine else ""
    return (address.removeprefix("unix://"),) if address.startswith("unix:///") else ()


def _device_refusals(
    devices: Iterable[PlannedDevice], nodes: Mapping[str, DeviceNode]
) -> list[str]:
    refusals = []
    for device in devices:
        if is_raw_device(device.path) or _is_raw(nodes.get(device.path)):
            refusals.append(
                f"device {device.path}: is raw memory or a disk of the host; ROCm needs neither"
            )
        elif "*" in device.path or device.path.rstrip("/") in {"/dev", "/dev/dri"}:
            refusals.append(f"device {device.path}: is a whole directory; name the nodes")
    return refusals


def _is_raw(node: DeviceNode | None) -> bool:
    """Whether the number behind a name is a disk's or the memory's (admin-guide/devices.txt)."""
    if node is None:
        return False
    return node.block or node.major == _SCSI_GENERIC or (node.major, node.minor) in _MEMORY


def _capability_refusals(plan: Plan) -> list[str]:
    if plan.engine == "podman":
        why = "is the host: Podman makes it effective for every user; leave it out"
    elif plan.uid == 0:
        why = "together with root: is the host; run as a non-root user, where the same grant only unlocks system calls"
    else:
        return []
    return [f"capability {name} {why}" for name in sorted(set(plan.cap_add) & HOST_CAPABILITIES)]


def _workdir_refusals(workdir: str) -> list[str]:
    path = f"/{posixpath.normpath(f'/{workdir}').strip('/')}"
    return [
        f"workdir {workdir}: is below {top}, where links lead out of the container; name a directory of the image under [container] workdir"
        for top in _LINKS_TO_OPEN_FILES
        if is_inside(path, top)
    ]
