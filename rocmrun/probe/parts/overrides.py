"""HSA_OVERRIDE_GFX_VERSION: under which other name a GPU answers here, and whether that is needed.

HSA_OVERRIDE_GFX_VERSION is for all GPUs; HSA_OVERRIDE_GFX_VERSION_N is for one, and goes before it. N
counts the nodes of KFD that this process can use, processors first: where a container is passed one
GPU of several, it is not the number that the GPU has on the host.
Source: ROCm/rocm-systems 04c92c1ed, libhsakmt/src/topology.c (topology_sysfs_get_node_props,
topology_sysfs_check_node_supported).
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any, Mapping, Sequence

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.machine import open_error
from rocmrun.probe.parts.targets import code_for
from rocmrun.probe.parts.topology import KFD_NODES, TopologyNode, topology_nodes

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
RENDER_NODES = "/dev/dri"
VERSION = re.compile(r"\s*([0-9]+)\.([0-9]+)\.([0-9]+)")
MOST_IN_VERSION = (63, 255, 255)


def overrides(environment: Mapping[str, str]) -> dict[str, str | None]:
    """Return each override that is set with the target that it makes of a GPU; None for what is no version.

    Empty is none, and is not unset: the runtime gives up on it.
    """
    return {
        name: overridden(value)
        for name, value in sorted(environment.items())
        if name == OVERRIDE or name.startswith(f"{OVERRIDE}_")
    }


def overridden(version: str) -> str | None:
    """Return "gfx1030" for "10.3.0": decimal numbers, of which the last two are hexadecimal in the name."""
    match = VERSION.fullmatch(version)
    numbers = tuple(map(int, match.groups())) if match else ()
    if not numbers or any(map(int.__gt__, numbers, MOST_IN_VERSION)):
        return None
    major, minor, step = numbers
    return f"gfx{major}{minor:x}{step:x}"


def usable_nodes(root: str = KFD_NODES, render_nodes: str = RENDER_NODES) -> list[TopologyNode]:
    """Return the nodes of KFD that the runtime counts here: it leaves out GPUs that it cannot open."""
    return [
        node
        for node in topology_nodes(root)
        if not node.hidden
        and (not node.is_gpu or open_error(f"{render_nodes}/renderD{node.render_minor}") is None)
    ]


@functools.lru_cache(maxsize=None)
def override_nodes() -> Sequence[TopologyNode]:
    """Return this process's nodes where an override counts them, else none."""
    return usable_nodes() if any(name != OVERRIDE for name in overrides(os.environ)) else []


def deciding(
    gpu: Mapping[str, Any], environment: Mapping[str, str], nodes: Sequence[TopologyNode]
) -> list[str]:
    """Return the override that is for a planned GPU; every one where its number is not known."""
    known = list(overrides(environment))
    if not any(name != OVERRIDE for name in known):
        return known
    for number, node in enumerate(nodes):
        if node.is_gpu and node.is_planned(dict(gpu)):
            own = f"{OVERRIDE}_{number}"
            return [name for name in (own, OVERRIDE) if name in environment][:1]
    return known


def answers_as(
    gpu: Mapping[str, Any], environment: Mapping[str, str], nodes: Sequence[TopologyNode] = ()
) -> tuple[str, ...]:
    """Return what a planned GPU may call itself here: its own target, and what an override makes of it."""
    names = [str(gpu["gfx"]).lower()] if gpu.get("gfx") else []
    names += [
        target
        for name in deciding(gpu, environment, nodes)
        if (target := overridden(environment[name]))
    ]
    return tuple(dict.fromkeys(names))


def check_override(
    check: Check,
    built: list[str],
    planned: list[dict[str, Any]],
    environment: Mapping[str, str],
    nodes: Sequence[TopologyNode],
) -> None:
    """Say what overrides make of the GPUs: it may work, and nobody vouches for it."""
    found = overrides(environment)
    names = {index: deciding(gpu, environment, nodes) for index, gpu in enumerate(planned)}
    counted = {name for deciders in names.values() for name in deciders} if planned else set(found)
    changed = [
        (str(gpu["gfx"]).lower(), found[name])
        for index, gpu in enumerate(planned)
        for name in names[index]
        if gpu.get("gfx") and found[name] not in (None, str(gpu["gfx"]).lower())
    ]
    check.evidence.update(
        overrides={name: f"{environment[name]}: {target}" for name, target in found.items()},
        kernel=sorted({str(gpu["gfx"]).lower() for gpu in planned if gpu.get("gfx")}),
        deciding=names,
    )
    reasons = [
        f"{name}={environment[name]} is not major.minor.step: the runtime ignores it or fails"
        for name in found
        if name in counted and found[name] is None
    ]
    reasons += [
        f"{name} is for no GPU here: numbers count the nodes of KFD that this container can use, "
        "processors first"
        for name in found
        if name not in counted and name != OVERRIDE
    ]
    told = ", ".join(f"{name}={environment[name]}" for name in found if name in counted)
    targets = sorted({target for name, target in found.items() if name in counted and target})
    if changed:
        pairs = ", ".join(f"{gfx} answer as {target}" for gfx, target in sorted(set(changed)))
        reasons.append(
            f"{told}: GPUs {pairs}, which AMD does not support{unneeded(changed, built)}"
        )
    elif targets and not check.evidence["kernel"]:
        reasons.append(f"{told}: GPUs answer as {', '.join(targets)}, which AMD does not support")
    check.evidence["needed"] = bool(changed)
    if reasons:
        check.degrade("; ".join(reasons))


def unneeded(changed: list[tuple[str, Any]], built: list[str]) -> str:
    """Return the advice for GPUs that torch has code for as they are."""
    own = sorted({gfx for gfx, _ in changed})
    native = [gfx for gfx in own if code_for(gfx, built) in ("exact", "generic", "family")]
    return f"; this torch has code for {', '.join(native)}: unset it" if native else ""
