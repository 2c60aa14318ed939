"""KFD nodes and PCI devices become GPUs with the right address, partition and order."""

from rocmrun.core.host import Gpu, Link, NumaNode
from rocmrun.core.kfd import KfdNode
from rocmrun.core.pci import PciFacts
from rocmrun.core.topology import Readings, make_gpus


def node(number: int, *, location: int | None = 0x0500, **values: int) -> KfdNode:
    """Return a GPU node."""
    place = {} if location is None else {"location_id": location, "domain": 0}
    return KfdNode(number=number, values={"simd_count": 152, **place, **values})


def places(gpus: tuple[Gpu, ...]) -> list[tuple[str | None, int | None]]:
    return [(gpu.pci_address, gpu.partition) for gpu in gpus]


def test_a_platform_device_behind_the_render_node_is_a_partition() -> None:
    """An amdgpu_xcp device says so, also where no mode file does."""
    readings = Readings(
        nodes=[node(1, location=0x0503, drm_render_minor=131)], partition_minors={131}
    )

    assert places(make_gpus(readings)) == [("0000:05:00.0", 3)]


def test_a_function_that_is_not_on_the_bus_is_a_partition() -> None:
    """Function 0 is there, function 3 is not."""
    readings = Readings(nodes=[node(1, location=0x0503)], pci={"0000:05:00.0": PciFacts()})

    assert places(make_gpus(readings)) == [("0000:05:00.0", 3)]


def test_a_function_that_is_on_the_bus_is_a_gpu_of_its_own() -> None:
    """Such as a virtual function."""
    pci = {"0000:05:00.0": PciFacts(), "0000:05:00.3": PciFacts(vbios="x")}

    (gpu,) = make_gpus(Readings(nodes=[node(1, location=0x0503)], pci=pci))

    assert (gpu.pci_address, gpu.partition, gpu.vbios) == ("0000:05:00.3", None, "x")


def test_top_bits_are_partition_numbers_too() -> None:
    """As kernels print them that do not touch the function."""
    nodes = [node(1, location=0x0500), node(2, location=0x1000_0500)]

    assert places(make_gpus(Readings(nodes=nodes))) == [("0000:05:00.0", 0), ("0000:05:00.0", 1)]


def test_a_whole_gpu_in_spx_is_no_partition() -> None:
    """The mode alone does not make one."""
    pci = {"0000:05:00.0": PciFacts(compute_partition="SPX")}

    assert places(make_gpus(Readings(nodes=[node(1)], pci=pci))) == [("0000:05:00.0", None)]


def test_the_driver_knows_an_address_that_kfd_does_not() -> None:
    """No location_id: the device behind the render node has one."""
    readings = Readings(
        nodes=[node(1, location=None, drm_render_minor=177), node(2, location=None)],
        drm_addresses={177: "0001:0a:00.0"},
    )

    gpus = make_gpus(readings)

    assert places(gpus) == [("0001:0a:00.0", None), (None, None)]
    # One address unknown: amd-smi's order is unknown as a whole.
    assert [gpu.amd_smi_index for gpu in gpus] == [None, None]


def test_memory_of_the_device_is_not_a_partitions() -> None:
    """Without mem_banks, only a whole GPU takes the device's figure."""
    whole = {"0000:05:00.0": PciFacts(vram_bytes=192)}
    cpx = {"0000:05:00.0": PciFacts(vram_bytes=192, compute_partition="CPX")}

    (gpu,) = make_gpus(Readings(nodes=[node(1)], pci=whole))
    (partition,) = make_gpus(Readings(nodes=[node(1)], pci=cpx))

    assert (gpu.vram_bytes, partition.vram_bytes) == (192, None)


def test_kfds_own_firmware_versions_stand_in() -> None:
    """Written as the driver's files are."""
    (gpu,) = make_gpus(Readings(nodes=[node(1, fw_version=177, sdma_fw_version=24)]))

    assert gpu.firmware == (("mec", "0x000000b1"), ("sdma", "0x00000018"))


def test_amd_smi_counts_by_domain_first() -> None:
    """Numbers, not text: domain 0x10000 comes after 0x2."""
    nodes = [
        node(1, location=0x0100, domain=0x10000),
        node(2, location=0x0900, domain=2),
        node(3, location=0x0A00, domain=0),
    ]

    assert [gpu.amd_smi_index for gpu in make_gpus(Readings(nodes=nodes))] == [2, 1, 0]


def test_xgmi_to_a_processor_is_no_peer() -> None:
    """On such boards the GPU hangs off its processor by xGMI; peers are GPUs."""
    links = tuple(Link(to_node=to_node, kind="xgmi") for to_node in (0, 2, 99))
    cpu = KfdNode(number=0, values={"simd_count": 0, "cpu_cores_count": 64})
    gpu = KfdNode(number=1, values={"simd_count": 440, "location_id": 0xC900}, links=links)

    found, _ = make_gpus(Readings(nodes=[cpu, gpu, node(2)]))

    assert (found.xgmi_peers, found.cpu_node) == ((2,), 0)


def test_numa_stays_unknown_where_the_numberings_cannot_be_matched() -> None:
    """More NUMA nodes with processors than KFD has processor nodes."""
    cpu = KfdNode(number=0, values={"simd_count": 0, "cpu_cores_count": 64})
    gpu = KfdNode(
        number=1, values={"simd_count": 440}, links=(Link(to_node=0, kind="pcie", weight=20),)
    )
    numa = [NumaNode(node=number, cpus="0-3") for number in range(2)]

    (found,) = make_gpus(Readings(nodes=[cpu, gpu], numa_nodes=numa))

    assert (found.cpu_node, found.numa_node) == (0, None)
