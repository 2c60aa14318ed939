"""All devices together."""

from __future__ import annotations

import importlib
import os
import socket
import time
from datetime import timedelta
from typing import Any

from rocmrun.probe.parts.arithmetic import synchronize
from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.events import made_check
from rocmrun.probe.parts.processes import Outcome

COLLECTIVE_ELEMENTS = 1 << 20


def stage_collectives(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Take part in one all_reduce as one rank and check every value."""
    torch = state["torch"]
    rank, world = job["rank"], job["world"]
    with reporter.check("collectives", "all_reduce") as check:
        check.evidence["rank"] = rank
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(job["port"]))
        distributed = importlib.import_module("torch.distributed")
        if not distributed.is_available():
            msg = "this torch was built without torch.distributed"
            raise CheckFailed(msg)
        reporter.send(doing="rendezvous", group="collectives")
        distributed.init_process_group(
            job["backend"],
            init_method="env://",
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=job["timeout"]),
        )
        reporter.send(doing="all_reduce", group="collectives")
        check_all_reduce(check, torch, distributed, job)
        reporter.send(doing="destroy_process_group", group="collectives")
        distributed.destroy_process_group()


def check_all_reduce(check: Check, torch: Any, distributed: Any, job: dict[str, Any]) -> None:
    """Sum a pattern over all ranks; whole numbers this small are exact in fp32, in any order."""
    rank, world, elements = job["rank"], job["world"], job["elements"]
    device = "cpu" if job["accelerator"] == "cpu" else "cuda:0"
    pattern = torch.arange(elements, dtype=torch.int32, device=device) % 251
    expected = pattern * world + world * (world - 1) // 2
    for label in ("first", "second"):  # the first also sets up the connections
        values = (pattern + rank).to(torch.float32)
        synchronize(torch, device)
        begin = time.monotonic()
        distributed.all_reduce(values)
        synchronize(torch, device)
        check.evidence[f"{label}_seconds"] = round(time.monotonic() - begin, 6)
        wrong = int((values != expected.to(torch.float32)).sum().item())
        check.evidence.update(elements=elements, wrong=wrong)
        if wrong:
            msg = f"{wrong} of {elements} sums are wrong on rank {rank}"
            raise CheckFailed(msg)


def judged_collective(outcomes: list[Outcome], backend: str, elements: int) -> dict[str, Any]:
    """Return one check for all ranks; the blame goes to a rank that failed, not to those that waited."""
    ranks = []
    blame: list[tuple[int, str]] = []
    order = {"died": 0, "done": 1, "timeout": 2, "stopped": 3}
    for rank, outcome in enumerate(outcomes):
        check = outcome.checks[0] if outcome.checks else {}
        reason = outcome.reason or check.get("reason", "")
        if outcome.ended != "done" and outcome.doing:
            reason += f" (in {outcome.doing[1]})"
        ranks.append(
            {"rank": rank, **check.get("evidence", {}), **outcome.evidence, "reason": reason}
        )
        if not outcome.passed:
            blame.append((order[outcome.ended], f"rank {rank}: {reason}"))
    return made_check(
        "collectives",
        "all_reduce",
        "fail" if blame else "pass",
        reason=min(blame)[1] if blame else "",
        seconds=max(outcome.seconds for outcome in outcomes),
        evidence={"backend": backend, "world": len(outcomes), "elements": elements, "ranks": ranks},
    )


def free_port() -> int:
    """Return a TCP port on loopback that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
