"""Put KFD nodes, PCI devices and device nodes together to GPUs. Pure: same readings, same GPUs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from rocmrun.core.host import DeviceNode, Gpu, NumaNode
from rocmrun.core.kfd import (
    KfdNode,
    PciLocation,
    compute_units,
    gfx_name,
    hex_id,
    is_apu,
    partition_bits,
    pci_location,
    vram_bytes,
)
from rocmrun.core.pci import PciFacts

_PARTITIONED_MODES = frozenset({"DPX", "TPX", "QPX", "CPX"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Everything that was read of a host's GPUs.

    Attributes:
        nodes: KFD nodes in numeric order.
        pci: PCI address → its device, as far as it was found.
        drm_addresses: Render minor → PCI address of its device in /sys/class/drm.
        partition_minors: Render minors whose device is an amdgpu_xcp platform device: every
            partition of a GPU but the first.
        render_nodes: Render minor → device node.
        cards: Render minor → number of the card node beside it.
        holders: KFD gpu_id → process ids.
    """

    nodes: Sequence[KfdNode] = ()
    pci: Mapping[str, PciFacts] = field(default_factory=dict)
    drm_addresses: Mapping[int, str] = field(default_factory=dict)
    partition_minors: AbstractSet[int] = frozenset()
    render_nodes: Mapping[int, DeviceNode] = field(default_factory=dict)
    cards: Mapping[int, int] = field(default_factory=dict)
    holders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    numa_nodes: Sequence[NumaNode] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    address: str | None
    partition: int | None


def make_gpus(readings: Readings) -> tuple[Gpu, ...]:
    """Return the GPUs in KFD node order, which is HIP's order before any *_VISIBLE_DEVICES."""
    gpu_nodes = [node for node in readings.nodes if node.is_gpu]
    places = _places(gpu_nodes, readings)
    cpu_nodes = _cpu_nodes(readings.nodes)
    gpu_numbers = {node.number for node in gpu_nodes}
    gpus = [
        _gpu(
            index, node, places.get(node.number), cpu_nodes.get(node.number), gpu_numbers, readings
        )
        for index, node in enumerate(gpu_nodes)
    ]
    return _with_amd_smi_indices(gpus)


def candidate_addresses(node: KfdNode) -> tuple[str, ...]:
    """Return the PCI addresses at which *node*'s device may be found: as printed, and as function 0."""
    location = pci_location(node.values)
    if location is None:
        return ()
    return tuple(dict.fromkeys((location.address, replace(location, function=0).address)))


def render_minor(node: KfdNode) -> int | None:
    """Return the DRM render minor; 0 means that the kernel names none, never renderD0."""
    return node.values.get("drm_render_minor") or None


