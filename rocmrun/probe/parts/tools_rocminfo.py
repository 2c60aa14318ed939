"""What rocminfo prints, as agents."""

from __future__ import annotations

import re
from typing import Any

from rocmrun.probe.parts.tools_run import plain

# A field of an agent is indented by two blanks, one of a pool or an instruction set by more.
AGENT_FIELD = re.compile(r"^  (\S[^:]*):\s*(.*?)\s*$")
DEEPER_FIELD = re.compile(r"^\s{3,}(\S[^:]*):\s*(.*?)\s*$")
CARET_COLOUR = re.compile(r"\^\[\[[0-9;]*m")
UUID = re.compile(r"^GPU-([0-9a-fA-F]{16})$")


def parse_rocminfo(text: str) -> list[dict[str, Any]]:
    """Return the agents that rocminfo lists, processors included, in its order.

    The layout changes from version to version and is often cut when it is passed on: an agent
    begins with its name, whatever header stands before it.
    """
    agents: list[dict[str, Any]] = []
    for line in CARET_COLOUR.sub("", plain(text)).splitlines():
        field = AGENT_FIELD.match(line)
        if field and field[1] == "Name":
            agents.append({"name": field[2], "isas": [], "pools": []})
        elif field and agents:
            agents[-1].setdefault(field[1], field[2])
        elif agents and (deeper := DEEPER_FIELD.match(line)):
            if deeper[1] == "Name" and deeper[2].startswith("amdgcn-"):
                agents[-1]["isas"].append(deeper[2])
            elif deeper[1] in ("Segment", "Size"):
                agents[-1]["pools"].append((deeper[1], deeper[2]))
    return [agent_of(fields) for fields in agents if "Device Type" in fields]


def agent_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return one agent under the names that the rest of the probe uses; what was not printed is None."""
    agent = {
        "device_type": fields["Device Type"],
        "name": fields["name"],
        "node": leading_number(fields.get("Node")),
    }
    if agent["device_type"] != "GPU":
        return agent
    uuid = UUID.match(fields.get("Uuid", ""))
    chip = leading_number(fields.get("Chip ID"))
    place = leading_number(fields.get("BDFID"))
    return {
        **agent,
        "marketing_name": fields.get("Marketing Name") or None,
        "uuid": uuid[1].lower() if uuid else None,
        "chip_id": None if chip is None else f"0x{chip:04x}",
        "bdf_no_domain": None
        if place is None
        else f"{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7:x}",
        "compute_units": leading_number(fields.get("Compute Unit")),
        "first_global_pool_bytes": first_global_pool(fields["pools"]),
        "isas": fields["isas"],
    }


def first_global_pool(pools: list[tuple[str, str]]) -> int | None:
    """Return the size of the first global pool in bytes: device memory, on an APU a carve-out."""
    seen_global = False
    for key, value in pools:
        if key == "Segment":
            seen_global = value.startswith("GLOBAL")
        elif seen_global:
            size = leading_number(value)
            return None if size is None else size << 10
    return None


def leading_number(text: str | None) -> int | None:
    """Return the decimal number that a value begins with: 29631 of "29631(0x73bf)"."""
    match = re.match(r"\d+", text or "")
    return int(match[0]) if match else None
