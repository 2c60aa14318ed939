"""Who may open what inside: for each node and mount source of a plan, the errno that would come back.

The engine makes its own copy of a device node with the host's owner and mode, without its ACL; a bind
mount is the host's directory itself. The kernel asks owner, group or others, the first class that fits
and no other, then the device cgroup.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import DeviceNode, HostFacts
from rocmrun.core.identity import Identity
from rocmrun.core.mount_access import MountAccess, mount_access
from rocmrun.core.path_facts import PathFacts
from rocmrun.core.plan import Plan, PlannedDevice
from rocmrun.errors import DevicePermission, MountUnreadable

Errno = Literal["0", "EACCES", "EPERM", "ENOENT"]
READ_WRITE = 0o6
# libhsakmt (fmm.c) opens the render node of every GPU that KFD lists: one EACCES ends hsa_init, while
# a node that is absent or that the device cgroup refuses only takes its GPU off the list.
BREAKS_ALL = "EACCES on one node breaks every GPU: ROCm's library gives up"
HIDES_ONE = "ENOENT or EPERM hides this GPU, the others work"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAccess:
    """What open(O_RDWR) of a node gives inside.

    Attributes:
        errno: "0" opens.
        owner: Numeric "uid:gid" on the host, and inside.
        sentence: Why, and what follows from it; "" where it opens and nothing is to be said.
    """

    path: str
    owner: str
    mode: str
    errno: Errno
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessForecast:
    """What a plan's user may open.

    Attributes:
        groups: Every group that the process has, its primary one included.
        hidden: Render nodes of this host that are not passed: ENOENT inside.
    """

    uid: int
    groups: tuple[int, ...]
    nodes: tuple[NodeAccess, ...]
    mounts: tuple[MountAccess, ...]
    hidden: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)

    def refuse(self) -> None:
        """Stop a launch that could not work.

        Raises:
            DevicePermission: a GPU's node answers EACCES.
            MountUnreadable: with every mount source that the user may not read, or write where it asks to.
        """
        closed = [node for node in self.nodes if node.errno == "EACCES" and _is_gpu(node.path)]
        if closed:
            msg = f"uid {self.uid} may not open {closed[0].path} ({closed[0].owner}, mode {closed[0].mode})"
            raise DevicePermission(
                msg,
                details=tuple(f"{node.path}: {node.sentence}" for node in closed),
                hint="ls -l /dev/kfd /dev/dri, then give the nodes to a group: docs/errors.md#device-permission",
            )
        refused = [mount for mount in self.mounts if mount.errno == "EACCES"]
        if refused:
            msg = f"uid {self.uid} may not use what is mounted"
            raise MountUnreadable(
                msg,
                details=tuple(
                    f"{mount.source} → {mount.target}: {mount.sentence}" for mount in refused
                ),
                hint="; or ".join(refused[0].fixes),
            )


def forecast_access(
    plan: Plan,
    host: HostFacts,
    engine: EngineFacts | None,
    paths: Mapping[str, PathFacts],
    *,
    caller_uid: int,
) -> AccessForecast:
    """Return what the user of *plan* may open on *host*.

    Args:
        plan: Whose user, groups, nodes and mounts.
        host: Where the nodes are.
        engine: None counts as rootful, without a mapping of ids.
        paths: Facts of the mount sources; one that is missing here is not judged.
        caller_uid: Who runs a rootless engine.
    """
    identity = Identity.of(plan, engine)
    known = {node.path: node for node in _nodes(host)}
    passed = {device.path for device in plan.devices}
    return AccessForecast(
        uid=plan.uid,
        groups=tuple(sorted(identity.groups)),
        nodes=tuple(
            _node_access(device, known.get(device.path), identity) for device in plan.devices
        ),
        mounts=tuple(
            mount_access(mount, paths[mount.source], identity, engine, caller_uid)
            for mount in plan.mounts
            if mount.kind == "bind" and not mount.cache and mount.source in paths
        ),
        hidden=tuple(node.path for node in host.render_nodes if node.path not in passed),
    )


def _nodes(host: HostFacts) -> Iterator[DeviceNode]:
    yield from host.devices
    yield from host.card_nodes
    yield from host.render_nodes
    yield from (gpu.render_node for gpu in host.gpus if gpu.render_node)
    if host.kfd:
        yield host.kfd


def _node_access(device: PlannedDevice, node: DeviceNode | None, identity: Identity) -> NodeAccess:
    if node is None:
        return NodeAccess(
            path=device.path, owner="", mode="", errno="ENOENT", sentence="there is no such node"
        )
    node = device.inside(node)
    errno, sentence = _judged(device, node, identity)
    return NodeAccess(
        path=node.path,
        owner=f"{node.uid}:{node.gid}",
        mode=f"{node.mode:04o}",
        errno=errno,
        sentence=sentence,
    )


def _judged(device: PlannedDevice, node: DeviceNode, identity: Identity) -> tuple[Errno, str]:
    gpu = _is_gpu(node.path)
    if not identity.may(READ_WRITE, node.mode, node.uid, node.gid):
        why = identity.refusal(node.mode, node.uid, node.gid)
        return "EACCES", f"{why}. {BREAKS_ALL}" if gpu else why
    # A rootless engine has no device cgroup to refuse with.
    if device.permissions == "r" and not identity.rootless:
        why = "passed for reading alone: the device cgroup refuses to open it read-write"
        return "EPERM", f"{why}. {HIDES_ONE}" if gpu else why
    return "0", "its ACL does not count: the container's own node has none" if node.acl else ""


def _is_gpu(path: str) -> bool:
    return path == "/dev/kfd" or path.startswith("/dev/dri/renderD")
