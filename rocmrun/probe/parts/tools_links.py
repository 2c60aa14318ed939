"""xGMI: the links that the host has between the plan's GPUs, against those seen from inside."""

from __future__ import annotations

from typing import Any

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.topology import KFD_NODES, XGMI_LINK, TopologyNode, topology_nodes

KEPT_LINKS = 128  # in the evidence: 64 partitions have 4000


def check_xgmi(
    check: Check,
    planned: list[dict[str, Any]],
    gpus: list[dict[str, Any]],
    root: str = KFD_NODES,
) -> None:
    """Find every planned link in KFD's topology, and compare what amd-smi says of width and speed."""
    wanted = {gpu["index"]: gpu.get("xgmi_peers") for gpu in planned}
    if not any(wanted.values()):
        unknown = all(peers is None for peers in wanted.values())
        check.skip(
            "the plan does not know of xGMI between its GPUs"
            if unknown
            else "the host has no xGMI between the plan's GPUs"
        )
        return
    nodes = [node for node in topology_nodes(root) if node.is_gpu]
    found = {gpu["index"]: node_of(gpu, nodes) for gpu in planned}
    names = {gpu["index"]: gpu.get("pci_address") or f"GPU {gpu['index']}" for gpu in planned}
    problems, links = compared_links(wanted, found, names)
    check.evidence.update(links=links[:KEPT_LINKS], link_count=len(links))
    problems += uneven_links(links) + smi_problems(check, planned, gpus)
    if problems:
        check.degrade("; ".join(problems))


def node_of(gpu: dict[str, Any], nodes: list[TopologyNode]) -> TopologyNode | None:
    """Return the topology's node of a planned GPU."""
    return next((node for node in nodes if node.is_planned(gpu)), None)


def compared_links(
    wanted: dict[int, Any], found: dict[int, TopologyNode | None], names: dict[int, str]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the links that are missing, in words, and those that are there, with their figures."""
    problems: list[str] = []
    links: list[dict[str, Any]] = []
    for index, peers in wanted.items():
        node = found[index]
        if node is None:
            problems.append(f"{names[index]} is not in KFD's topology here")
            continue
        seen = {link.get("node_to"): link for link in node.links if link.get("type") == XGMI_LINK}
        for peer in peers or []:
            other = found.get(peer)
            link = None if other is None else seen.get(other.number)
            if link is None:
                problems.append(f"{names[index]} has no xGMI link to {names.get(peer, peer)} here")
                continue
            links.append(
                {
                    "from": names[index],
                    "to": names[peer],
                    "weight": link.get("weight"),
                    # MB/s in the kernel's words: of one link, and of all links between the two.
                    "min_bandwidth": link.get("min_bandwidth"),
                    "max_bandwidth": link.get("max_bandwidth"),
                }
            )
    return problems, links


def uneven_links(links: list[dict[str, Any]]) -> list[str]:
    """Return the pairs whose two directions differ: one of the links between them is down."""
    widths = {(link["from"], link["to"]): link["max_bandwidth"] for link in links}
    return [
        f"xGMI from {a} to {b} has {width} MB/s, back {widths[b, a]} MB/s"
        for (a, b), width in widths.items()
        if a < b and width is not None and widths.get((b, a)) not in (None, width)
    ]


def smi_problems(
    check: Check, planned: list[dict[str, Any]], gpus: list[dict[str, Any]]
) -> list[str]:
    """Return what amd-smi says against the links: one that is not enabled, a GPU slower than the rest."""
    ours = {str(gpu.get("pci_address")).lower() for gpu in planned}
    known = [gpu for gpu in gpus if gpu["pci_address"] in ours]
    problems = [
        f"amd-smi says that the xGMI link of {gpu['pci_address']} to {link.get('bdf')} is {status}"
        for gpu in known
        for link in gpu["links"]
        if link.get("link_type") == "XGMI"
        and str(link.get("bdf")).lower() in ours
        and (status := str(link.get("link_status", "ENABLED"))) not in ("ENABLED", "N/A")
    ]
    for what, unit in (("xgmi_bit_rate", "Gb/s a lane"), ("xgmi_bandwidth", "Gb/s a link")):
        values = {gpu["pci_address"]: gpu[what] for gpu in known if gpu[what] is not None}
        check.evidence[what] = values
        best = max(values.values(), default=0)
        problems += [
            f"xGMI of {address} runs at {value:g} {unit}, of others at {best:g}"
            for address, value in values.items()
            if value < best
        ]
    return problems
