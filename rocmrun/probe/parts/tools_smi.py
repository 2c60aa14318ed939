"""The JSON of rocm-smi and amd-smi, across the shapes that it has had."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator

# Words of absence. rocm-smi and amd-smi write all of them.
NOTHING = ("", "n/a", "none", "unknown", "n/a (secondary die)")
# What a value is called here: the names that versions of rocm-smi have given it, in lower case.
ROCM_SMI_NAMES = {
    "unique_id": ("unique id",),
    "serial": ("serial number",),
    "vbios": ("vbios version",),
    "device_id": ("device id", "gpu id"),
    "pci_address": ("pci bus",),
    "gfx": ("gfx version",),
    "vram_bytes": ("vram total memory (b)",),
    "power_cap_watts": ("max graphics package power (w)",),
    "compute_partition": ("compute partition",),
    "memory_partition": ("memory partition",),
    "pcie_replays": ("pcie replay count",),
}
FIRMWARE_SUFFIX = " firmware version"
DECIMAL_STEP = re.compile(r"^gfx90(1\d)$")  # older versions print gfx9010 for gfx90a
# Where versions of amd-smi keep a value, the newest first.
AMD_SMI_PATHS = {
    "pci_address": (("bdf",), ("bus", "bdf")),
    "uuid": (("uuid",),),
    "name": (("asic", "market_name"),),
    "device_id": (("asic", "device_id"),),
    "gfx": (("asic", "target_graphics_version"),),
    "compute_units": (("asic", "num_compute_units"),),
    "unique_id": (("asic", "asic_serial"),),
    "serial": (("board", "product_serial"),),
    "vbios": (("ifwi", "version"), ("vbios", "version"), ("ifwi", "name"), ("vbios", "name")),
    "driver": (("driver", "version"), ("driver", "driver_version")),
    "power_cap_watts": (
        ("limit", "ppt0", "socket_power_limit"),
        ("limit", "socket_power"),
        ("limit", "max_power"),
    ),
    "compute_partition": (
        ("partition", "accelerator_partition"),
        ("partition", "compute_partition"),
    ),
    "memory_partition": (("partition", "memory_partition"),),
    "partition": (("partition", "partition_id"), ("partition_id",)),
    "uncorrectable_errors": (("ecc", "total_uncorrectable_count"), ("ecc", "uncorrectable_count")),
    "correctable_errors": (("ecc", "total_correctable_count"), ("ecc", "correctable_count")),
    "deferred_errors": (("ecc", "total_deferred_count"),),
    "xgmi_bit_rate": (("link_metrics", "bit_rate"),),
    "xgmi_bandwidth": (("link_metrics", "max_bandwidth"),),
}
NUMBERS = ("vram_bytes", "power_cap_watts", "pcie_replays", "compute_units", "partition")


def json_documents(text: str) -> Iterator[Any]:
    """Yield every JSON document in *text*: tools print warnings before, legends after, several at once."""
    decoder = json.JSONDecoder()
    place = 0
    while (start := re.search(r"[\[{]", text[place:])) is not None:
        place += start.start()
        try:
            value, place = decoder.raw_decode(text, place)
        except ValueError:
            # Words in brackets stand before the data; a document that is cut off or misprinted has
            # whole ones inside, which would be taken for it.
            following = text.find("\n", place)
            if following < 0 or text[place + 1 :].lstrip()[:1] in ('"', "{", "["):
                return
            place = following + 1
            continue
        yield value


def present(value: Any) -> Any:
    """Return a value, or None for every word of absence; a number with a unit is the number."""
    if isinstance(value, dict) and "value" in value:
        return present(value["value"])
    if isinstance(value, str):
        text = value.strip()
        return None if text.lower() in NOTHING else text
    return value


def quantity(value: Any) -> float | int | None:
    """Return a value as a number: 500 of "500 MHz"; None where it is none."""
    value = present(value)
    if isinstance(value, str):
        match = re.match(r"[-+]?\d+(\.\d+)?", value)
        value = float(match[0]) if match else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == int(value) else value


def hex_digits(value: Any) -> str | None:
    """Return a unique id as 16 hex digits: tools lose leading zeros; 0 is none."""
    text = str(present(value) or "").lower()
    text = text.removeprefix("0x")
    if not re.fullmatch(r"[0-9a-f]{1,16}", text) or not int(text, 16):
        return None
    return text.rjust(16, "0")


def parse_rocm_smi(text: str) -> dict[str, dict[str, Any]]:
    """Return rocm-smi's cards, "card0" and so on; none where it printed no JSON."""
    cards: dict[str, dict[str, Any]] = {}
    for document in json_documents(text):
        if not isinstance(document, dict):
            continue
        for name, fields in document.items():
            if re.fullmatch(r"card\d+", name) and isinstance(fields, dict):
                cards.setdefault(name, {}).update(fields)
    return {name: rocm_smi_card(fields) for name, fields in cards.items()}


