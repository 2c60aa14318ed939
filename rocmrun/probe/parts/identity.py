"""Which device this is, and whether it is one that was passed in."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed
from rocmrun.probe.parts.hip_library import Hip, mapped_library
from rocmrun.probe.parts.machine import processor_name
from rocmrun.probe.parts.overrides import answers_as, override_nodes
from rocmrun.probe.parts.targets import code_for

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
    if job["accelerator"] == "rocm":
        complete_by_hip(check, seen)
    check.evidence.update(seen)
    if seen["architecture"] is not None:
        check.evidence["code"] = code_for(seen["architecture"], torch.cuda.get_arch_list())
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


def same_device(every: list[list[int]]) -> list[str]:
    """Return why devices cannot be told apart; partitions of one GPU may say the same.

    *every* holds, for each device, the planned GPUs that it can be.
    """
    return [
        f"{same} devices say that they are the same GPU: two indices reach one device"
        for claims in sorted({tuple(claims) for claims in every})
        if (same := sum(tuple(other) == claims for other in every)) > len(claims)
    ]


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


def complete_by_hip(check: Check, seen: dict[str, Any]) -> None:
    """Ask the HIP that torch has loaded for what torch's version does not tell: the same device 0, at no cost."""
    missing = [name for name in ("pci_address", "uuid", "architecture") if seen[name] is None]
    path = mapped_library("libamdhip64") if missing else None
    if path is None:
        return
    try:
        told = hip_identity(Hip(ctypes.CDLL(path)))
    except (CheckFailed, OSError) as error:
        check.evidence["hip_error"] = str(error)
        return
    check.evidence["told_by_hip"] = [name for name in missing if told[name] is not None]
    seen.update({name: told[name] for name in told if seen[name] is None})


def hip_identity(hip: Hip, device: int = 0) -> dict[str, Any]:
    """Return what HIP tells of a device, under the names that torch's identity has."""
    address = hip.text("hipDeviceGetPCIBusId", device).lower()
    architecture = hip.architecture(device)
    uuid = hip.uuid(device)
    return {
        "name": hip.text("hipDeviceGetName", device),
        "architecture": architecture,
        "gfx": architecture.partition(":")[0] if architecture else None,
        "pci_address": address.partition(".")[0] or None,
        "uuid": uuid,
        "unique_id": decoded_unique_id(uuid) if uuid else None,
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
    ):
        if value is not None and expected is not None and value != expected.lower():
            found.append(f"{what} {value}, not {expected}")
    gfx, names = seen["gfx"], answers_as(planned, os.environ, override_nodes())
    # Under an override a GPU gives another target's name; that is a check of its own.
    if gfx is not None and planned.get("gfx") and gfx not in names:
        found.append(f"gfx {gfx}, not {planned['gfx']}")
    return found
