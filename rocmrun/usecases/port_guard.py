"""Published ports that are taken, looked for before a proof: the engine says it only when the workload starts."""

import ipaddress
from collections.abc import Callable, Collection, Mapping
from typing import Any

from rocmrun.core import labels
from rocmrun.core.plan import Plan, PlannedPort
from rocmrun.core.text import before_port
from rocmrun.core.workloads import Workload, is_ours, workload_of
from rocmrun.errors import PortTaken
from rocmrun.system.ports import is_taken
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.workloads import labelled_by_its_image

ANYBODY = "stop what listens there (ss -lntup), or publish another port"


def check_ports(
    plan: Plan,
    engine: Engine,
    *,
    leaving: Collection[str] = (),
    taken: Callable[[str, int, str], bool] = is_taken,
) -> None:
    """Refuse a plan whose ports are taken, naming the workload that has them where it is one of rocmrun's.

    What is free now may be taken when the workload starts: the engine's own error says so then.

    Args:
        plan: Whose ports.
        engine: Where containers run.
        leaving: Ids of containers that this run replaces: their ports become free.
        taken: Says of an address, a port and a protocol whether somebody listens there.

    Raises:
        PortTaken: with each of them.
    """
    if not plan.ports:
        return
    running = engine.containers(labels.ROLE, running_only=True)
    details, names = [], set[str]()
    for port in plan.ports:
        holders = [summary for summary in running if _publishes(summary, port)]
        if any(summary["Id"] in leaving for summary in holders):
            continue
        holder = next((found for each in holders if (found := _ours(engine, each))), None)
        if holder is not None:
            details.append(f"{_shown(port)}: {holder} publishes it")
            names.add(holder.name)
        elif taken(port.address, port.host_port, port.protocol):
            details.append(f"{_shown(port)}: something on this host listens there")
    if details:
        msg = "a port that the workload publishes is taken"
        ours = f"rocmrun stop {' '.join(sorted(names))}, or publish another port"
        raise PortTaken(msg, details=tuple(details), hint=ours if names else ANYBODY)


def _publishes(summary: Mapping[str, Any], port: PlannedPort) -> bool:
    """Whether a container has *port* of the host, at the same address or at all of them."""
    return any(
        (used.get("PublicPort"), used.get("Type", "tcp")) == (port.host_port, port.protocol)
        and _meet(used.get("IP") or "", port.address)
        for used in summary.get("Ports") or ()
    )


def _meet(used: str, wanted: str) -> bool:
    if not used:
        # An engine that names no address has it at all of them.
        return True
    first, second = ipaddress.ip_address(used), ipaddress.ip_address(wanted)
    same_family = first.version == second.version
    return same_family and (first == second or first.is_unspecified or second.is_unspecified)


def _ours(engine: Engine, summary: Mapping[str, Any]) -> Workload | None:
    known = is_ours(summary) and not labelled_by_its_image(engine, summary)
    return workload_of(summary) if known else None


def _shown(port: PlannedPort) -> str:
    return f"{before_port(port.address)}:{port.host_port}/{port.protocol}"
