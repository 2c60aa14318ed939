"""Show AMD's support matrix: a table of releases, or one release whole."""

from typing import Any

from rich.console import Console
from rich.table import Table

from rocmrun.console.output import JSON_VERSION
from rocmrun.console.tables import indented_table, plain_table, print_table
from rocmrun.core.support.matrix import GpuRow, OsRow, Release
from rocmrun.core.support.query import Answer, Reading

_UNKNOWN = "not found"


def matrix_as_json(reading: Reading) -> dict[str, Any]:
    """Return everything that was asked for, with the sources by their ids."""
    return {
        "v": JSON_VERSION,
        "ok": True,
        "newest_fact": reading.matrix.newest_fact,
        "age_days": reading.age_days,
        "releases": [answer.to_json() for answer in reading.answers],
        "images": None
        if reading.images is None
        else [{"ref": ref, "source": source} for ref, source in reading.images],
        "sources": dict(reading.matrix.sources),
    }


def print_matrix(console: Console, reading: Reading, *, whole: bool) -> None:
    """Print one line a release, or each release *whole*."""
    if not reading.answers:
        console.print("AMD lists this for no release that the matrix knows.")
    elif whole:
        for answer in reading.answers:
            _print_release(console, answer, reading)
    else:
        known = tuple(answer for answer in reading.answers if _says_something(answer))
        if known:
            print_table(console, _releases(known))
        _print_empty(console, [a.release for a in reading.answers if a not in known])
    if reading.images is not None:
        _print_images(console, reading.images)


def _says_something(answer: Answer) -> bool:
    release = answer.release
    return bool(answer.gpus or answer.os or release.pytorch or release.drivers)


def _print_empty(console: Console, releases: list[Release]) -> None:
    """Name the releases of which no table was found, in one line: a row each would stand before what is known."""
    if releases:
        versions = ", ".join(f"{one.version}{_preview(one)}" for one in releases)
        console.print(f"of these releases no table was found: {versions}")


def _preview(release: Release) -> str:
    return " (preview)" if release.preview else ""


def age_line(reading: Reading) -> str:
    """Return how old the data are."""
    return f"newest fact: {reading.matrix.newest_fact}, {reading.age_days} days ago"


def _releases(found: tuple[Answer, ...]) -> Table:
    table = plain_table("ROCm", "date", "GPUs", "systems", "PyTorch", "drivers")
    for answer in found:
        release = answer.release
        table.add_row(
            f"{release.version}{_preview(release)}",
            release.date or _UNKNOWN,
            _gpus(answer),
            ", ".join(dict.fromkeys(row.name for row in answer.os)) or _UNKNOWN,
            ", ".join(release.pytorch) or _UNKNOWN,
            ", ".join(driver.removesuffix(".x") for driver in release.drivers) or _UNKNOWN,
        )
    return table


def _gpus(answer: Answer) -> str:
    """Return targets, each with its support where that is not plain support."""
    by_target: dict[str, set[str]] = {}
    for row in answer.gpus:
        by_target.setdefault(row.gfx, set()).add(row.support or "unknown")
    return (
        ", ".join(
            gfx if answers == {"supported"} else f"{gfx} ({'/'.join(sorted(answers))})"
            for gfx, answers in by_target.items()
        )
        or _UNKNOWN
    )


def _print_release(console: Console, answer: Answer, reading: Reading) -> None:
    release = answer.release
    console.print(
        f"ROCm {release.version}, {release.date or 'date not found'}, {release.stream}",
        style="bold",
    )
    table = indented_table()
    for gpu in answer.gpus:
        table.add_row(
            "gpu",
            gpu.support or _UNKNOWN,
            f"{gpu.model or 'every model'} ({gpu.gfx}){_limits(gpu)}",
        )
    for row in answer.os:
        table.add_row(
            "system", "listed", f"{row.name}, kernel {row.kernel or _UNKNOWN}{_only(row)}"
        )
    for name, words in _lists(release):
        table.add_row(name, "", words)
    for source in release.sources:
        table.add_row("source", "", reading.matrix.sources.get(source, source))
    print_table(console, table)
    console.print()


def _lists(release: Release) -> list[tuple[str, str]]:
    return [
        ("pytorch", ", ".join(release.pytorch) or _UNKNOWN),
        ("driver", ", ".join(release.drivers) or _UNKNOWN),
        ("driver", f"on the page of the day: {', '.join(release.drivers_at_release) or _UNKNOWN}"),
        *(("note", note) for note in release.notes),
        *(("missing", words) for words in release.unknown),
    ]


def _limits(row: GpuRow) -> str:
    words = [
        *([f"on {', '.join(row.os_only)} only"] if row.os_only else []),
        *([f"not on {', '.join(row.os_except)}"] if row.os_except else []),
        *([row.note] if row.note else []),
    ]
    return f": {'; '.join(words)}" if words else ""


def _only(row: OsRow) -> str:
    words = [
        *([f"for {', '.join(row.gpus_only)} only"] if row.gpus_only else []),
        *([row.note] if row.note else []),
    ]
    return f": {'; '.join(words)}" if words else ""


def _print_images(console: Console, images: tuple[tuple[str, str], ...]) -> None:
    if not images:
        console.print(
            "no lock here records an image with code for it: `rocmrun lock --facts` records targets",
            markup=False,
        )
    for ref, source in images:
        console.print(f"image with code for it: {ref} ({source})", markup=False)
