"""Errors that the GPUs' own memory and links have counted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rocmrun.probe.parts.checks import Check

PCI_DEVICES = "/sys/bus/pci/devices"
# "ue: 1" and "ce: 0", as the kernel's amdgpu_ras.c prints a block's counters.
COUNTER = re.compile(r"^\s*(ue|ce|de)\s*:\s*(\d+)\s*$", re.MULTILINE)
COUNTER_WORDS = {"ue": "uncorrectable", "ce": "correctable", "de": "deferred"}
# What counters of a card read that is asleep under runtime power management.
ASLEEP = 1048560


def check_ras(
    check: Check,
    planned: list[dict[str, Any]],
    gpus: list[dict[str, Any]],
    root: str = PCI_DEVICES,
) -> None:
    """Degrade for uncorrectable errors: the GPU may compute right now, and has lost data since the driver started."""
    counts: dict[str, dict[str, int]] = {}
    for address in addresses_of(planned, gpus):
        counts[address] = counters_in_sysfs(Path(root) / address / "ras")
    for gpu in gpus:
        counted = counts.get(gpu["pci_address"] or "")
        if counted is None:
            continue
        for word in COUNTER_WORDS.values():
            value = gpu.get(f"{word}_errors")
            if isinstance(value, int) and value != ASLEEP:
                counted[f"amd-smi {word}"] = value
    check.evidence["counts"] = counts
    if not any(counts.values()):
        check.skip("neither the driver nor amd-smi shows error counters here")
        return
    bad = [
        f"{address}: {', '.join(f'{value} in {name}' for name, value in sorted(wrong.items()))}"
        for address, counted in counts.items()
        if (wrong := {name: value for name, value in counted.items() if value and is_loss(name)})
    ]
    if bad:
        check.degrade(f"uncorrectable memory errors since the driver was loaded, {'; '.join(bad)}")


def addresses_of(planned: list[dict[str, Any]], gpus: list[dict[str, Any]]) -> list[str]:
    """Return the PCI addresses to look at: the plan's, or without a plan whatever amd-smi lists."""
    named = [gpu.get("pci_address") for gpu in planned or gpus]
    return list(dict.fromkeys(str(address).lower() for address in named if address))


def is_loss(name: str) -> bool:
    """Whether a counter counts data that was lost: corrected errors are what ECC is for."""
    return name.endswith(" uncorrectable")


def counters_in_sysfs(folder: Path) -> dict[str, int]:
    """Return the driver's counters by block, {"umc uncorrectable": 0}; none where there are none."""
    found = {}
    for path in sorted(folder.glob("*_err_count")):
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        block = path.name[: -len("_err_count")]
        for kind, value in COUNTER.findall(text):
            if int(value) != ASLEEP:
                found[f"{block} {COUNTER_WORDS[kind]}"] = int(value)
    return found
