"""All devices together, seen from the controller: start the ranks, free those that wait, find who is to blame."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rocmrun.probe.parts.collective_operations import (
    BANDWIDTH_SOURCE,
    bandwidth,
    collective_names,
    message_elements,
)
from rocmrun.probe.parts.events import made_check
from rocmrun.probe.parts.processes import Child, Outcome
from rocmrun.probe.parts.transports import (
    TransportLog,
    shared_memory_bytes,
    shared_memory_reason,
)

# Whose fault it is when ranks end differently: first who died, then who found something wrong, then
# who never came back. Those that were stopped only waited.
BLAME = {"died": 0, "done": 1, "timeout": 2, "stopped": 3}
LINES_OF_ALL_RANKS = 400  # what is kept of their last lines together: one report line holds them
MIB = 1 << 20
# Lowest bus bandwidth of a large all_reduce over eight GPUs, in GB/s. The source gives it for the mean
# over 1 KiB to 2 GiB, which lies far below what 256 MiB reach: a recorded run of rccl-tests on eight
# MI300X has 305 GB/s there, and 110 as its mean over all sizes. Other boards have no such figure.
EXPECTED_BUS_BANDWIDTH = {"MI300X": 200.0, "MI210": 50.0, "MI100": 35.0}
EXPECTED_FOR_GPUS = 8
EXPECTED_FOR_BYTES = 256 * MIB
EXPECTED_BUS_BANDWIDTH_SOURCE = (
    "ROCm/gpu-operator, example/gpu-validation-cluster/README.md: lowest mean of all_reduce_perf "
    "over 1K-2G on 8 GPUs, held against one size of at least 256 MiB"
)


def run_together(
    children: list[Child], job: dict[str, Any], timeout: float, backend: str, boards: list[str]
) -> list[dict[str, Any]]:
    """Let all ranks run the level's collectives; return a check for each of them.

    Args:
        children: One process a device, torch imported.
        job: What every job says: accelerator, level, expect; and the most bytes to send, or None.
        timeout: Seconds for all of it.
        backend: "nccl" or "gloo".
        boards: The devices' names, where they are known.
    """
    world = len(children)
    names = collective_names(job["level"])
    elements = message_elements(job["accelerator"], job["level"], world, job["message_bytes"])
    shared = {
        **job,
        "stage": "collectives",
        "names": names,
        "world": world,
        "port": free_port(),
        "backend": backend,
        "elements": elements,
    }
    logs = [TransportLog() for _ in children]
    outcomes = run_ranks(children, shared, timeout, logs)
    judge = Judge(outcomes, logs, backend)
    checks = [judge.collective(name) for name in names]
    judge_bus_bandwidth(checks[0], job, boards)
    if judge.broken == "" and any(outcome.ended != "done" for outcome in outcomes):
        checks.append(judge.teardown())
    if backend == "nccl":
        checks.append(transport_check(logs))
    return checks


def run_ranks(
    children: list[Child], job: dict[str, Any], timeout: float, logs: list[TransportLog]
) -> list[Outcome]:
    """Run the ranks; the first that falls out of step frees the others of their wait."""
    stop = threading.Event()

    def take_part(rank: int, child: Child) -> Outcome:
        child.on_line = logs[rank].take
        outcome = child.run({**job, "rank": rank}, timeout, lambda _check: None, stop)
        if outcome.ended != "done" or any(map(out_of_step, outcome.checks)):
            stop.set()
        return outcome

    with ThreadPoolExecutor(len(children)) as pool:
        return list(pool.map(take_part, range(len(children)), children))


class Judge:
    """Makes one check a collective out of what every rank told."""

    def __init__(self, outcomes: list[Outcome], logs: list[TransportLog], backend: str) -> None:
        self._outcomes = outcomes
        self._logs = logs
        self._backend = backend
        self._kept = max(4, LINES_OF_ALL_RANKS // max(1, len(outcomes)))
        self.broken = ""  # the collective in which a rank fell out of step

    def collective(self, name: str) -> dict[str, Any]:
        """Return the check of one collective for all ranks."""
        if self.broken:
            reason = f"the ranks did not come out of {self.broken}"
            return made_check("collectives", name, "skipped", reason=reason)
        told = [
            next((check for check in outcome.checks if check["name"] == name), None)
            for outcome in self._outcomes
        ]
        blame: list[tuple[int, int, str]] = []
        ranks = []
        for rank, (outcome, check) in enumerate(zip(self._outcomes, told)):
            ranks.append(self._rank(rank, outcome, check))
            if check is None or check["status"] == "fail":
                order = BLAME[outcome.ended] if check is None else BLAME["done"]
                blame.append((order, rank, ranks[-1]["reason"]))
        if any(check is None or out_of_step(check) for check in told):
            self.broken = name
        skipped = [check["reason"] for check in told if check and check["status"] == "skipped"]
        status = "fail" if blame else "skipped" if skipped else "pass"
        evidence = {"backend": self._backend, "world": len(told), "ranks": ranks}
        evidence.update(slowest(name, [check for check in told if check]))
        return made_check(
            "collectives",
            name,
            status,
            reason=self._reason(blame) if blame else skipped[0] if skipped else "",
            seconds=max((check["seconds"] for check in told if check), default=self._longest()),
            evidence=evidence,
        )

    def teardown(self) -> dict[str, Any]:
        """Return the check of ranks that ran everything and then did not end."""
        ranks = [self._rank(rank, outcome, None) for rank, outcome in enumerate(self._outcomes)]
        blame = [
            (BLAME[outcome.ended], rank, ranks[rank]["reason"])
            for rank, outcome in enumerate(self._outcomes)
            if outcome.ended != "done"
        ]
        return made_check(
            "collectives",
            "destroy_process_group",
            "fail",
            reason=self._reason(blame),
            seconds=self._longest(),
            evidence={"backend": self._backend, "world": len(ranks), "ranks": ranks},
        )

    def _rank(self, rank: int, outcome: Outcome, check: dict[str, Any] | None) -> dict[str, Any]:
        """Return one rank's part of the evidence: how it ended only where this check is how."""
        if check is not None:
            told = {key: check["evidence"][key] for key in ("wrong",) if key in check["evidence"]}
            if "traceback" in check["evidence"]:
                told["traceback"] = check["evidence"]["traceback"][-self._kept :]
                told["warnings"] = self._logs[rank].warnings
            return {"rank": rank, **told, "reason": check.get("reason", "")}
        where = f" (in {outcome.doing[1]})" if outcome.ended != "done" and outcome.doing else ""
        evidence = dict(outcome.evidence)
        if "last_lines" in evidence:
            evidence["last_lines"] = evidence["last_lines"][-self._kept :]
        reason = outcome.reason or "it stopped before"
        return {
            "rank": rank,
            **evidence,
            "warnings": self._logs[rank].warnings,
            "reason": reason + where,
        }

    def _reason(self, blame: list[tuple[int, int, str]]) -> str:
        """Name the rank at fault, or all of them where none is more so than the others."""
        worst = min(blame)
        equal = [rank for order, rank, reason in blame if (order, reason) == (worst[0], worst[2])]
        who = f"rank {worst[1]}"
        if worst[0] == BLAME["timeout"] and len(equal) > 1:
            who = f"ranks {', '.join(map(str, equal))}"
        lines = [line for log in self._logs for line in log.warnings]
        full = shared_memory_reason([reason for *_, reason in blame] + lines)
        return f"{who}: {full + ': ' if full else ''}{worst[2]}"

    def _longest(self) -> float:
        return max(outcome.seconds for outcome in self._outcomes)


