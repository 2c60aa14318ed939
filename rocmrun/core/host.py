"""What was seen on this machine: facts without judgement.

Every value that could not be read is None (or an entry in `problems`), never a guess.
"""

from dataclasses import dataclass, field
from typing import Literal

SCHEMA_VERSION = 1

_OWNER_READ_WRITE, _GROUP_READ_WRITE, _OTHERS_READ_WRITE = 0o600, 0o060, 0o006


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceNode:
    """A device node as stat(2) told it.

    Attributes:
        path: Path inside a container, and on an ordinary host ("/dev/kfd").
        host_path: Path on the host; differs from *path* only under another host root.
        mode: Permission bits, 0o000 to 0o777.
        uid: Numeric owner on this host.
        gid: Numeric group on this host.
        major: Major number, None when the file is no device.
        minor: Minor number, None when the file is no device.
        block: Whether it is a block device: a disk, or what looks like one.
        acl: Whether a POSIX ACL adds rights that mode and owner do not show.
    """

    path: str
    host_path: str
    mode: int
    uid: int
    gid: int
    major: int | None = None
    minor: int | None = None
    block: bool = False
    acl: bool = False

    @property
    def world_writable(self) -> bool:
        """Whether everybody may open the node read-write."""
        return self.mode & _OTHERS_READ_WRITE == _OTHERS_READ_WRITE

    @property
    def owner_writable(self) -> bool:
        """Whether the owning user may open the node read-write."""
        return self.mode & _OWNER_READ_WRITE == _OWNER_READ_WRITE

    @property
    def group_writable(self) -> bool:
        """Whether the owning group may open the node read-write."""
        return self.mode & _GROUP_READ_WRITE == _GROUP_READ_WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A KFD io_link or p2p_link to another KFD node.

    Attributes:
        to_node: KFD node number at the other end.
        kind: "xgmi", "pcie", or the number that the kernel printed.
        weight: The kernel's weight, None when absent.
        peer_to_peer: Whether it came from p2p_links rather than io_links.
    """

    to_node: int
    kind: str
    weight: int | None = None
    peer_to_peer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU node of the KFD topology (in partition mode, one compute partition).

    Attributes:
        index: Position among KFD GPU nodes: what HIP counts when nothing is hidden.
        node: KFD node number.
        permitted: False when the device cgroup hides the node's properties (EPERM).
        gfx: Target such as "gfx942"; None when unknown.
        gfx_source: "kfd", or "table" when an old kernel prints none and the device id decides.
        name: KFD's own word ("ip discovery", "vega20"): never a product name.
        subsystem_id: "0x1002:0x0c34", vendor and device of the board.
        pci_address: "0000:63:00.0" in lower case; None when unknown.
        domain_known: Whether the kernel printed the PCI domain; else 0000 is an assumption.
        partition: Compute partition number on its GPU; None when not partitioned.
        render_minor: DRM render minor; None when the kernel names none.
        render_node: The node of that minor; None when absent.
        card: Number of the GPU's card node, /dev/dri/cardN; None when the kernel names none.
        unique_id: 16 hex digits; None when the GPU has none.
        vram_bytes: Device memory in bytes; on an APU the carve-out.
        kfd_gpu_id: KFD's hash of the GPU, what amd-smi calls kfd_id; not an index.
        cpu_node: KFD node of the processor that the GPU hangs off; None when unknown.
        numa_node: NUMA node number; None when unknown.
        apu: Whether processor and GPU share a package and memory; None when the target is not known.
        amd_smi_index: Position by PCI address and partition, as amd-smi counts; None when unknown.
        firmware: (block, version) pairs such as ("mec", "0x000000b1"), sorted.
        vbios: The video BIOS version as the driver prints it.
        link_width: PCIe lanes now, and at most.
        link_speed: PCIe speed in GT/s now, and at most, as the kernel prints it.
        holders: Process ids that KFD lists with memory or queues on the GPU.
        skipped_lines: Lines of the properties file that are no "key number", cut short.
    """

    index: int
    node: int
    permitted: bool = True
    gfx: str | None = None
    gfx_source: Literal["kfd", "table"] | None = None
    name: str | None = None
    device_id: str | None = None
    vendor_id: str | None = None
    subsystem_id: str | None = None
    revision: str | None = None
    pci_address: str | None = None
    domain_known: bool = False
    partition: int | None = None
    compute_partition: str | None = None
    memory_partition: str | None = None
    render_minor: int | None = None
    render_node: DeviceNode | None = None
    card: int | None = None
    unique_id: str | None = None
    hive_id: str | None = None
    kfd_gpu_id: int | None = None
    vram_bytes: int | None = None
    compute_units: int | None = None
    simd_count: int | None = None
    num_xcc: int | None = None
    cpu_node: int | None = None
    numa_node: int | None = None
    apu: bool | None = None
    amd_smi_index: int | None = None
    xgmi_peers: tuple[int, ...] = ()
    links: tuple[Link, ...] = ()
    firmware: tuple[tuple[str, str], ...] = ()
    vbios: str | None = None
    link_width: int | None = None
    link_width_max: int | None = None
    link_speed: str | None = None
    link_speed_max: str | None = None
    holders: tuple[int, ...] = ()
    skipped_lines: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """A short name for messages: index, gfx and PCI address where known."""
        partition = "" if self.partition is None else f" partition {self.partition}"
        return f"GPU {self.index} ({self.gfx or 'gfx unknown'}, {self.pci_address or 'no PCI address'}{partition})"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """A NUMA node with its processors, in the kernel's list form ("0-15,32-47")."""

    node: int
    cpus: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PciGpu:
    """An AMD display or compute device on the PCI bus, whether KFD knows it or not.

    Attributes:
        driver: What is bound to it: "amdgpu", "vfio-pci", "gim", …; None is nothing.
    """

    address: str
    device_id: str
    driver: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """One reading of a host.

    Attributes:
        root: The directory that was read in place of "/".
        memory_bytes: MemTotal in bytes.
        driver: amdgpu's version, and whether it is the kernel's own ("in-tree") or a module of
            AMD's packages ("dkms").
        kfd: /dev/kfd, None when absent.
        kfd_topology: Whether the kernel shows a KFD topology at all.
        gpus: In KFD node order.
        pci_gpus: Every AMD display or compute device on the PCI bus, sorted by address.
        devices: Nodes matched by the profile's own device globs, sorted by path.
        nvidia: Whether an NVIDIA driver is loaded.
        memlock_bytes: The caller's hard RLIMIT_MEMLOCK; -1 is unlimited, None unknown (another root).
        nofile_limit: Highest RLIMIT_NOFILE that a process here can be given; None where the caller's
            own limit does not bind the engine (it can raise limits) or is unknown.
        nproc_limit: Highest RLIMIT_NPROC that means anything here: how many process ids there are, or less
            where a lower limit binds even an engine.
        problems: What could not be read, one sentence each.
    """

    schema_version: int = SCHEMA_VERSION
    root: str = "/"
    hostname: str | None = None
    kernel: str | None = None
    architecture: str | None = None
    os_id: str | None = None
    os_version: str | None = None
    os_name: str | None = None
    cmdline: str | None = None
    cpu_count: int | None = None
    memory_bytes: int | None = None
    numa_nodes: tuple[NumaNode, ...] = ()
    numa_balancing: bool | None = None
    driver_version: str | None = None
    driver_source: Literal["in-tree", "dkms"] | None = None
    nvidia: bool | None = None
    kfd: DeviceNode | None = None
    kfd_topology: bool = False
    gpus: tuple[Gpu, ...] = ()
    pci_gpus: tuple[PciGpu, ...] = ()
    card_nodes: tuple[DeviceNode, ...] = ()
    render_nodes: tuple[DeviceNode, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    cgroup_version: int | None = None
    selinux: Literal["enforcing", "permissive", "disabled"] | None = None
    apparmor: bool | None = None
    yama_ptrace_scope: int | None = None
    memlock_bytes: int | None = None
    nofile_limit: int | None = None
    nproc_limit: int | None = None
    wsl: bool | None = None
    problems: tuple[str, ...] = field(default=())
