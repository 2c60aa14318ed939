"""Host trees for tests: /sys, /dev, /proc and /etc of machines with AMD GPUs, as the kernel would show them.

    root = build_host(tmp_path, MI300A)
    host = read_host(root)

Values follow what real machines print; ids are made up. As root, device nodes are null devices
with the asked owner and mode; otherwise plain files of the caller.
"""

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocmrun.system.sysfs import ReadBytes, read_file

GIB = 1024**3
NULL_DEVICE = os.makedev(1, 3)


@dataclass(frozen=True, kw_only=True)
class FakeNode:
    """Owner and mode of a device node."""

    mode: int = 0o660
    uid: int = 0
    gid: int = 992


@dataclass(frozen=True, kw_only=True)
class FakeGpu:
    """One GPU node of the topology; one partition of a GPU where *partition* is a number.

    *vram* 0 leaves out mem_banks, *minor* 0 the render node, *node* None only /dev/dri's.
    """

    gfx_version: int = 90402
    device_id: int = 0x74A1
    address: str = "0000:05:00.0"
    minor: int = 128
    unique_id: int = 0
    hive_id: int = 0
    vram: int = 192 * GIB
    simd_count: int = 1216
    simd_per_cu: int = 4
    num_xcc: int = 1
    cpu_cores: int = 0
    numa: int = 0
    partition: int | None = None
    compute_partition: str | None = None
    memory_partition: str | None = None
    driver: str = "amdgpu"
    node: FakeNode | None = FakeNode()


def build_host(  # one keyword for each thing that a test may want different
    root: Path,
    gpus: Sequence[FakeGpu] = (),
    *,
    cpu_nodes: int = 1,
    kfd: FakeNode | None = FakeNode(),
    xcp_separator: str = ".",
    links: bool = True,
    pci: bool = True,
    driver_version: str | None = None,
    holders: Mapping[int, Sequence[int]] | None = None,
) -> Path:
    """Write a host's files below *root* and return it.

    Args:
        xcp_separator: "." or "_": both spellings of amdgpu_xcp devices are in use.
        links: Whether to write io_links and p2p_links (64 partitions have 4000).
        pci: Whether to write /sys/bus/pci and /sys/class/drm; without, only the topology is there.
        driver_version: Given, the driver comes from AMD's packages; else with the kernel.
        holders: Process id → positions in *gpus* of the GPUs on which it has memory.
    """
    _write_machine(root, cpu_nodes=cpu_nodes, driver_version=driver_version, has_gpu=bool(gpus))
    for number in range(cpu_nodes):
        _write_cpu_node(root, number)
    for index, gpu in enumerate(gpus):
        _write_gpu_node(root, cpu_nodes + index, index, gpu)
        if links:
            _write_links(root, cpu_nodes, index, gpus)
        if pci:
            _write_pci_device(root, index, gpu, xcp_separator)
        if gpu.node and gpu.minor:
            make_node(root / f"dev/dri/renderD{gpu.minor}", gpu.node)
    if kfd:
        make_node(root / "dev/kfd", kfd)
    for pid, held in (holders or {}).items():
        for index in range(len(gpus)):
            size = GIB if index in held else 0
            write(root / f"sys/class/kfd/kfd/proc/{pid}/vram_{kfd_gpu_id(index)}", f"{size}\n")
    return root


def kfd_gpu_id(index: int) -> int:
    """Return the KFD hash of the GPU at *index*: some number that is no index."""
    return 20001 + 7 * index


def write(path: Path, text: str) -> None:
    """Write a file and the directories on the way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_properties(path: Path, **values: int) -> None:
    """Write "key number" lines, as KFD does."""
    write(path, "".join(f"{key} {value}\n" for key, value in values.items()))


def make_node(path: Path, node: FakeNode) -> None:
    """Make a stand-in for a device node: a null device as root, else a plain file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        os.mknod(path, stat.S_IFCHR | node.mode, NULL_DEVICE)
        os.chown(path, node.uid, node.gid)
    else:
        path.touch()
    path.chmod(node.mode)


def refusing(*parts: str, number: int = errno.EPERM) -> ReadBytes:
    """Return a reader that fails for every path with one of *parts* in it, as a device cgroup does."""

    def read(path: str) -> bytes:
        if any(part in path for part in parts):
            raise OSError(number, os.strerror(number), path)
        return read_file(path)

    return read


def topology_node(root: Path, number: int) -> Path:
    """Return the directory of a KFD node."""
    return root / f"sys/class/kfd/kfd/topology/nodes/{number}"


