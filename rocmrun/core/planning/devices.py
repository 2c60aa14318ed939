"""Which device nodes a plan passes, and which numeric groups open them."""

from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from rocmrun.core.cdi import REFRESH
from rocmrun.core.host import DeviceNode, Gpu
from rocmrun.core.plan import PlannedDevice, PlannedGpu
from rocmrun.core.planning.cdi import plan_cdi
from rocmrun.core.planning.draft import Draft
from rocmrun.core.selection import select_gpus
from rocmrun.errors import (
    DevicePermission,
    DevicesMissing,
    EngineUnsuitable,
    GpuSelection,
    UsageError,
)

NOT_MAPPED = 65534
# What a runtime inside heeds and nothing enforces.
VISIBILITY = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
UDEV_HINT = (
    'add a udev rule, then run `sudo udevadm trigger`: KERNEL=="kfd", GROUP="render", MODE="0660"'
)


def choose_gpus(draft: Draft) -> tuple[Gpu, ...]:
    """Return the GPUs that the profile selects on this host."""
    request = draft.request
    selectors = [str(selector) for selector in request.profile.gpus.select]
    if selectors == ["none"]:
        if request.narrow:
            msg = f"profile {request.name} selects no GPU, so --gpu has nothing to narrow"
            raise GpuSelection(msg)
        return ()
    if not request.host.gpus and request.profile.accelerator == "rocm":
        raise DevicesMissing(_no_gpu_reason(draft), hint="rocmrun host shows what was looked at")
    selection = select_gpus(selectors, request.host.gpus)
    for gpu, reason in selection.left_out:
        draft.note(f"{gpu.label} is left out: {reason}")
    if not request.narrow:
        return selection.selected
    wanted = select_gpus(request.narrow, request.host.gpus).selected
    outside = [gpu.label for gpu in wanted if gpu not in selection.selected]
    if outside:
        msg = f"--gpu selects what profile {request.name} does not: {', '.join(outside)}"
        raise GpuSelection(msg, hint="--gpu narrows the profile's [gpus] select; it adds nothing")
    return wanted


def _no_gpu_reason(draft: Draft) -> str:
    host = draft.request.host
    if host.kfd is None:
        return "this host has no /dev/kfd: the amdgpu driver is not loaded, or this is a VM or WSL without the GPU"
    if not host.kfd_topology:
        return "/dev/kfd exists, but the kernel shows no KFD topology under /sys/class/kfd"
    return "the kernel's KFD topology lists no GPU"


def planned_gpus(gpus: Iterable[Gpu]) -> tuple[PlannedGpu, ...]:
    """Return *gpus* as the probe must find them again."""
    gpus = tuple(gpus)
    indices = {gpu.node: gpu.index for gpu in gpus}
    return tuple(
        PlannedGpu(
            index=gpu.index,
            gfx=gpu.gfx,
            pci_address=gpu.pci_address,
            partition=gpu.partition,
            render_minor=gpu.render_minor,
            unique_id=gpu.unique_id,
            numa_node=gpu.numa_node,
            device_id=gpu.device_id,
            revision=gpu.revision,
            compute_units=gpu.compute_units,
            apu=gpu.apu,
            # Every GPU has a link to a processor at least: none at all is none that could be read.
            xgmi_peers=tuple(sorted(indices[node] for node in gpu.xgmi_peers if node in indices))
            if gpu.links
            else None,
        )
        for gpu in gpus
        if gpu.render_minor is not None
    )


def plan_devices(
    draft: Draft, gpus: tuple[Gpu, ...]
) -> tuple[tuple[PlannedDevice, ...], tuple[DeviceNode, ...]]:
    """Return the devices to pass and the host nodes behind them, granting each."""
    brought, opened = _by_cdi(draft, gpus)
    chosen: dict[str, _AskedNode] = {}
    for asked in (*(() if brought else _gpu_nodes(draft, gpus)), *_extra_nodes(draft)):
        if any(device.path == asked.node.path for device in brought):
            msg = f"{asked.asked_by}: {asked.node.path} comes through CDI already"
            raise UsageError(msg, hint="leave it out of [[devices]] and [[privileges]]")
        known = chosen.get(asked.node.path)
        # Of two that ask for one node the wider wins: "r", "rw", "rwm".
        if known is None or len(asked.permissions) > len(known.permissions):
            chosen[asked.node.path] = asked
    found = [chosen[path] for path in sorted(chosen)]
    for asked in found:
        draft.grant(f"device:{asked.node.path}:{asked.permissions}", asked.reason, asked.asked_by)
    devices = tuple(
        PlannedDevice(
            path=asked.node.path, host_path=asked.node.host_path, permissions=asked.permissions
        )
        for asked in found
    )
    return tuple(sorted((*devices, *brought))), (*(asked.node for asked in found), *opened)


def _by_cdi(
    draft: Draft, gpus: tuple[Gpu, ...]
) -> tuple[tuple[PlannedDevice, ...], tuple[DeviceNode, ...]]:
    return plan_cdi(draft, gpus) if draft.request.profile.gpus.inject == "cdi" else ((), ())


class _AskedNode(NamedTuple):
    node: DeviceNode
    permissions: str
    reason: str
    asked_by: str


