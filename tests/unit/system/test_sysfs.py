"""The right facts from the trees of whole and of half hidden hosts."""

import errno
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rocmrun.core.host import DeviceNode, Gpu, HostFacts, Link, NumaNode, PciGpu
from rocmrun.system.sysfs import read_file, read_host
from tests.hosts import (
    IGPU_AND_DGPU,
    MI210_X8,
    MI300A,
    MI308X_QPX,
    MIXED_ARCHITECTURES,
    STRIX_HALO,
    TEN_GPUS,
    FakeGpu,
    FakeNode,
    build_host,
    kfd_gpu_id,
    make_node,
    mi300x_partitions,
    refusing,
    topology_node,
    write,
    write_properties,
)


def column(gpus: Sequence[Gpu], name: str) -> list[object]:
    return [getattr(gpu, name) for gpu in gpus]


def test_a_gpu_is_read_whole(tmp_path: Path) -> None:
    """Topology, PCI device, node and holder of one GPU come together."""
    gpu = FakeGpu(
        address="0000:c1:00.0",
        minor=130,
        unique_id=0xABC,
        hive_id=0,
        simd_count=1216,
        num_xcc=8,
        numa=1,
        compute_partition="SPX",
        memory_partition="NPS1",
        node=FakeNode(mode=0o640, uid=0, gid=105),
    )
    root = build_host(tmp_path, [gpu], cpu_nodes=2, holders={4321: [0]})

    (found,) = read_host(root).gpus

    path = "/dev/dri/renderD130"
    assert found.render_node is not None
    assert (found.render_node.path, found.render_node.host_path) == (path, f"{root}{path}")
    assert found == Gpu(
        index=0,
        node=2,
        gfx="gfx942",
        gfx_source="kfd",
        name="ip discovery",
        device_id="0x74a1",
        vendor_id="0x1002",
        subsystem_id="0x1002:0x0c34",
        revision="0x00",
        pci_address="0000:c1:00.0",
        domain_known=True,
        compute_partition="SPX",
        memory_partition="NPS1",
        render_minor=130,
        render_node=found.render_node,
        unique_id="0000000000000abc",
        kfd_gpu_id=kfd_gpu_id(0),
        vram_bytes=192 * 1024**3,
        compute_units=304,
        simd_count=1216,
        num_xcc=8,
        cpu_node=1,
        numa_node=1,
        apu=False,
        amd_smi_index=0,
        links=(Link(to_node=1, kind="pcie", weight=20),),
        firmware=(("mec", "0x000000b1"), ("smc", "0x04557e00")),
        vbios="113-M3000100-102",
        link_width=16,
        link_width_max=16,
        link_speed="32.0 GT/s PCIe",
        link_speed_max="32.0 GT/s PCIe",
        holders=(4321,),
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes of other owners")
def test_owner_and_mode_are_those_of_the_node(tmp_path: Path) -> None:
    """Numbers as stat tells them, of kfd and render nodes apart."""
    gpu = FakeGpu(minor=128, node=FakeNode(mode=0o666, uid=7, gid=109))
    root = build_host(tmp_path, [gpu], kfd=FakeNode(mode=0o600, gid=44))

    host = read_host(root)

    assert host.kfd == DeviceNode(
        path="/dev/kfd", host_path=f"{root}/dev/kfd", mode=0o600, uid=0, gid=44, major=1, minor=3
    )
    (node,) = host.render_nodes
    assert (node.mode, node.uid, node.gid) == (0o666, 7, 109)
    assert node == host.gpus[0].render_node


def test_the_machine_around_is_read(tmp_path: Path) -> None:
    """Kernel, system, memory, processors and security modules."""
    host = read_host(build_host(tmp_path, STRIX_HALO, cpu_nodes=2))

    assert (host.root, host.hostname, host.kernel) == (
        str(tmp_path),
        "gpu-host",
        "6.8.0-60-generic",
    )
    assert (host.architecture, host.cmdline) == (
        "x86_64",
        "BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt",
    )
    assert (host.os_id, host.os_version, host.os_name) == ("ubuntu", "24.04", "Ubuntu 24.04.3 LTS")
    assert (host.cpu_count, host.memory_bytes) == (32, 64 * 1024**3)
    assert host.numa_nodes == (NumaNode(node=0, cpus="0-15"), NumaNode(node=1, cpus="16-31"))
    assert (host.numa_balancing, host.yama_ptrace_scope, host.cgroup_version) == (True, 1, 2)
    assert (host.selinux, host.apparmor, host.wsl, host.nvidia) == ("disabled", True, False, False)
    assert host.memlock_bytes is None
    assert host.problems == ()


@pytest.mark.parametrize(
    ("version", "expected"),
    [("6.16.6", ("6.16.6", "dkms")), (None, ("6.8.0-60-generic", "in-tree"))],
)
def test_the_driver_is_amds_or_the_kernels(
    tmp_path: Path, version: str | None, expected: tuple[str, str]
) -> None:
    """Only the packaged module has a version file; the kernel's goes by the kernel release."""
    host = read_host(build_host(tmp_path, STRIX_HALO, driver_version=version))

    assert (host.driver_version, host.driver_source) == expected


def test_other_settings_of_a_machine_are_told_apart(tmp_path: Path) -> None:
    """SELinux on, no AppArmor, cgroup v1, WSL, an NVIDIA driver."""
    build_host(tmp_path)
    write(tmp_path / "sys/fs/selinux/enforce", "1")
    write(tmp_path / "proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    write(tmp_path / "proc/driver/nvidia/version", "NVRM version: 580\n")
    shutil.rmtree(tmp_path / "sys/module/apparmor")
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").rename(tmp_path / "sys/fs/cgroup/memory")

    host = read_host(tmp_path)

    assert (host.selinux, host.apparmor, host.cgroup_version) == ("enforcing", False, 1)
    assert (host.wsl, host.nvidia, host.driver_version) == (True, True, None)


def test_what_was_not_copied_is_unknown(tmp_path: Path) -> None:
    """An empty directory is no host without SELinux: nothing is known of it."""
    host = read_host(tmp_path)

    # Containers start on this machine whatever the root, so its own limits are always told.
    assert replace(host, nofile_limit=None, nproc_limit=None) == HostFacts(root=str(tmp_path))


def test_this_machine_is_read_too() -> None:
    """The live root has the facts that no copy has."""
    host = read_host()

    assert host.kernel == os.uname().release
    assert host.memlock_bytes is not None
    assert host.memory_bytes


def test_nodes_are_in_numeric_order(tmp_path: Path) -> None:
    """Node 10 comes after node 2, though not as text."""
    host = read_host(build_host(tmp_path, TEN_GPUS, cpu_nodes=2))

    assert column(host.gpus, "node") == list(range(2, 12))
    assert column(host.gpus, "index") == list(range(10))
    assert column(host.gpus, "pci_address")[8:] == ["0000:30:00.0", "0000:34:00.0"]


def test_hip_and_amd_smi_orders_differ(tmp_path: Path) -> None:
    """KFD order is not PCI order; amd-smi sorts by address."""
    host = read_host(build_host(tmp_path, MI210_X8, cpu_nodes=2))

    assert column(host.gpus, "amd_smi_index") == [3, 2, 0, 1, 7, 6, 4, 5]
    assert column(host.gpus, "numa_node") == [0] * 4 + [1] * 4
    assert column(host.gpus, "xgmi_peers")[0] == (3, 4, 5)
    assert [link.kind for link in host.gpus[0].links].count("pcie") == 1 + 4


def test_apus_are_told_from_cards(tmp_path: Path) -> None:
    """MI300A has domains 0 to 3 and separate processor nodes; Strix Halo and Raphael are client APUs."""
    mi300a = read_host(build_host(tmp_path / "a", MI300A, cpu_nodes=4))
    strix = read_host(build_host(tmp_path / "b", STRIX_HALO))
    mixed = read_host(build_host(tmp_path / "c", IGPU_AND_DGPU))

    assert column(mi300a.gpus, "apu") == [True] * 4
    assert column(mi300a.gpus, "pci_address") == [f"000{n}:01:00.0" for n in range(4)]
    assert column(mi300a.gpus, "render_minor") == [128, 136, 144, 152]
    assert column(mi300a.gpus, "compute_units") == [228] * 4
    assert column(strix.gpus, "apu") == [True]
    assert column(strix.gpus, "unique_id") == [None]
    assert column(mixed.gpus, "apu") == [False, True]
    assert column(mixed.gpus, "render_minor") == [129, 128]


def test_architectures_may_be_mixed(tmp_path: Path) -> None:
    """Every GPU has its own target."""
    host = read_host(build_host(tmp_path, MIXED_ARCHITECTURES))

    assert column(host.gpus, "gfx") == ["gfx90a", "gfx1100", "gfx942"]


@pytest.mark.parametrize("separator", [".", "_"])
@pytest.mark.parametrize("pci", [True, False])
def test_partitions_of_a_gpu_share_its_address(
    tmp_path: Path, separator: str, *, pci: bool
) -> None:
    """63 of 64 partitions; the function bits are the partition, with and without the PCI devices."""
    gpus = mi300x_partitions(last=7)
    root = build_host(tmp_path, gpus, cpu_nodes=2, links=False, xcp_separator=separator, pci=pci)

    found = read_host(root).gpus

    assert len(found) == 63
    assert [(gpu.pci_address, gpu.partition) for gpu in found] == [
        (gpu.address, gpu.partition) for gpu in gpus
    ]
    assert column(found, "amd_smi_index") == list(range(63))
    assert {gpu.compute_partition for gpu in found} == ({"CPX"} if pci else {None})
    assert {gpu.vram_bytes for gpu in found} == {24 * 1024**3}


def test_minors_need_not_be_contiguous(tmp_path: Path) -> None:
    """Four used, four skipped, in PCI domain 1."""
    host = read_host(build_host(tmp_path, MI308X_QPX))

    assert column(host.gpus, "render_minor") == [128, 129, 130, 131, 136, 137, 138, 139]
    assert column(host.gpus, "partition") == [0, 1, 2, 3, 0, 1, 2, 3]
    assert {gpu.pci_address for gpu in host.gpus} == {"0001:0a:00.0", "0001:2b:00.0"}


@pytest.mark.parametrize("pci", [True, False])
def test_a_lone_partition_keeps_its_number_where_the_device_tells(
    tmp_path: Path, *, pci: bool
) -> None:
    """With the siblings hidden, only the PCI device says that 05:00.3 is a partition of 05:00.0."""
    partitions = mi300x_partitions(1)
    root = build_host(tmp_path, partitions, links=False, pci=pci)
    hidden = [f"nodes/{1 + partition}/" for partition in range(8) if partition != 3]

    host = read_host(root, read=refusing(*hidden))

    lone = host.gpus[3]
    expected = ("0000:05:00.0", 3) if pci else ("0000:05:00.3", None)
    assert (lone.pci_address, lone.partition) == expected


def test_two_functions_with_their_own_ids_are_two_gpus(tmp_path: Path) -> None:
    """Virtual functions share bus and device too, but are no partitions."""
    gpus = [
        FakeGpu(address="0000:05:00.0", unique_id=1, minor=128),
        FakeGpu(address="0000:05:00.1", unique_id=2, minor=129),
    ]

    host = read_host(build_host(tmp_path, gpus))

    assert column(host.gpus, "pci_address") == ["0000:05:00.0", "0000:05:00.1"]
    assert column(host.gpus, "partition") == [None, None]


def test_repeated_addresses_are_reported(tmp_path: Path) -> None:
    """Nothing is dropped silently."""
    gpus = [FakeGpu(minor=128, unique_id=1), FakeGpu(minor=129, unique_id=2)]

    host = read_host(build_host(tmp_path, gpus, pci=False))

    assert len(host.gpus) == 2
    assert host.problems == (
        "KFD nodes 1, 2 claim one PCI address, 0000:05:00.0, and are no partitions of it",
    )


def test_a_hidden_node_is_present_and_not_permitted(tmp_path: Path) -> None:
    """EPERM on properties is the device cgroup's answer for a GPU whose render node was not passed."""
    root = build_host(tmp_path, MI210_X8[:3])

    host = read_host(root, read=refusing("nodes/2/"))

    assert column(host.gpus, "permitted") == [True, False, True]
    assert host.gpus[1] == Gpu(index=1, node=2, permitted=False)
    assert column(host.gpus, "amd_smi_index") == [1, None, 0]
    assert host.problems == ("KFD node 2: hidden from this process by its device cgroup (EPERM)",)


def test_unreadable_is_not_hidden(tmp_path: Path) -> None:
    """EACCES is a problem of its own; gpu_id still says that there is a GPU."""
    root = build_host(tmp_path, MI210_X8[:1])

    host = read_host(root, read=refusing("nodes/1/properties", number=errno.EACCES))

    (gpu,) = host.gpus
    assert (gpu.permitted, gpu.gfx, gpu.pci_address) == (True, None, None)
    assert host.problems == (
        "cannot read /sys/class/kfd/kfd/topology/nodes/1/properties: Permission denied",
    )


def test_links_that_are_hidden_do_not_hide_the_gpu(tmp_path: Path) -> None:
    """The CPU node of a GPU comes from the CPU's links when its own cannot be read."""
    root = build_host(tmp_path, MI210_X8[:2])
    write_properties(topology_node(root, 0) / "io_links/0/properties", type=2, node_to=1, weight=20)

    host = read_host(root, read=refusing("nodes/1/io_links"))

    assert column(host.gpus, "permitted") == [True, True]
    assert column(host.gpus, "cpu_node") == [0, 0]
    assert column(host.gpus, "xgmi_peers") == [(), (1,)]


def test_numa_follows_kfd_when_pci_does_not_know(tmp_path: Path) -> None:
    """KFD numbers the NUMA nodes that have processors; memory-only ones are skipped."""
    root = build_host(tmp_path, [FakeGpu(numa=1)], cpu_nodes=2)
    write(root / "sys/bus/pci/devices/0000:05:00.0/numa_node", "-1\n")
    nodes = root / "sys/devices/system/node"
    (nodes / "node1").rename(nodes / "node2")
    write(nodes / "node1/cpulist", "\n")

    (gpu,) = read_host(root).gpus

    assert (gpu.cpu_node, gpu.numa_node) == (1, 2)


def test_no_render_minor_is_no_render_node(tmp_path: Path) -> None:
    """0 means that the kernel names none: never renderD0, never 128 and the index."""
    root = build_host(
        tmp_path, [FakeGpu(minor=0), FakeGpu(address="0000:27:00.0", minor=129, node=None)]
    )
    make_node(root / "dev/dri/renderD0", FakeNode())
    make_node(root / "dev/dri/renderD128", FakeNode())

    host = read_host(root)

    assert column(host.gpus, "render_minor") == [None, 129]
    assert column(host.gpus, "render_node") == [None, None]
    assert [node.path for node in host.render_nodes] == ["/dev/dri/renderD0", "/dev/dri/renderD128"]


def test_idle_processes_hold_nothing(tmp_path: Path) -> None:
    """A holder has memory or a queue on the GPU; opening KFD alone is neither."""
    root = build_host(tmp_path, MI210_X8[:3], holders={77: [0], 78: []})
    write(root / "sys/class/kfd/kfd/proc/90/queues/3/gpuid", f"{kfd_gpu_id(2)}\n")

    assert column(read_host(root).gpus, "holders") == [(77,), (), (90,)]


def test_cards_without_kfd_are_still_seen(tmp_path: Path) -> None:
    """A card bound to another driver is on the bus, but no GPU of this host."""
    root = build_host(tmp_path, [FakeGpu(driver="vfio-pci", minor=0)])
    shutil.rmtree(root / "sys/class/kfd")

    host = read_host(root)

    assert (host.gpus, host.kfd_topology) == ((), False)
    assert host.pci_gpus == (PciGpu(address="0000:05:00.0", device_id="0x74a1", driver="vfio-pci"),)


@pytest.mark.parametrize("gpus", [MI210_X8, mi300x_partitions(1, 4)], ids=["mi210", "cpx"])
def test_a_tree_copied_without_symlinks_reads_alike(
    tmp_path: Path, gpus: Sequence[FakeGpu]
) -> None:
    """`cp -rL` of /sys and /dev: directories where symlinks were."""
    root = build_host(tmp_path / "host", gpus, cpu_nodes=2)
    copy = tmp_path / "copy"
    for name in ("class", "bus"):
        shutil.copytree(root / "sys" / name, copy / "sys" / name, ignore=ignore_way_back)

    original, copied = read_host(root), read_host(copy)

    for name in ("pci_address", "partition", "vbios", "firmware", "amd_smi_index", "subsystem_id"):
        assert column(copied.gpus, name) == column(original.gpus, name)
    assert copied.pci_gpus == original.pci_gpus


def test_devices_are_found_without_the_bus(tmp_path: Path) -> None:
    """The directory behind the render node is the PCI device as well."""
    root = build_host(tmp_path, MI210_X8[:2])
    shutil.rmtree(root / "sys/bus")

    host = read_host(root)

    assert column(host.gpus, "vbios") == ["113-M3000100-102"] * 2


def test_a_lone_partition_is_told_by_its_copied_device(tmp_path: Path) -> None:
    """Without the bus, the uevent of the directory behind the render node is what is left."""
    write_properties(
        topology_node(tmp_path, 1) / "properties",
        simd_count=152,
        location_id=0x0503,
        drm_render_minor=131,
    )
    device = tmp_path / "sys/class/drm/renderD131/device"
    write(device / "uevent", "DRIVER=amdgpu_xcp\nMODALIAS=platform:amdgpu_xcp_3\n")

    (gpu,) = read_host(tmp_path).gpus

    assert (gpu.pci_address, gpu.partition) == ("0000:05:00.0", 3)


def test_cards_are_found_without_the_bus(tmp_path: Path) -> None:
    """A tree with /sys/class/drm alone."""
    uevent = "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:687F\nPCI_SLOT_NAME=0000:09:00.0\n"
    write(tmp_path / "sys/class/drm/card0/device/uevent", uevent)

    assert read_host(tmp_path).pci_gpus == (
        PciGpu(address="0000:09:00.0", device_id="0x687f", driver="amdgpu"),
    )


def ignore_way_back(directory: str, _names: list[str]) -> list[str]:
    """Leave out <device>/drm, through which the copy would run in circles."""
    return [] if directory.endswith("class") else ["drm"]


def test_no_file_is_read_twice(tmp_path: Path) -> None:
    """One pass: what changes meanwhile cannot contradict itself."""
    root = build_host(tmp_path, mi300x_partitions(2), cpu_nodes=2, holders={5: [0]})
    reads: Counter[str] = Counter()

    def read(path: str) -> bytes:
        reads[path] += 1
        return read_file(path)

    read_host(root, read=read)

    assert reads[f"{root}/sys/class/kfd/kfd/topology/nodes/2/properties"] == 1
    assert [path for path, count in reads.items() if count > 1] == []


def test_device_globs_are_expanded_below_the_root(tmp_path: Path) -> None:
    """Sorted, without directories, with the path that a container would see."""
    root = build_host(tmp_path)
    for name in ("uverbs1", "uverbs0", "rdma_cm"):
        make_node(root / f"dev/infiniband/{name}", FakeNode(mode=0o666))
    (root / "dev/infiniband/uverbs.d").mkdir()

    host = read_host(root, device_globs=["/dev/infiniband/uverbs*", "/dev/none*"])

    assert [node.path for node in host.devices] == [
        "/dev/infiniband/uverbs0",
        "/dev/infiniband/uverbs1",
    ]
    assert host.devices[0].host_path == f"{root}/dev/infiniband/uverbs0"


def test_a_fifo_in_the_tree_does_not_stop_the_reading(tmp_path: Path) -> None:
    """Opening one would wait for a writer."""
    root = build_host(tmp_path, STRIX_HALO)
    (root / "proc/meminfo").unlink()
    os.mkfifo(root / "proc/meminfo")

    assert read_host(root).memory_bytes is None