def _write_machine(
    root: Path, *, cpu_nodes: int, driver_version: str | None, has_gpu: bool
) -> None:
    write(
        root / "etc/os-release", 'ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n'
    )
    write(root / "proc/meminfo", f"MemTotal:       {64 * 1024 * 1024} kB\nMemFree: 1 kB\n")
    write(root / "proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt\n")
    write(root / "proc/sys/kernel/osrelease", "6.8.0-60-generic\n")
    write(root / "proc/sys/kernel/hostname", "gpu-host\n")
    write(root / "proc/sys/kernel/arch", "x86_64\n")
    write(root / "proc/sys/kernel/numa_balancing", "1\n")
    write(root / "proc/sys/kernel/yama/ptrace_scope", "1\n")
    write(root / "sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory pids\n")
    write(root / "sys/module/apparmor/parameters/enabled", "Y\n")
    write(root / "sys/devices/system/cpu/online", f"0-{16 * cpu_nodes - 1}\n")
    for node in range(cpu_nodes):
        cpus = f"{16 * node}-{16 * node + 15}\n"
        write(root / f"sys/devices/system/node/node{node}/cpulist", cpus)
    if has_gpu:
        (root / "sys/module/amdgpu").mkdir(parents=True, exist_ok=True)
        if driver_version:
            write(root / "sys/module/amdgpu/version", f"{driver_version}\n")


def _write_cpu_node(root: Path, number: int) -> None:
    node = topology_node(root, number)
    write_properties(
        node / "properties", cpu_cores_count=16, simd_count=0, drm_render_minor=0, location_id=0
    )
    write(node / "gpu_id", "0\n")
    write(node / "name", "\n")


def _write_gpu_node(root: Path, number: int, index: int, gpu: FakeGpu) -> None:
    node = topology_node(root, number)
    domain, bus, rest = gpu.address.split(":")
    device, function = rest.split(".")
    location = int(bus, 16) << 8 | int(device, 16) << 3 | int(function)
    write_properties(
        node / "properties",
        cpu_cores_count=gpu.cpu_cores,
        simd_count=gpu.simd_count,
        mem_banks_count=1 if gpu.vram else 0,
        simd_per_cu=gpu.simd_per_cu,
        gfx_target_version=gpu.gfx_version,
        vendor_id=0x1002,
        device_id=gpu.device_id,
        location_id=location | (gpu.partition or 0),
        domain=int(domain, 16),
        drm_render_minor=gpu.minor,
        hive_id=gpu.hive_id,
        fw_version=177,
        sdma_fw_version=24,
        unique_id=gpu.unique_id,
        num_xcc=gpu.num_xcc,
    )
    write(node / "gpu_id", f"{kfd_gpu_id(index)}\n")
    write(node / "name", "ip discovery\n")
    if gpu.vram:
        write_properties(
            node / "mem_banks/0/properties",
            heap_type=1,
            size_in_bytes=gpu.vram,
            flags=0,
            width=8192,
        )


def _write_links(root: Path, cpu_nodes: int, index: int, gpus: Sequence[FakeGpu]) -> None:
    gpu, node = gpus[index], topology_node(root, cpu_nodes + index)
    cpu = min(gpu.numa, cpu_nodes - 1)
    links = [(cpu, 2, 20)] if cpu_nodes else []
    peers: list[tuple[int, int, int]] = []
    for other, peer in enumerate(gpus):
        if other != index and peer.hive_id == gpu.hive_id != 0:
            links.append((cpu_nodes + other, 11, 15))
        elif other != index:
            peers.append((cpu_nodes + other, 2, 40))
    for folder, targets in (("io_links", links), ("p2p_links", peers)):
        for number, (to_node, kind, weight) in enumerate(targets):
            write_properties(
                node / f"{folder}/{number}/properties",
                type=kind,
                version_major=0,
                node_from=cpu_nodes + index,
                node_to=to_node,
                weight=weight,
                max_bandwidth=64000,
                flags=1,
            )


def _write_pci_device(root: Path, index: int, gpu: FakeGpu, xcp_separator: str) -> None:
    """Write the device behind a render node: a PCI device, or amdgpu_xcp for all partitions but the first."""
    if gpu.partition:
        place = f"devices/platform/amdgpu_xcp{xcp_separator}{index}"
        write(root / f"sys/{place}/uevent", "MODALIAS=platform:amdgpu_xcp\n")
    else:
        place = f"devices/pci{gpu.address[:7]}/{gpu.address}"
        _write_pci_files(root / "sys" / place, gpu)
        _link(root / f"sys/bus/pci/devices/{gpu.address}", f"../../../{place}")
    if gpu.minor:
        drm = root / f"sys/{place}/drm/renderD{gpu.minor}"
        drm.mkdir(parents=True, exist_ok=True)
        write(drm / "dev", f"226:{gpu.minor}\n")
        _link(drm / "device", f"../../../{Path(place).name}")
        _link(root / f"sys/class/drm/renderD{gpu.minor}", f"../../{place}/drm/renderD{gpu.minor}")


