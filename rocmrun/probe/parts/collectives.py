"""All devices together: what one rank does."""

from __future__ import annotations

import importlib
import os
import re
import time
from datetime import timedelta
from typing import Any

from rocmrun.probe.parts.arithmetic import synchronize
from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.collective_operations import COLLECTIVES, REPEATS, Collective
from rocmrun.probe.parts.transports import transport_environment

# gloo's words for a collective that it has not: every rank hears them before anything is sent.
NOT_IN_BACKEND = re.compile(r"not support|not implemented|no backend|unsupported", re.IGNORECASE)


def stage_collectives(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Take part in the collectives as one rank, one check for each.

    Wrong values are noted and the rank goes on, in step with the others. After any other error it is
    out of step: it stops, and the controller frees those that wait for it.
    """
    torch = state["torch"]
    distributed = None
    for collective in COLLECTIVES:
        if collective.name not in job["names"]:
            continue
        with reporter.check("collectives", collective.name) as check:
            check.evidence["rank"] = job["rank"]
            if distributed is None:
                distributed = joined(reporter, job)
                reporter.send(doing=collective.name, group="collectives")
            wrong = run_collective(check, torch, distributed, job, collective)
            check.evidence["in_step"] = True
            if wrong:
                raise CheckFailed(wrong)
        if "in_step" not in check.evidence:
            return
    if distributed is not None and job["level"] != "quick":
        reporter.send(doing="destroy_process_group", group="collectives")
        distributed.destroy_process_group()


def joined(reporter: Reporter, job: dict[str, Any]) -> Any:
    """Meet the other ranks on loopback; return torch.distributed."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(job["port"]))
    if job["backend"] == "nccl":
        os.environ.update(transport_environment())
    distributed = importlib.import_module("torch.distributed")
    if not distributed.is_available():
        msg = "this torch was built without torch.distributed"
        raise CheckFailed(msg)
    reporter.send(doing="rendezvous", group="collectives")
    distributed.init_process_group(
        job["backend"],
        init_method="env://",
        rank=job["rank"],
        world_size=job["world"],
        timeout=timedelta(seconds=job["timeout"]),
    )
    return distributed


def run_collective(
    check: Check, torch: Any, distributed: Any, job: dict[str, Any], collective: Collective
) -> str:
    """Run one collective in every size; return what is wrong with the values, "" when nothing is."""
    if not hasattr(distributed, collective.function):
        check.skip(f"this torch has no torch.distributed.{collective.function}")
        return ""
    check.evidence.update(sizes=[], wrong=0)
    problem = ""
    for elements in job["elements"]:
        try:
            row = measured(torch, distributed, job, collective, elements)
        except (RuntimeError, NotImplementedError) as error:
            if job["backend"] != "gloo" or not NOT_IN_BACKEND.search(str(error)):
                raise
            check.skip(f"gloo in this torch: {' '.join(str(error).split())[:200]}")
            return ""
        check.evidence["sizes"].append(row)
        check.evidence["wrong"] += row["wrong"]
        if row["wrong"]:
            what = "sums" if "reduce" in collective.name else "values"
            problem = problem or (
                f"{row['wrong']} of {row['values']} {what} are wrong on rank {job['rank']}"
            )
    return problem


def measured(
    torch: Any, distributed: Any, job: dict[str, Any], collective: Collective, elements: int
) -> dict[str, Any]:
    """Run one size twice with fresh values, which are checked, and in between some more for the time.

    The first run of all also sets up the connections, so it has a time of its own.
    """
    device = "cpu" if job["accelerator"] == "cpu" else "cuda:0"
    row: dict[str, Any] = {"bytes": 4 * elements, "wrong": 0}
    for again in (False, True):
        run, result, expected = collective.make(
            torch, distributed, job["rank"], job["world"], elements, device
        )
        begin = time.monotonic()
        run()
        synchronize(torch, device)
        if not again:
            row["first_seconds"] = round(time.monotonic() - begin, 6)
        wrong = int((result != expected.to(torch.float32)).sum().item())
        row.update(wrong=max(row["wrong"], wrong), values=len(result))
        if not again:
            row["seconds"] = time_of(torch, run, device, REPEATS[job["level"]])
    return row


def time_of(torch: Any, run: Any, device: str, repeats: int) -> float:
    """Return the seconds of one run, over several of them."""
    synchronize(torch, device)
    begin = time.monotonic()
    for _ in range(repeats):
        run()
    synchronize(torch, device)
    return (time.monotonic() - begin) / repeats
