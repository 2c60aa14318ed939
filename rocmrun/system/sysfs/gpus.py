"""GPUs: the KFD topology, their PCI devices and render nodes, and who holds them."""

from collections.abc import Mapping, Sequence

from rocmrun.core.host import DeviceNode, Gpu, Link, NumaNode, PciGpu
from rocmrun.core.kfd import KfdNode, Properties, parse_link, parse_properties
from rocmrun.core.os_text import number
from rocmrun.core.pci import FILES, PciFacts, is_address, parse_pci, parse_uevent
from rocmrun.core.topology import (
    Readings,
    candidate_addresses,
    make_gpus,
    render_minor,
    repeated_places,
)
from rocmrun.system.sysfs.tree import Tree

KFD = "/sys/class/kfd/kfd"
NODES = f"{KFD}/topology/nodes"
PCI_DEVICES = "/sys/bus/pci/devices"
_DRM_MAJOR = 226


def read_gpus(tree: Tree, numa_nodes: Sequence[NumaNode]) -> tuple[Gpu, ...]:
    """Return every GPU of the KFD topology; a node that the device cgroup hides is one without facts."""
    nodes = [_read_node(tree, number) for number in tree.numbers(NODES)]
    gpu_nodes = [node for node in nodes if node.is_gpu]
    for node in gpu_nodes:
        if node.hidden:
            tree.note(
                f"KFD node {node.number}: hidden from this process by its device cgroup (EPERM)"
            )
    minors = sorted({minor for node in gpu_nodes if (minor := render_minor(node))})
    drm = {minor: name for minor in minors if (name := _drm_device(tree, minor))}
    drm_addresses = {minor: name for minor, name in drm.items() if is_address(name)}
    gpus = make_gpus(
        Readings(
            nodes=nodes,
            pci=_read_pci_devices(tree, gpu_nodes, drm_addresses),
            drm_addresses=drm_addresses,
            # "amdgpu_xcp.3" or "amdgpu_xcp_3", by kernel.
            partition_minors={m for m, name in drm.items() if name.startswith("amdgpu_xcp")},
            render_nodes={m: found for m in minors if (found := render_node(tree, m))},
            cards={m: card for m in minors if (card := _card(tree, m)) is not None},
            holders=_read_holders(tree) if gpu_nodes else {},
            numa_nodes=numa_nodes,
        )
    )
    for problem in repeated_places(gpus):
        tree.note(problem)
    return gpus


def read_pci_gpus(tree: Tree) -> tuple[PciGpu, ...]:
    """Return every AMD GPU on the PCI bus, whatever driver holds it."""
    places = [f"{PCI_DEVICES}/{name}" for name in tree.names(PCI_DEVICES)]
    if not places:
        places = [
            f"/sys/class/drm/card{card}/device" for card in tree.numbers("/sys/class/drm", "card")
        ]
    found = (parse_uevent(tree.text(f"{place}/uevent") or "") for place in places)
    return tuple(sorted((gpu for gpu in found if gpu), key=lambda gpu: gpu.address))


def read_pci_device(tree: Tree, place: str) -> PciFacts:
    """Return what the directory of a PCI device says."""
    files = {name: line for name in FILES if (line := tree.line(f"{place}/{name}"))}
    firmware = {
        name: line
        for name in tree.names(f"{place}/fw_version")
        if (line := tree.line(f"{place}/fw_version/{name}"))
    }
    return parse_pci(files, firmware)


def render_node(tree: Tree, minor: int) -> DeviceNode | None:
    """Return the render node of *minor*, if what stands there is that node.

    Another root may hold stand-ins (null devices, plain files): they are taken as they are.
    """
    path = f"/dev/dri/renderD{minor}"
    node = tree.device(path)
    if node and tree.live and (node.major, node.minor) != (_DRM_MAJOR, minor):
        tree.note(f"{path} is {node.major}:{node.minor}, not the DRM node {_DRM_MAJOR}:{minor}")
        return None
    return node


def _read_node(tree: Tree, number: int) -> KfdNode:
    base = f"{NODES}/{number}"
    text = tree.text(f"{base}/properties")
    if f"{base}/properties" in tree.refused:
        return KfdNode(number=number, hidden=True)
    properties = parse_properties(text) if text else Properties(values={})
    links = (
        *_read_links(tree, f"{base}/io_links", peer_to_peer=False),
        *_read_links(tree, f"{base}/p2p_links", peer_to_peer=True),
    )
    return KfdNode(
        number=number,
        values=properties.values,
        skipped=properties.skipped,
        gpu_id=tree.number(f"{base}/gpu_id"),
        name=tree.line(f"{base}/name"),
        banks=_read_banks(tree, f"{base}/mem_banks"),
        links=links,
    )


def _read_banks(tree: Tree, base: str) -> tuple[Mapping[str, int], ...] | None:
    texts = [tree.text(f"{base}/{bank}/properties") for bank in tree.numbers(base)]
    # A bank that cannot be read makes the sum unknown, not smaller.
    return tuple(parse_properties(text).values for text in texts if text) if all(texts) else None


def _read_links(tree: Tree, base: str, *, peer_to_peer: bool) -> list[Link]:
    texts = (tree.text(f"{base}/{link}/properties") for link in tree.numbers(base))
    links = (parse_link(text, peer_to_peer=peer_to_peer) for text in texts if text)
    return [link for link in links if link]


def _card(tree: Tree, minor: int) -> int | None:
    """Return the number of the card node that the device of a render node has beside it."""
    cards = tree.numbers(f"/sys/class/drm/renderD{minor}/device/drm", "card")
    return cards[0] if len(cards) == 1 else None


def _drm_device(tree: Tree, minor: int) -> str | None:
    """Return the name of the device behind a render node: a PCI address, or "amdgpu_xcp.3"."""
    place = f"/sys/class/drm/renderD{minor}/device"
    name = tree.link_name(place)
    if name:
        return name
    # In a copied tree the symlink may have become a directory.
    uevent = tree.text(f"{place}/uevent") or ""
    gpu = parse_uevent(uevent)
    if gpu:
        return gpu.address
    return "amdgpu_xcp" if "platform:amdgpu_xcp" in uevent else None


def _read_pci_devices(
    tree: Tree, nodes: Sequence[KfdNode], drm_addresses: Mapping[int, str]
) -> dict[str, PciFacts]:
    places: dict[str, str] = {}
    for node in nodes:
        for address in candidate_addresses(node):
            places.setdefault(address, f"{PCI_DEVICES}/{address}")
    for minor, address in drm_addresses.items():
        if not tree.has(places.setdefault(address, f"{PCI_DEVICES}/{address}")):
            places[address] = f"/sys/class/drm/renderD{minor}/device"
    return {
        address: read_pci_device(tree, place)
        for address, place in places.items()
        if tree.has(place)
    }


def _read_holders(tree: Tree) -> dict[int, tuple[int, ...]]:
    """Return KFD gpu_id → processes with memory or a queue on it, from /sys/class/kfd/kfd/proc."""
    holders: dict[int, list[int]] = {}
    for pid in tree.numbers(f"{KFD}/proc"):
        base = f"{KFD}/proc/{pid}"
        held = {
            gpu_id for gpu_id in tree.numbers(base, "vram_") if tree.number(f"{base}/vram_{gpu_id}")
        }
        queues = tree.numbers(f"{base}/queues")
        held |= {number(tree.line(f"{base}/queues/{queue}/gpuid")) or 0 for queue in queues}
        for gpu_id in held:
            holders.setdefault(gpu_id, []).append(pid)
    return {gpu_id: tuple(pids) for gpu_id, pids in holders.items() if gpu_id}