def _write_pci_files(device: Path, gpu: FakeGpu) -> None:
    files = {
        "vendor": "0x1002",
        "device": f"0x{gpu.device_id:04x}",
        "subsystem_vendor": "0x1002",
        "subsystem_device": "0x0c34",
        "revision": "0x00",
        "numa_node": str(gpu.numa),
        "current_link_width": "16",
        "max_link_width": "16",
        "current_link_speed": "32.0 GT/s PCIe",
        "max_link_speed": "32.0 GT/s PCIe",
        "vbios_version": "113-M3000100-102",
        "unique_id": f"{gpu.unique_id:016x}",
        "mem_info_vram_total": str(gpu.vram),
        "current_compute_partition": gpu.compute_partition,
        "current_memory_partition": gpu.memory_partition,
        "fw_version/mec_fw_version": "0x000000b1",
        "fw_version/smc_fw_version": "0x04557e00",
        "uevent": f"DRIVER={gpu.driver}\nPCI_CLASS=38000\nPCI_ID=1002:{gpu.device_id:04X}\n"
        f"PCI_SLOT_NAME={gpu.address}",
    }
    for name, text in files.items():
        if text:
            write(device / name, f"{text}\n")


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def mi300x_partitions(
    gpus: int = 8, each: int = 8, *, last: int | None = None
) -> tuple[FakeGpu, ...]:
    """Return MI300X in CPX; *last* partitions on the last GPU, where DRM ran out of minors."""
    buses = (0x05, 0x27, 0x47, 0x65, 0x85, 0xA7, 0xC7, 0xE5)[:gpus]
    places = [(bus, partition) for bus in buses for partition in range(each)]
    if last is not None:
        places = places[: len(places) - each + last]
    return tuple(
        FakeGpu(
            address=f"0000:{bus:02x}:00.0",
            partition=partition,
            compute_partition="CPX",
            memory_partition="NPS4",
            minor=128 + number,
            unique_id=0xA100 + bus,
            hive_id=0xB1,
            vram=24 * GIB,
            simd_count=152,
            numa=0 if bus < buses[len(buses) // 2] else 1,
        )
        for number, (bus, partition) in enumerate(places)
    )


def _mi210(bus: int, minor: int, numa: int) -> FakeGpu:
    return FakeGpu(
        gfx_version=90010,
        device_id=0x740F,
        address=f"0000:{bus:02x}:00.0",
        minor=minor,
        unique_id=0xC0DE00 + bus,
        hive_id=0xD0 + numa,
        vram=64 * GIB,
        simd_count=416,
        numa=numa,
    )


RX_7900_XTX = FakeGpu(
    gfx_version=110000,
    device_id=0x744C,
    address="0000:03:00.0",
    minor=129,
    vram=24 * GIB,
    simd_count=192,
    simd_per_cu=2,
)
RAPHAEL_IGPU = FakeGpu(
    gfx_version=100306,
    device_id=0x164E,
    address="0000:7c:00.0",
    minor=128,
    vram=GIB // 2,
    simd_count=4,
    simd_per_cu=2,
)

# A box whose KFD order (63, 43, 03, 26, e3, …) is not PCI order, with two hives of four.
MI210_X8 = tuple(
    _mi210(bus, 128 + n, n // 4)
    for n, bus in enumerate((0x63, 0x43, 0x03, 0x26, 0xE3, 0xC3, 0x83, 0xA3))
)
# Four sockets, one PCI domain each, processors on nodes of their own (build with cpu_nodes=4).
MI300A = tuple(
    FakeGpu(
        device_id=0x74A0,
        address=f"{socket:04x}:01:00.0",
        minor=128 + 8 * socket,
        unique_id=0xE0 + socket,
        hive_id=0xE1,
        vram=128 * GIB,
        simd_count=912,
        num_xcc=6,
        numa=socket,
        compute_partition="SPX",
        memory_partition="NPS1",
    )
    for socket in range(4)
)
STRIX_HALO = (
    FakeGpu(
        gfx_version=110501,
        device_id=0x1586,
        address="0000:c5:00.0",
        vram=GIB // 2,
        simd_count=80,
        simd_per_cu=2,
    ),
)
# The iGPU took renderD128, the card comes first in KFD order.
IGPU_AND_DGPU = (RX_7900_XTX, RAPHAEL_IGPU)
MIXED_ARCHITECTURES = (
    _mi210(0x63, 128, 0),
    replace(RX_7900_XTX, address="0000:43:00.0"),
    FakeGpu(address="0000:26:00.0", minor=130, unique_id=0xF1, num_xcc=8),
)
# Ten GPUs and two processors: node 10 and 11 sort before 2 as text.
TEN_GPUS = tuple(_mi210(0x10 + 4 * n, 128 + n, n // 5) for n in range(10))
# Four partitions used, four minors skipped; PCI domain 1.
MI308X_QPX = tuple(
    FakeGpu(
        device_id=0x74A2,
        address=f"0001:{bus:02x}:00.0",
        partition=partition,
        compute_partition="QPX",
        minor=128 + 8 * gpu + partition,
        unique_id=0xF800 + bus,
        simd_count=80,
        vram=48 * GIB,
    )
    for gpu, bus in enumerate((0x0A, 0x2B))
    for partition in range(4)
)
