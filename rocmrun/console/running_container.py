"""Show what was seen of a container that runs: a line while it is watched, then tables, checks and causes."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rocmrun.console.doctor import diagnosis_as_json, print_diagnosis
from rocmrun.console.output import err, settings
from rocmrun.console.tables import plain_table, print_table
from rocmrun.core.running.measured import Measured, measured
from rocmrun.core.running.observation import Observation, Rate
from rocmrun.core.text import human_size, printable

if TYPE_CHECKING:
    from rocmrun.usecases.examine_container import Examined

MOST_PROCESSES = 8


@contextlib.contextmanager
def shown_watch(seconds: float) -> Iterator[Callable[[Observation], None]]:
    """Show a line that is drawn again with each sample, on a terminal; what is yielded takes what was seen."""
    if not sys.stderr.isatty() or settings.quiet:
        yield _nothing
        return
    with err().status("looking") as line:
        yield lambda seen: line.update(printable(live_line(seen, seconds), 200))


def _nothing(_seen: Observation) -> None:
    """Show nothing: nobody watches."""


def live_line(seen: Observation, seconds: float) -> str:
    """Return how things stand in the last sample."""
    words = [f"{seen.seconds:.0f} of {seconds:.0f} s"]
    for gpu, sensors in zip(seen.gpus, seen.last.sensors, strict=True):
        if sensors.busy_percent is not None:
            words.append(f"GPU {gpu.index} {sensors.busy_percent} %")
    if seen.cpus is not None:
        words.append(f"{seen.cpus:.1f} CPUs")
    if seen.last.cgroup.memory_bytes is not None:
        words.append(f"{human_size(seen.last.cgroup.memory_bytes)} of memory")
    return ", ".join([*words, "Ctrl-C ends it"])


def examined_as_json(found: "Examined") -> dict[str, Any]:
    """Return one object: the doctor's, with what was measured beside it."""
    seen, record = found.seen, found.seen.record
    return {
        **diagnosis_as_json(found.diagnosis),
        "container": {
            "id": record.container_id,
            "name": record.name,
            "profile": record.profile or None,
            "run": record.run or None,
            "plan": record.plan or None,
            "state": record.state,
            "exit_code": None if record.runs else record.exit_code,
            "oom_killed": record.oom_killed,
            "health": record.health or None,
            "restarts": record.restarts,
        },
        "looked": {
            "samples": max(seen.taken, len(seen.samples)),
            "kept": len(seen.samples),
            "seconds": round(seen.seconds, 3),
            "interrupted": seen.interrupted,
            "problem": seen.problem or None,
        },
        "gpus": [
            {"index": gpu.index, "pci_address": gpu.pci_address, "gfx": gpu.gfx,
             "render_minor": gpu.render_minor, "partition": gpu.partition}
            for gpu in seen.gpus
        ],
        "measured": [
            {"what": row.name, "unit": row.unit or None, "gpu": row.gpu, "least": round(row.spread.least, 3),
             "mean": round(row.spread.mean, 3), "most": round(row.spread.most, 3)}
            for row in measured(seen)
        ],
        "processes": [_process_as_json(rate) for rate in seen.rates],
    }  # fmt: skip


def _process_as_json(rate: Rate) -> dict[str, Any]:
    process = rate.process
    return {
        "pid": process.pid,
        "name": process.name,
        "cpus": round(rate.cpus, 3),
        "nodes": None if process.nodes is None else sorted(process.nodes),
        "engine_share": round(rate.engine_share, 3),
        "vram_bytes": sum(client.vram_bytes for client in process.clients),
    }


def print_examined(console: Console, found: "Examined") -> None:
    """Print what was measured, who did it, the checks, and what the log points to."""
    seen, record = found.seen, found.seen.record
    whose = f" (profile {record.profile})" if record.profile else ""
    console.print(printable(f"container {record.name}{whose}: {_how_long(seen)}\n"), style="bold")
    if rows := measured(seen):
        _print_measured(console, rows)
    if seen.rates:
        _print_processes(console, seen.rates)
    print_diagnosis(console, found.diagnosis)


def _how_long(seen: Observation) -> str:
    if not seen.samples:
        return seen.record.state
    stopped = ", ended by Ctrl-C" if seen.interrupted else ""
    kept, taken = len(seen.samples), max(seen.taken, len(seen.samples))
    thinned = f", of which {kept} were kept, evenly" if kept < taken else ""
    return f"{taken} samples in {seen.seconds:.1f} s{thinned}{stopped}"


def _print_measured(console: Console, rows: tuple[Measured, ...]) -> None:
    table = plain_table("", "least", "mean", "most")
    for row in rows:
        of = "" if row.gpu is None else f"GPU {row.gpu} "
        digits = 2 if not row.unit else 0
        values = (f"{value:.{digits}f}" for value in (row.spread.least, row.spread.mean, row.spread.most))  # fmt: skip
        table.add_row(f"{of}{row.name}{f' ({row.unit})' if row.unit else ''}", *values)
    print_table(console, table)
    console.print()


def _print_processes(console: Console, rates: tuple[Rate, ...]) -> None:
    table = plain_table("process", "CPUs", "GPU nodes that it holds", "VRAM")
    for rate in rates[:MOST_PROCESSES]:
        process = rate.process
        nodes = "not to be seen" if process.nodes is None else ", ".join(sorted(process.nodes)) or "-"  # fmt: skip
        vram = sum(client.vram_bytes for client in process.clients)
        table.add_row(f"{process.pid} {process.name}", f"{rate.cpus:.2f}", nodes, human_size(vram) if vram else "-")  # fmt: skip
    print_table(console, table)
    if len(rates) > MOST_PROCESSES:
        console.print(f"and {len(rates) - MOST_PROCESSES} more that do less")
    console.print()
