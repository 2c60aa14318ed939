"""CDI specifications: which nodes a named device brings, and whether that is still this host. Text and values only.

AMD's tool numbers devices by PCI address, HIP by KFD node: the same number can be two GPUs. So a device
is chosen by the render nodes that it brings, never by its number.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rocmrun.core.host import DeviceNode, Gpu, HostFacts
from rocmrun.errors import CdiStale

KIND = "amd.com/gpu"
REFRESH = "sudo amd-ctk cdi generate --output=/etc/cdi/amd.json"
RENDER, CARD = "/dev/dri/renderD", "/dev/dri/card"


@dataclass(frozen=True, slots=True, kw_only=True)
class CdiNode:
    """A device node that a specification adds.

    Attributes:
        mode: Permission bits that the engine gives its node, whatever the host's has. What a
            specification leaves out is 0666 and root's (seen with Docker 28.5.2).
    """

    path: str
    host_path: str
    permissions: str
    mode: int = 0o666
    uid: int = 0
    gid: int = 0
    major: int | None = None
    minor: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CdiDevice:
    """A device of a specification, with the edits that every device of it gets.

    Attributes:
        name: As it is asked for: "amd.com/gpu=0".
        more: Kinds of edits beyond nodes: "hooks", "mounts", "env", …
        source: The file.
    """

    name: str
    nodes: tuple[CdiNode, ...]
    more: tuple[str, ...]
    source: str


def parse_cdi(text: str, source: str) -> tuple[CdiDevice, ...]:
    """Return the devices of kind amd.com/gpu in a specification, which is JSON.

    Raises:
        CdiStale: it is no specification.
    """
    try:
        spec = json.loads(text)
        if spec.get("kind") != KIND:
            return ()
        shared = spec.get("containerEdits") or {}
        return tuple(
            _device(str(device["name"]), shared, device.get("containerEdits") or {}, source)
            for device in spec.get("devices") or ()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"{source} is no CDI specification: {error}"
        raise CdiStale(msg, hint=REFRESH) from error


def _device(name: str, shared: Mapping[str, Any], own: Mapping[str, Any], source: str) -> CdiDevice:
    nodes = {
        node.path: node
        for edits in (shared, own)
        for node in map(_node, edits.get("deviceNodes") or ())
    }
    more = {kind for edits in (shared, own) for kind, value in edits.items() if value}
    return CdiDevice(
        name=f"{KIND}={name}",
        nodes=tuple(nodes[path] for path in sorted(nodes)),
        more=tuple(sorted(more - {"deviceNodes"})),
        source=source,
    )


def _node(entry: Mapping[str, Any]) -> CdiNode:
    path = str(entry["path"])
    return CdiNode(
        path=path,
        host_path=str(entry.get("hostPath") or path),
        # What an engine gives where the specification says nothing (CDI 0.6.0, deviceNodes).
        permissions="".join(letter for letter in "rwm" if letter in (entry.get("permissions") or "rwm")),
        mode=int(entry.get("fileMode") or 0o666) & 0o777,
        uid=int(entry.get("uid") or 0),
        gid=int(entry.get("gid") or 0),
        major=entry.get("major"),
        minor=entry.get("minor"),
    )  # fmt: skip


def choose_devices(
    gpus: Iterable[Gpu], devices: Iterable[CdiDevice], host: HostFacts
) -> tuple[CdiDevice, ...]:
    """Return the devices that bring exactly *gpus*, each GPU found by its render node.

    Raises:
        CdiStale: a specification and this host differ, or no device brings a GPU alone.
    """
    found = tuple(devices)
    known = {node.path: node for node in (*host.render_nodes, *host.card_nodes, *_gpu_nodes(host))}
    problems = [problem for device in found for problem in _problems(device, known)]
    if problems:
        msg = "the CDI specification is not this host's any more"
        raise CdiStale(msg, details=tuple(dict.fromkeys(problems)), hint=REFRESH)
    selected = tuple(gpus)
    wanted = {f"{RENDER}{gpu.render_minor}" for gpu in selected}
    chosen: dict[str, CdiDevice] = {}
    for gpu in selected:
        device = _device_for(gpu, found, wanted)
        chosen[device.name] = device
    _check_cards(tuple(chosen.values()), selected)
    return tuple(chosen[name] for name in sorted(chosen))


def _gpu_nodes(host: HostFacts) -> Iterator[DeviceNode]:
    yield from (gpu.render_node for gpu in host.gpus if gpu.render_node)
    if host.kfd:
        yield host.kfd


def _problems(device: CdiDevice, known: Mapping[str, DeviceNode]) -> Iterator[str]:
    """Compare a device's nodes with the host, one by one."""
    for node in device.nodes:
        here = known.get(node.path)
        if here is None:
            yield f"{device.name} brings {node.path}, which does not exist here"
        elif node.host_path not in {here.host_path, here.path}:
            yield f"{device.name} brings {node.host_path} as {node.path}"
        elif node.major is not None and (node.major, node.minor) != (here.major, here.minor):
            yield f"{device.name} brings {node.path} as {node.major}:{node.minor}, here it is {here.major}:{here.minor}"


def _device_for(gpu: Gpu, devices: tuple[CdiDevice, ...], wanted: set[str]) -> CdiDevice:
    """Return the smallest device that brings *gpu* and no GPU that is not wanted."""
    node = f"{RENDER}{gpu.render_minor}"
    bringing = [device for device in devices if node in _rendering(device)]
    alone = [device for device in bringing if _rendering(device) <= wanted]
    if alone:
        return min(alone, key=lambda device: (len(device.nodes), device.name))
    if bringing:
        more = ", ".join(sorted(_rendering(bringing[0]) - wanted))
        msg = f"{gpu.label}: {bringing[0].name} brings {more} too, which is not selected"
        raise CdiStale(msg, hint='select those GPUs too, or write [gpus] inject = "nodes"')
    msg = f"{gpu.label}: no CDI device brings {node}"
    raise CdiStale(msg, hint=REFRESH)


def _rendering(device: CdiDevice) -> set[str]:
    return {node.path for node in device.nodes if node.path.startswith(RENDER)}


def _check_cards(devices: tuple[CdiDevice, ...], gpus: tuple[Gpu, ...]) -> None:
    """A card node of another GPU is what a specification brings that was written before the cards moved."""
    if any(gpu.card is None for gpu in gpus):
        return
    own = {f"{CARD}{gpu.card}" for gpu in gpus}
    foreign = [
        f"{device.name} brings {node.path}, the card node of another GPU"
        for device in devices
        for node in device.nodes
        if node.path.startswith(CARD) and node.path not in own
    ]
    if foreign:
        msg = "the CDI specification is not this host's any more"
        raise CdiStale(msg, details=tuple(foreign), hint=REFRESH)
