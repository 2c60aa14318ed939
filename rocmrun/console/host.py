"""A host as people read it: the four numberings of each GPU side by side."""

from collections.abc import Sequence

from rocmrun.core.host import DeviceNode, Gpu, HostFacts
from rocmrun.core.text import human_size, printable

_UNKNOWN = "?"
_NONE = "-"
_COLUMNS = (
    "HIP",
    "amd-smi",
    "PCI address",
    "partition",
    "render node",
    "gfx",
    "VRAM",
    "NUMA",
    "owner and mode",
)


def host_lines(host: HostFacts) -> list[str]:
    """Return *host* as lines for people, as wide as their content: they may be piped."""
    found = _table(host.gpus) if host.gpus else _nothing_found(host)
    notes = [f"note: {note}" for note in host_notes(host)]
    return [printable(line) for line in (*_machine_lines(host), "", *found, *notes)]


def host_notes(host: HostFacts) -> tuple[str, ...]:
    """Return what a reader of the table must know to trust it."""
    gpus = host.gpus
    notes = []
    addresses = {gpu.pci_address for gpu in gpus if gpu.pci_address}
    if gpus and len(addresses) != len(gpus):
        notes.append(f"{len(gpus)} KFD GPU nodes, {len(addresses)} PCI addresses")
    moved = [gpu for gpu in gpus if gpu.amd_smi_index not in (None, gpu.index)]
    if moved:
        notes.append(
            "HIP and amd-smi number the GPUs differently: name a GPU by its PCI address, not by an index"
        )
    if any(not gpu.permitted for gpu in gpus):
        notes.append("HIP counts without the GPUs that are hidden from this process")
    notes.extend(
        f"{gpu.label} is held by process {', '.join(map(str, gpu.holders))}"
        for gpu in gpus
        if gpu.holders
    )
    return (*notes, *host.problems)


def _machine_lines(host: HostFacts) -> list[str]:
    memory = human_size(host.memory_bytes) if host.memory_bytes else f"memory {_UNKNOWN}"
    parts = [
        host.os_name,
        f"kernel {host.kernel or _UNKNOWN}",
        f"{host.cpu_count or _UNKNOWN} CPUs",
        memory,
    ]
    driver = (
        f"amdgpu {host.driver_version} ({host.driver_source})"
        if host.driver_version
        else "not loaded"
    )
    lines = [
        printable(
            f"host    {host.hostname or _UNKNOWN}: " + ", ".join(part for part in parts if part)
        ),
        printable(f"driver  {driver}" + (", and an NVIDIA driver" if host.nvidia else "")),
        f"kfd     {_node(host.kfd)}",
    ]
    return lines if host.root == "/" else [f"root    {host.root}", *lines]


def _nothing_found(host: HostFacts) -> list[str]:
    """Return what was looked at in vain, for a person who expected a GPU."""
    lines = ["no AMD GPU found. Looked at:"]
    topology = "shows no GPU node" if host.kfd_topology else "does not exist"
    lines.append(f"  /sys/class/kfd/kfd/topology  {topology}")
    lines.append(f"  /dev/kfd                     {'exists' if host.kfd else 'does not exist'}")
    lines.append(f"  /dev/dri                     {len(host.render_nodes)} render nodes")
    if not host.pci_gpus:
        lines.append("  PCI bus                      no AMD display or compute device")
    for gpu in host.pci_gpus:
        driver = f"driver {gpu.driver}" if gpu.driver else "no driver"
        lines.append(
            printable(f"  PCI bus                      {gpu.address} {gpu.device_id}, {driver}")
        )
    if host.wsl:
        lines.append("  this is WSL, which has no KFD: GPUs go through /dev/dxg there")
    return lines


def _table(gpus: Sequence[Gpu]) -> list[str]:
    rows = [_COLUMNS, *map(_cells, gpus)]
    if all(gpu.partition is None for gpu in gpus):
        unused = _COLUMNS.index("partition")
        rows = [(*row[:unused], *row[unused + 1 :]) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _cells(gpu: Gpu) -> tuple[str, ...]:
    if not gpu.permitted:
        unseen = (_NONE,) * (len(_COLUMNS) - 3)
        return (_NONE, _NONE, *unseen, f"KFD node {gpu.node}: hidden by the device cgroup")
    return (
        str(gpu.index),
        _text(gpu.amd_smi_index),
        gpu.pci_address or _UNKNOWN,
        _NONE if gpu.partition is None else str(gpu.partition),
        _UNKNOWN if gpu.render_minor is None else f"renderD{gpu.render_minor}",
        (gpu.gfx or _UNKNOWN) + (" APU" if gpu.apu else ""),
        human_size(gpu.vram_bytes) if gpu.vram_bytes else _UNKNOWN,
        _text(gpu.numa_node),
        _node(gpu.render_node),
    )


def _text(number: int | None) -> str:
    return _UNKNOWN if number is None else str(number)


def _node(node: DeviceNode | None) -> str:
    if node is None:
        return "not there"
    return f"{node.uid}:{node.gid} {node.mode:04o}" + (" with an ACL" if node.acl else "")
