"""What sysfs says of a GPU's PCI device, as values. Reads nothing itself."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rocmrun.core.host import PciGpu
from rocmrun.core.os_text import number

AMD_VENDOR = "1002"
# Display controllers (VGA, other) and processing accelerators; AMD's vendor id is on audio,
# bridges and encryption controllers too.
_GPU_CLASSES = ("0300", "0380", "1200")
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HEX16 = re.compile(r"(?:0x)?([0-9a-f]{1,4})")
_HEX64 = re.compile(r"(?:0x)?([0-9a-f]{1,16})")
_MODE = re.compile(r"[A-Z0-9]{2,16}")

# The files that are read, all in the device's directory.
FILES = (
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "revision",
    "numa_node",
    "current_link_width",
    "max_link_width",
    "current_link_speed",
    "max_link_speed",
    "vbios_version",
    "unique_id",
    "mem_info_vram_total",
    "current_compute_partition",
    "current_memory_partition",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PciFacts:
    """A GPU's PCI device.

    Attributes:
        numa_node: None when the firmware did not say (the kernel prints -1).
        compute_partition: "SPX", "DPX", "TPX", "QPX" or "CPX"; None where the GPU has no such mode.
        memory_partition: "NPS1", …; None where the GPU has no such mode.
    """

    vendor_id: str | None = None
    device_id: str | None = None
    subsystem_id: str | None = None
    revision: str | None = None
    numa_node: int | None = None
    link_width: int | None = None
    link_width_max: int | None = None
    link_speed: str | None = None
    link_speed_max: str | None = None
    vbios: str | None = None
    unique_id: str | None = None
    vram_bytes: int | None = None
    compute_partition: str | None = None
    memory_partition: str | None = None
    firmware: tuple[tuple[str, str], ...] = ()


def parse_pci(files: Mapping[str, str], firmware: Mapping[str, str]) -> PciFacts:
    """Return the facts in a device's *files* (name → first line) and in its fw_version directory."""
    vendor, device = _hex(files.get("subsystem_vendor")), _hex(files.get("subsystem_device"))
    unique = _HEX64.fullmatch(files.get("unique_id", "").lower())
    return PciFacts(
        vendor_id=_hex(files.get("vendor")),
        device_id=_hex(files.get("device")),
        subsystem_id=f"{vendor}:{device}" if vendor and device else None,
        revision=_hex(files.get("revision"), digits=2),
        numa_node=number(files.get("numa_node")),
        link_width=number(files.get("current_link_width")) or None,
        link_width_max=number(files.get("max_link_width")) or None,
        link_speed=_speed(files.get("current_link_speed")),
        link_speed_max=_speed(files.get("max_link_speed")),
        vbios=files.get("vbios_version"),
        unique_id=unique[1].zfill(16) if unique and int(unique[1], 16) else None,
        vram_bytes=number(files.get("mem_info_vram_total")) or None,
        compute_partition=_mode(files.get("current_compute_partition")),
        memory_partition=_mode(files.get("current_memory_partition")),
        firmware=tuple(
            sorted((name.removesuffix("_fw_version"), value) for name, value in firmware.items())
        ),
    )


def parse_uevent(text: str) -> PciGpu | None:
    """Return the AMD GPU that a PCI device's uevent file describes; None when it is anything else."""
    values = dict(line.partition("=")[::2] for line in text.splitlines())
    vendor, _, device = values.get("PCI_ID", "").lower().partition(":")
    # PCI_CLASS is printed without leading zeros: "30000" is 0x030000.
    pci_class = values.get("PCI_CLASS", "").zfill(6)[:4]
    address = values.get("PCI_SLOT_NAME", "").lower()
    device_id = _hex(device)
    if vendor != AMD_VENDOR or pci_class not in _GPU_CLASSES or not device_id:
        return None
    if not is_address(address):
        return None
    return PciGpu(address=address, device_id=device_id, driver=values.get("DRIVER") or None)


def is_address(text: str) -> bool:
    """Return whether *text* is a PCI address as sysfs writes it: "0000:63:00.0"."""
    return _ADDRESS.fullmatch(text) is not None


def _hex(text: str | None, digits: int = 4) -> str | None:
    match = _HEX16.fullmatch((text or "").lower())
    return f"0x{match[1].zfill(digits)}" if match else None


def _speed(text: str | None) -> str | None:
    # "Unknown" is what the kernel prints for a link it cannot ask, as on an APU.
    return text if text and text[0].isdigit() else None


def _mode(text: str | None) -> str | None:
    return text if text and _MODE.fullmatch(text) and text not in ("UNKNOWN", "INVALID") else None
