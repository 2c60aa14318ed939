"""A host as people read it: the four numberings of each GPU side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocmrun.core.host import DeviceNode, Gpu, HostFacts
from rocmrun.core.text import human_size, printable

if TYPE_CHECKING:
    from rich.console import Console

_UNKNOWN = "?"
_NONE = "-"


def print_host(console: "Console", host: HostFacts) -> None:
    """Print *host* for people."""
    for line in _machine_lines(host):
        console.print(line, markup=False)
    if not host.gpus:
        for line in _nothing_found(host):
            console.print(line, markup=False)
    else:
        console.print()
        _print_gpus(console, host.gpus)
    for note in host_notes(host):
        console.print(f"note: {printable(note)}", markup=False)


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
    return lines if host.root == "/" else [f"root    {printable(host.root)}", *lines]


def _nothing_found(host: HostFacts) -> list[str]:
    """Return what was looked at in vain, for a person who expected a GPU."""
    lines = ["", "no AMD GPU found. Looked at:"]
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


def _print_gpus(console: "Console", gpus: Sequence[Gpu]) -> None:
    from rich.table import Table  # noqa: PLC0415  # only where a table is drawn
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("HIP", "amd-smi"):
        table.add_column(name, justify="right")
    for name in ("PCI address", "render node", "gfx", "VRAM", "NUMA", "owner and mode"):
        table.add_column(name, no_wrap=True)
    for gpu in gpus:
        table.add_row(*(Text(printable(cell)) for cell in _cells(gpu)))
    console.print(table)


def _cells(gpu: Gpu) -> tuple[str, ...]:
    if not gpu.permitted:
        hidden = (_UNKNOWN, f"KFD node {gpu.node}", _NONE, _NONE, _NONE, _NONE)
        return (_NONE, *hidden, "hidden by the device cgroup")
    address = gpu.pci_address or _UNKNOWN
    if gpu.partition is not None:
        address += f" partition {gpu.partition}"
    return (
        str(gpu.index),
        _UNKNOWN if gpu.amd_smi_index is None else str(gpu.amd_smi_index),
        address,
        _UNKNOWN if gpu.render_minor is None else f"renderD{gpu.render_minor}",
        (gpu.gfx or _UNKNOWN) + (" APU" if gpu.apu else ""),
        human_size(gpu.vram_bytes) if gpu.vram_bytes else _UNKNOWN,
        _UNKNOWN if gpu.numa_node is None else str(gpu.numa_node),
        _node(gpu.render_node),
    )


def _node(node: DeviceNode | None) -> str:
    if node is None:
        return "not there"
    return f"{node.uid}:{node.gid} {node.mode:04o}" + (" with an ACL" if node.acl else "")
