"""What sysfs says of a PCI device."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.host import PciGpu
from rocmrun.core.pci import FILES, PciFacts, parse_pci, parse_uevent


def test_a_device_is_read_whole() -> None:
    """Ids in one spelling, unknown values as None."""
    files = {
        "vendor": "0x1002",
        "device": "0x74a1",
        "subsystem_vendor": "0x1002",
        "subsystem_device": "0x74A1",
        "revision": "0x0",
        "numa_node": "-1",
        "current_link_width": "16",
        "max_link_width": "0",
        "current_link_speed": "32.0 GT/s PCIe",
        "max_link_speed": "Unknown",
        "vbios_version": "113-M3000100-102",
        "unique_id": "1234",
        "mem_info_vram_total": "206141652992",
        "current_compute_partition": "CPX",
        "current_memory_partition": "UNKNOWN",
    }

    facts = parse_pci(files, {"smc_fw_version": "0x1", "mec_fw_version": "0xb1"})

    expected = PciFacts(
        vendor_id="0x1002",
        device_id="0x74a1",
        subsystem_id="0x1002:0x74a1",
        revision="0x00",
        numa_node=None,
        link_width=16,
        link_width_max=None,
        link_speed="32.0 GT/s PCIe",
        link_speed_max=None,
        vbios="113-M3000100-102",
        unique_id="0000000000001234",
        vram_bytes=206141652992,
        compute_partition="CPX",
        memory_partition=None,
        firmware=(("mec", "0xb1"), ("smc", "0x1")),
    )
    assert facts == expected


def test_nothing_read_is_nothing_known() -> None:
    """No file, no guess; an id of zeros is none."""
    assert parse_pci({}, {}) == PciFacts()
    assert parse_pci({"unique_id": "0000000000000000"}, {}) == PciFacts()


@given(st.dictionaries(st.sampled_from(FILES), st.text()))
def test_no_garbage_is_an_error(files: dict[str, str]) -> None:
    """Whatever a driver prints."""
    facts = parse_pci(files, {})

    assert facts.numa_node is None or facts.numa_node >= 0


@pytest.mark.parametrize(
    ("pci_class", "pci_id", "found"),
    [
        ("30000", "1002:687F", True),
        ("38000", "1002:7408", True),
        ("120000", "1002:74A1", True),
        ("40300", "1002:AB38", False),  # audio
        ("20000", "1DD8:1002", False),  # a NIC whose device id is AMD's vendor id
        ("30000", "10DE:2204", False),
    ],
)
def test_only_amd_gpus_count(pci_class: str, pci_id: str, *, found: bool) -> None:
    """By class and by the vendor half of the id."""
    gpu = parse_uevent(
        f"DRIVER=vfio-pci\nPCI_CLASS={pci_class}\nPCI_ID={pci_id}\nPCI_SLOT_NAME=0000:03:00.0\n"
    )

    device = f"0x{pci_id.partition(':')[2].lower()}"
    expected = PciGpu(address="0000:03:00.0", device_id=device, driver="vfio-pci")
    assert gpu == (expected if found else None)


def test_a_gpu_without_a_driver_is_found() -> None:
    """No DRIVER line, no driver."""
    gpu = parse_uevent("PCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n")

    assert PciGpu(address="0000:03:00.0", device_id="0x744c") == gpu


def test_an_address_that_is_none_gives_no_gpu() -> None:
    """A cut or made-up file."""
    assert parse_uevent("PCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SLOT_NAME=../../etc\n") is None


@given(st.text())
def test_no_uevent_is_an_error(text: str) -> None:
    """A random text names no GPU."""
    assert parse_uevent(text) is None