def _gpu_nodes(draft: Draft, gpus: tuple[Gpu, ...]) -> list[_AskedNode]:
    if not gpus:
        return []
    kfd = draft.request.host.kfd
    if kfd is None:
        msg = "the selected GPUs need /dev/kfd, which does not exist on this host"
        raise DevicesMissing(msg, hint="sudo modprobe amdgpu")
    nodes = [_AskedNode(kfd, "rw", "the compute interface that all AMD GPUs share", "gpus")]
    for gpu in gpus:
        if gpu.render_node is None:
            name = (
                "no render minor"
                if gpu.render_minor is None
                else f"/dev/dri/renderD{gpu.render_minor} does not exist"
            )
            msg = f"{gpu.label} has no render node ({name})"
            raise DevicesMissing(msg, hint="sudo udevadm trigger --subsystem-match=drm")
        nodes.append(
            _AskedNode(
                gpu.render_node,
                "rw",
                f"the render node of {gpu.label}",
                f"gpu {gpu.pci_address or gpu.index}",
            )
        )
    return nodes


def _extra_nodes(draft: Draft) -> list[_AskedNode]:
    """Return what [[devices]] and device grants match."""
    request = draft.request
    found: list[_AskedNode] = []
    asked: list[tuple[str, str, str, str]] = [
        (entry.path, entry.permissions, entry.reason, request.asked_by(f"devices[{index}]"))
        for index, entry in enumerate(request.profile.devices)
    ]
    asked += [
        (entry.parsed.value, entry.parsed.extra, entry.reason, entry.asked_by)
        for entry in draft.asked("device")
    ]
    for pattern, permissions, reason, asked_by in asked:
        nodes = [node for node in request.host.devices if fnmatchcase(node.path, pattern)]
        if not nodes:
            msg = f"{asked_by}: no device node on this host matches {pattern}"
            raise DevicesMissing(msg, hint=f"ls -l {pattern}")
        found += [_AskedNode(node, permissions, reason, asked_by) for node in nodes]
    return found


def plan_groups(draft: Draft, nodes: Iterable[DeviceNode], uid: int) -> tuple[int, ...]:
    """Return one numeric group for every distinct owner of *nodes* that only its group may open.

    Names are useless here: Docker resolves them in the image, where `render` may be absent or another number.

    Raises:
        DevicePermission: no group can open a node.
        EngineUnsuitable: this engine maps groups to others than the host's.
    """
    by_cdi = draft.request.profile.gpus.inject == "cdi"
    where, hint = ("", REFRESH) if by_cdi else (" on this host", UDEV_HINT)
    users: dict[int, list[str]] = defaultdict(list)
    for node in nodes:
        if node.world_writable:
            draft.note(
                f"{node.path} is open to everybody{where} (mode {node.mode:04o}): no group is needed"
            )
        elif node.uid == uid and node.owner_writable:
            continue
        else:
            users[_group_of(node, hint)].append(node.path)
    if users:
        _refuse_mapped_groups(draft, users)
    for gid, paths in sorted(users.items()):
        draft.grant(f"group:{gid}", f"owns {', '.join(paths)}{where}", "devices")
    return tuple(sorted(users))


def _group_of(node: DeviceNode, hint: str) -> int:
    if not node.group_writable:
        msg = f"{node.path} is {node.mode:04o} and owned by {node.uid}:{node.gid}: no group can open it"
        raise DevicePermission(msg, hint=hint)
    if node.gid == 0:
        msg = f"{node.path} belongs to group root (mode {node.mode:04o}): group 0 is not given to a container"
        raise DevicePermission(msg, hint=hint)
    if node.gid == NOT_MAPPED:
        msg = f"{node.path} belongs to group {NOT_MAPPED} (nogroup): its owner is not mapped here, so that no number stands for it"
        raise DevicePermission(
            msg,
            hint="run rocmrun on the host, outside the user namespace",
        )
    return node.gid


def _refuse_mapped_groups(draft: Draft, users: dict[int, list[str]]) -> None:
    engine = draft.request.engine
    if engine is None or not (engine.rootless or engine.userns_remap):
        return
    kind = "is rootless" if engine.rootless else "maps container ids to others (userns-remap)"
    paths = ", ".join(path for group in users.values() for path in group)
    msg = f"the engine {kind}: the groups {', '.join(map(str, users))} that open {paths} do not exist inside"
    raise EngineUnsuitable(
        msg,
        hint="use a rootful engine without userns-remap, or Podman's keep-groups",
    )


def isolation_grade(
    draft: Draft,
    gpus: tuple[Gpu, ...],
    devices: tuple[PlannedDevice, ...],
    environment: Iterable[tuple[str, str]],
) -> str:
    """Return what keeps the GPUs of this host that are not selected out of reach."""
    engine = draft.request.engine
    others = _nodes_of_others(draft, gpus, devices)
    if others:
        named = [name for name, _ in environment if name in VISIBILITY]
        grade = f"environment only ({', '.join(named)})" if named else "none"
        return f"{grade}: {', '.join(others)} passed beside the GPUs selected"
    if not gpus:
        return "no GPU passed"
    if engine is None:
        return "unknown (no engine was asked)"
    if engine.rootless:
        return "nodes only (a rootless engine cannot apply device cgroups)"
    return "kernel-enforced (device cgroup: only the nodes passed can be opened)"


def _nodes_of_others(
    draft: Draft, gpus: tuple[Gpu, ...], devices: tuple[PlannedDevice, ...]
) -> list[str]:
    """Return the nodes of GPUs that are not selected, and are passed all the same."""
    own = {f"/dev/dri/renderD{gpu.render_minor}" for gpu in gpus}
    nodes = {node.path for node in draft.request.host.render_nodes}
    nodes |= {gpu.render_node.path for gpu in draft.request.host.gpus if gpu.render_node}
    return sorted(device.path for device in devices if device.path in nodes - own)
