"""GPUs through the engine's CDI: the nodes that the specification brings, each a grant, and what refuses it."""

from rocmrun.core.cdi import CARD, CdiDevice, CdiNode, choose_devices
from rocmrun.core.host import DeviceNode, Gpu
from rocmrun.core.plan import PlannedDevice
from rocmrun.core.planning.draft import Draft
from rocmrun.errors import CdiStale, EngineUnsuitable, PlanRefused

_NODES_INSTEAD = 'write [gpus] inject = "nodes", which needs no CDI'


def plan_cdi(
    draft: Draft, gpus: tuple[Gpu, ...]
) -> tuple[tuple[PlannedDevice, ...], tuple[DeviceNode, ...]]:
    """Return the nodes that CDI devices bring for *gpus*, and those of them that must be opened, granting each.

    Raises:
        EngineUnsuitable: the engine has no CDI.
        CdiStale: the specification is missing, or not this host's.
        PlanRefused: it brings more than device nodes.
    """
    if not gpus:
        return (), ()
    _check_engine(draft)
    request = draft.request
    if not request.cdi:
        msg = "no CDI specification of kind amd.com/gpu was found"
        raise CdiStale(msg, hint=f"{_NODES_INSTEAD}; or sudo amd-ctk cdi generate")
    chosen = choose_devices(gpus, request.cdi, request.host)
    for device in chosen:
        _check_device(draft, device)
    planned: dict[str, PlannedDevice] = {}
    for device in chosen:
        for node in device.nodes:
            if node.path not in planned:
                planned[node.path] = _planned(device, node)
                draft.grant(
                    f"device:{node.path}:{node.permissions}", _reason(node), f"cdi {device.name}"
                )
    hosts = {node.path: node for node in _host_nodes(draft, gpus)}
    opened = tuple(planned[path].inside(hosts[path]) for path in sorted(planned) if path in hosts)
    return tuple(planned[path] for path in sorted(planned)), opened


def _check_engine(draft: Draft) -> None:
    engine = draft.request.engine
    if engine is None:
        draft.note("no engine was asked: whether it knows these CDI devices is not known")
        return
    if engine.kind == "podman":
        msg = "Podman's Docker socket ignores CDI devices (containers/podman#22645)"
        raise EngineUnsuitable(msg, hint=_NODES_INSTEAD)
    if not engine.cdi:
        msg = f"the engine ({engine.kind} {engine.version}) has no CDI: Docker 25 can, 28.2 does by default"
        raise EngineUnsuitable(
            msg, hint=f'set "features": {{"cdi": true}} in /etc/docker/daemon.json; or {_NODES_INSTEAD}'
        )  # fmt: skip


def _check_device(draft: Draft, device: CdiDevice) -> None:
    if device.more:
        msg = f"{device.name} brings more than device nodes: {', '.join(device.more)}"
        raise PlanRefused(
            msg,
            details=(f"{device.source}: a hook runs as root on the host, the rest is in no grant",),
            hint=_NODES_INSTEAD,
        )
    engine = draft.request.engine
    # Before 28.2 an engine does not say which devices it found.
    if engine and engine.cdi_devices and device.name not in engine.cdi_devices:
        msg = f"the engine has not found {device.name}, which {device.source} names"
        raise CdiStale(
            msg, hint="sudo systemctl reload docker, or look at its CDI directories: docker info"
        )


def _planned(device: CdiDevice, node: CdiNode) -> PlannedDevice:
    return PlannedDevice(
        path=node.path,
        host_path=node.host_path,
        permissions=node.permissions,
        cdi=device.name,
        owner=(node.mode, node.uid, node.gid),
    )


def _reason(node: CdiNode) -> str:
    if node.path.startswith(CARD):
        return (
            "a card node, which the CDI specification brings along: display and memory management"
        )
    made = ", and the right to make it" if "m" in node.permissions else ""
    return f"brought by the CDI specification{made}"


def _host_nodes(draft: Draft, gpus: tuple[Gpu, ...]) -> list[DeviceNode]:
    """Return the nodes that ROCm opens: they need their groups, card nodes do not."""
    nodes = [gpu.render_node for gpu in gpus if gpu.render_node]
    kfd = draft.request.host.kfd
    return [*nodes, kfd] if kfd else nodes