def repeated_places(gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """Return one sentence for every PCI address that several GPU nodes claim without being partitions."""
    nodes = defaultdict(list)
    for gpu in gpus:
        if gpu.pci_address:
            nodes[gpu.pci_address, gpu.partition].append(str(gpu.node))
    return tuple(
        f"KFD nodes {', '.join(numbers)} claim one PCI address, {address}, and are no partitions of it"
        for (address, _), numbers in nodes.items()
        if len(numbers) > 1
    )


def _places(nodes: Sequence[KfdNode], readings: Readings) -> dict[int, _Place]:
    """Return where each node sits: in partition mode the low bits of location_id are no PCI function."""
    groups: dict[PciLocation, list[tuple[KfdNode, PciLocation]]] = defaultdict(list)
    places = {}
    for node in nodes:
        location = pci_location(node.values)
        if location is None:
            places[node.number] = _Place(readings.drm_addresses.get(render_minor(node) or 0), None)
        else:
            groups[replace(location, function=0)].append((node, location))
    for first, members in groups.items():
        partitioned = _is_partitioned(first, members, readings)
        for node, location in members:
            if partitioned:
                partition = partition_bits(node.values) or location.function
                places[node.number] = _Place(first.address, partition)
            else:
                drm_address = readings.drm_addresses.get(render_minor(node) or 0)
                places[node.number] = _Place(drm_address or location.address, None)
    return places


def _is_partitioned(
    first: PciLocation, members: Sequence[tuple[KfdNode, PciLocation]], readings: Readings
) -> bool:
    device = readings.pci.get(first.address)
    if device and device.compute_partition in _PARTITIONED_MODES:
        return True
    if any(render_minor(node) in readings.partition_minors for node, _ in members):
        return True
    if any(partition_bits(node.values) for node, _ in members):
        return True
    if device and any(location.address not in readings.pci for _, location in members):
        return True
    # Without the PCI device, siblings tell: one GPU (its unique id), and every number once.
    functions = {location.function for _, location in members}
    unique_ids = {node.values.get("unique_id") for node, _ in members}
    return 1 < len(members) == len(functions) and len(unique_ids) == 1


def _cpu_nodes(nodes: Sequence[KfdNode]) -> dict[int, int]:
    """Return GPU node → the CPU node that it hangs off, by its own links, else by the CPU's links to it."""
    cpus = {node.number for node in nodes if node.is_cpu}
    found: dict[int, int] = {}
    for node in nodes:
        for link in node.links:
            if node.number in cpus and link.to_node not in cpus and not link.peer_to_peer:
                found.setdefault(link.to_node, node.number)
    for node in nodes:
        own = [
            link.to_node for link in node.links if link.to_node in cpus and not link.peer_to_peer
        ]
        if node.is_gpu and own:
            found[node.number] = own[0]
    return found


def _numa_node(device: PciFacts, cpu_node: int | None, readings: Readings) -> int | None:
    if device.numa_node is not None or cpu_node is None:
        return device.numa_node
    # KFD numbers only NUMA nodes that have processors, in the kernel's order.
    cpus = [node.number for node in readings.nodes if node.is_cpu]
    with_processors = [numa.node for numa in readings.numa_nodes if numa.cpus]
    return with_processors[cpus.index(cpu_node)] if len(cpus) == len(with_processors) else None


def _gpu(
    index: int,
    node: KfdNode,
    place: _Place | None,
    cpu_node: int | None,
    gpu_numbers: AbstractSet[int],
    readings: Readings,
) -> Gpu:
    if node.hidden or place is None:
        return Gpu(index=index, node=node.number, permitted=not node.hidden)
    values, minor = node.values, render_minor(node)
    gfx = gfx_name(values.get("gfx_target_version"))
    device = readings.pci.get(place.address or "", PciFacts())
    gpu = Gpu(
        index=index,
        node=node.number,
        gfx=gfx,
        gfx_source="kfd" if gfx else None,
        name=node.name,
        device_id=_pci_id(values.get("device_id")),
        vendor_id=_pci_id(values.get("vendor_id")),
        pci_address=place.address,
        domain_known="domain" in values and place.address is not None,
        partition=place.partition,
        render_minor=minor,
        render_node=readings.render_nodes.get(minor or 0),
        card=readings.cards.get(minor or 0),
        unique_id=hex_id(values.get("unique_id")),
        hive_id=hex_id(values.get("hive_id")),
        kfd_gpu_id=node.gpu_id,
        vram_bytes=vram_bytes(node.banks),
        compute_units=compute_units(values),
        simd_count=values.get("simd_count"),
        num_xcc=values.get("num_xcc"),
        cpu_node=cpu_node,
        numa_node=_numa_node(device, cpu_node, readings),
        apu=is_apu(gfx, values),
        xgmi_peers=_xgmi_peers(node, gpu_numbers),
        links=node.links,
        firmware=_kfd_firmware(values),
        holders=readings.holders.get(node.gpu_id or 0, ()),
        skipped_lines=node.skipped,
    )
    return _with_device(gpu, device) if place.address in readings.pci else gpu


def _with_device(gpu: Gpu, device: PciFacts) -> Gpu:
    """Return *gpu* with what its PCI device adds; where both speak, KFD is nearer to what HIP sees."""
    # The memory that the device names is the whole GPU's, not a partition's share.
    whole_vram = device.vram_bytes if gpu.partition is None else None
    return replace(
        gpu,
        device_id=gpu.device_id or device.device_id,
        vendor_id=gpu.vendor_id or device.vendor_id,
        subsystem_id=device.subsystem_id,
        revision=device.revision,
        domain_known=True,
        compute_partition=device.compute_partition,
        memory_partition=device.memory_partition,
        unique_id=gpu.unique_id or device.unique_id,
        vram_bytes=gpu.vram_bytes or whole_vram,
        firmware=device.firmware or gpu.firmware,
        vbios=device.vbios,
        link_width=device.link_width,
        link_width_max=device.link_width_max,
        link_speed=device.link_speed,
        link_speed_max=device.link_speed_max,
    )


def _pci_id(number: int | None) -> str | None:
    return f"0x{number:04x}" if number else None


def _xgmi_peers(node: KfdNode, gpu_numbers: AbstractSet[int]) -> tuple[int, ...]:
    peers = {link.to_node for link in node.links if link.kind == "xgmi" and not link.peer_to_peer}
    return tuple(sorted(peers & gpu_numbers - {node.number}))


def _kfd_firmware(values: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    """Return the two versions that KFD itself prints, named and written as the driver's own files are."""
    blocks = (("mec", "fw_version"), ("sdma", "sdma_fw_version"))
    return tuple((block, f"0x{values[key]:08x}") for block, key in blocks if values.get(key))


def _with_amd_smi_indices(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Number the GPUs as amd-smi does: by PCI address, and only those whose KFD node can be read."""
    seen = [gpu for gpu in gpus if gpu.permitted]
    if any(gpu.pci_address is None for gpu in seen):
        return tuple(gpus)

    def place(gpu: Gpu) -> tuple[int, str, int]:
        domain, _, rest = (gpu.pci_address or "").partition(":")
        return int(domain, 16), rest, gpu.partition or 0

    order = {gpu.node: position for position, gpu in enumerate(sorted(seen, key=place))}
    return tuple(replace(gpu, amd_smi_index=order.get(gpu.node)) for gpu in gpus)