def rocm_smi_card(fields: dict[str, Any]) -> dict[str, Any]:
    """Return one card under our names; what is not there is None."""
    lower = {key.strip().rstrip(":").lower(): value for key, value in fields.items()}
    card: dict[str, Any] = {}
    for name, known in ROCM_SMI_NAMES.items():
        found = [present(lower[key]) for key in known if key in lower]
        card[name] = next((value for value in found if value is not None), None)
        if name in NUMBERS:
            card[name] = quantity(card[name])
    card["unique_id"] = hex_digits(card["unique_id"])
    card["pci_address"] = card["pci_address"] and str(card["pci_address"]).lower()
    card["serial"] = None if card["serial"] == "0" else card["serial"]
    step = DECIMAL_STEP.match(str(card["gfx"]))
    if step:
        card["gfx"] = f"gfx90{int(step[1]):x}"
    card["firmware"] = {
        key[: -len(FIRMWARE_SUFFIX)]: value
        for key, value in lower.items()
        if key.endswith(FIRMWARE_SUFFIX) and present(value) is not None
    }
    return card


def amd_smi_rows(text: str) -> list[dict[str, Any]]:
    """Return the objects about a GPU, wherever a version of amd-smi puts them."""
    rows: list[dict[str, Any]] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict) and "gpu" in value:
            rows.append(value)
        elif isinstance(value, dict):
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    for document in json_documents(text):
        collect(document)
    return rows


def merged_rows(outputs: list[str]) -> dict[int, dict[str, Any]]:
    """Join what several commands of amd-smi said, by its own number of the GPU."""
    merged: dict[int, dict[str, Any]] = {}
    for text in outputs:
        for row in amd_smi_rows(text):
            if isinstance(row["gpu"], int):
                merged.setdefault(row["gpu"], {}).update(row)
    return merged


def amd_smi_gpu(row: dict[str, Any]) -> dict[str, Any]:
    """Return one GPU under our names; what is not there is None."""
    gpu: dict[str, Any] = {}
    for name, paths in AMD_SMI_PATHS.items():
        found = (present(at_path(row, path)) for path in paths)
        gpu[name] = next((value for value in found if value is not None), None)
        if name in NUMBERS or name.endswith("_errors") or name.startswith("xgmi_"):
            gpu[name] = quantity(gpu[name])
    gpu["unique_id"] = hex_digits(gpu["unique_id"])
    gpu["pci_address"] = gpu["pci_address"] and str(gpu["pci_address"]).lower()
    gpu["firmware"] = {
        str(entry.get("fw_id") or entry.get("fw_name")): present(entry.get("fw_version"))
        for entry in row.get("fw_list") or []
        if isinstance(entry, dict)
    }
    gpu["serial"] = None if gpu["serial"] == "0" else gpu["serial"]
    gpu["links"] = [link for link in row.get("links") or [] if isinstance(link, dict)]
    return gpu


def at_path(row: Any, path: tuple[str, ...]) -> Any:
    """Return the value under nested keys, None where one is missing."""
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row