def out_of_step(check: dict[str, Any]) -> bool:
    """Whether a rank broke off in this check: wrong values alone keep it in step with the others."""
    return not check["evidence"].get("in_step")


def slowest(name: str, checks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the time and bandwidth of each size, by the rank that took longest."""
    rows = [check["evidence"].get("sizes", []) for check in checks]
    if not rows or not all(len(row) == len(rows[0]) for row in rows) or not rows[0]:
        return {}
    sizes = []
    for same in zip(*rows):
        seconds = max(row["seconds"] for row in same)
        sizes.append(bandwidth(name, len(checks), same[0]["bytes"], seconds))
    first = max(row[0]["first_seconds"] for row in rows)
    return {"sizes": sizes, "first_seconds": first, "bandwidth_source": BANDWIDTH_SOURCE}


def judge_bus_bandwidth(check: dict[str, Any], job: dict[str, Any], boards: list[str]) -> None:
    """Call a slow all_reduce degraded where its bandwidth is known: eight whole GPUs of one model."""
    planned = job["expect"].get("gpus") or []
    whole = len(planned) == len(boards) == EXPECTED_FOR_GPUS and all(
        gpu.get("partition") is None for gpu in planned
    )
    sizes = check["evidence"].get("sizes") or [{"bytes": 0}]
    if not whole or check["status"] != "pass" or sizes[-1]["bytes"] < EXPECTED_FOR_BYTES:
        return
    for board, lowest in EXPECTED_BUS_BANDWIDTH.items():
        if all(board in name.split() for name in boards):
            check.update(threshold=lowest, threshold_source=EXPECTED_BUS_BANDWIDTH_SOURCE)
            found = sizes[-1]["busbw_gb_per_s"]
            if found < lowest:
                check["status"] = "degraded"
                check["reason"] = (
                    f"the bus bandwidth of {sizes[-1]['bytes'] // MIB} MiB is {found:g} GB/s, "
                    f"eight {board} have at least {lowest:g}"
                )


def transport_check(logs: list[TransportLog]) -> dict[str, Any]:
    """Return how the ranks reached each other; over sockets is a detour inside one machine."""
    version = next((log.version for log in logs if log.version), "")
    network = [rank for rank, log in enumerate(logs) if "NET/Socket" in log.kinds]
    status, reason = "pass", ""
    if not any(log.kinds for log in logs):
        status, reason = "skipped", "the library told no transport"
    elif network:
        status = "degraded"
        reason = (
            f"rank {', '.join(map(str, network))}: over sockets, since neither peer access nor "
            "shared memory works between these GPUs"
        )
    return made_check(
        "collectives",
        "transport",
        status,
        reason=reason,
        evidence={
            "version": version,
            "shm_bytes": shared_memory_bytes(),
            "ranks": [{"rank": rank, **log.evidence()} for rank, log in enumerate(logs)],
        },
    )


def free_port() -> int:
    """Return a TCP port on loopback that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
