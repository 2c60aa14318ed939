"""Which device this is, and whether it is one that was passed in."""

from __future__ import annotations

from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed
from rocmrun.probe.parts.machine import processor_name

UNIQUE_ID_DIGITS = 16


def check_identity(check: Check, torch: Any, job: dict[str, Any], *, on_gpu: bool) -> None:
    """Record which device this is and, where both are known, compare with what was passed in."""
    if not on_gpu:
        check.evidence.update(name=processor_name(), threads=torch.get_num_threads())
        return
    check.evidence["visible"] = torch.cuda.device_count()
    if check.evidence["visible"] != 1:
        msg = f"{check.evidence['visible']} devices are visible where exactly one was named"
        raise CheckFailed(msg)
    seen = device_identity(torch, job["accelerator"])
    check.evidence.update(seen)
    architectures = list(torch.cuda.get_arch_list())
    if seen["gfx"] is not None and architectures:
        check.evidence["arch_in_build"] = seen["gfx"] in architectures
    if job["planned"]:
        check.evidence["claims"] = claimed(seen, job["planned"], job["index"])


def claimed(seen: dict[str, Any], planned: list[dict[str, Any]], index: int) -> list[int]:
    """Return which of the planned GPUs a device can be, by their positions.

    Raises:
        CheckFailed: it is none of them; the reason compares it with the one of its own *index*.
    """
    claims = [position for position, gpu in enumerate(planned) if not differences(seen, gpu)]
    if not claims:
        own = planned[index] if index < len(planned) else planned[0]
        msg = f"this is none of the GPUs that were passed in: {'; '.join(differences(seen, own))}"
        raise CheckFailed(msg)
    return claims


def device_identity(torch: Any, accelerator: str) -> dict[str, Any]:
    """Return what torch tells of the visible device; versions without a field leave None."""
    properties = torch.cuda.get_device_properties(0)
    domain, bus, slot = (
        getattr(properties, name, None) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")
    )
    architecture = getattr(properties, "gcnArchName", None) if accelerator == "rocm" else None
    uuid = getattr(properties, "uuid", None)
    return {
        "name": properties.name,
        "architecture": architecture,
        "gfx": architecture.partition(":")[0] if architecture else None,
        "total_memory_bytes": properties.total_memory,
        "pci_address": None if bus is None else f"{domain or 0:04x}:{bus:02x}:{slot or 0:02x}",
        "uuid": None if uuid is None else str(uuid),
        "unique_id": decoded_unique_id(str(uuid)) if accelerator == "rocm" and uuid else None,
    }


def decoded_unique_id(uuid: str) -> str | None:
    """Return the 16 hex digits of a ROCm uuid, whose bytes are their ASCII codes; None for "XX" (no id)."""
    try:
        text = bytes.fromhex(uuid.replace("-", "")).decode("ascii").lower()
        int(text, 16)
    except ValueError:
        return None
    return text if len(text) == UNIQUE_ID_DIGITS else None


def differences(seen: dict[str, Any], planned: dict[str, Any]) -> list[str]:
    """Return where a device differs from a planned GPU. A PCI function is not compared: torch tells none."""
    found = []
    address = planned.get("pci_address")
    for what, value, expected in (
        (
            "PCI address",
            seen["pci_address"],
            address.lower().partition(".")[0] if address else None,
        ),
        ("unique id", seen["unique_id"], planned.get("unique_id")),
        ("gfx", seen["gfx"], planned.get("gfx")),
    ):
        if value is not None and expected is not None and value != expected.lower():
            found.append(f"{what} {value}, not {expected}")
    return found
