"""Workloads, for people and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rocmrun.console.output import out, say
from rocmrun.console.tables import plain_table, print_table
from rocmrun.core.text import one_line, short_digest
from rocmrun.core.workloads import Workload

if TYPE_CHECKING:
    from rocmrun.usecases.workloads import Stopped


def print_workloads(workloads: Sequence[Workload], *, ended: bool) -> None:
    """Print a table; of nothing nothing but a word on stderr."""
    if not workloads:
        say(
            "there is no workload"
            if ended
            else "no workload runs; rocmrun ps --all shows ended ones"
        )
        return
    table = plain_table("name", "profile", "status", "GPUs", "ports", "image")
    for workload in workloads:
        table.add_row(*(one_line(cell, 2000) for cell in _cells(workload)))
    print_table(out(), table)


def cut_off_warning(workload: Workload) -> str:
    """Return what to know of a successor whose launch was killed, and who finishes it."""
    how = "it runs on" if workload.alive else "it does not run"
    return (
        f"{workload.name} was to become {workload.successor_of} when its launch was cut off; {how}: "
        "rocmrun clean finishes that, and so does the next launch --replace"
    )


def workload_to_json(workload: Workload, *, cut_off: bool = False) -> dict[str, Any]:
    """Return JSON values; *cut_off* says that the launch of a successor was killed."""
    created = datetime.fromtimestamp(workload.created_at, UTC).isoformat(timespec="seconds")
    values = asdict(workload)
    return {
        **{name: value for name, value in values.items() if name != "controller"},
        "created_at": created,
        "health": workload.health or None,
        "digest": workload.digest or None,
        "successor_of": workload.successor_of or None,
        "cut_off": cut_off,
    }


def stopped_to_json(stopped: "Stopped") -> dict[str, Any]:
    """Return JSON values."""
    return asdict(stopped)


def _cells(workload: Workload) -> tuple[str, ...]:
    # A list of every GPU of a large host says less than how many there are.
    minors = [f"renderD{minor}" for minor in workload.render_minors]
    gpus = ", ".join(minors) if len(minors) <= 2 else f"{len(minors)} ({minors[0]} …)"  # noqa: PLR2004
    image = workload.ref + (f" @ {short_digest(workload.digest)}" if workload.digest else "")
    return (
        workload.name,
        workload.profile,
        workload.status or workload.state,
        gpus or "-",
        ", ".join(workload.ports) or "-",
        image,
    )
