"""A run by hand: its options, and the table that people read in the end."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Iterable

from rocmrun.probe.parts.events import STATUSES, write_all
from rocmrun.probe.parts.settings import ACCELERATORS, LEVELS, RUNTIMES, TIMEOUTS

WIDEST_REASON = 160
MOST_DEVICES = 8  # that have a column of their own


def parse_arguments(arguments: Iterable[str]) -> dict[str, Any]:
    """Return the settings of a run by hand."""
    import argparse  # here and below: every child reads this program, and none has options

    parser = argparse.ArgumentParser(
        prog="gpu_probe.py",
        description="Prove that every GPU here computes right. JSON Lines on stdout; progress, and a "
        "table in the end, on stderr.",
        epilog="example: python3 gpu_probe.py --accelerator rocm --level standard > report.jsonl",
    )
    add = parser.add_argument
    add("--level", choices=LEVELS, default="quick", help="how much to try (default: quick)")
    add(
        "--accelerator",
        choices=ACCELERATORS,
        default="rocm",
        help="what must be found (default: rocm)",
    )
    add("--runtime", choices=RUNTIMES, default="torch", help="what computes (default: torch)")
    add(
        "--expect-json",
        type=json.loads,
        default={},
        metavar="JSON",
        help='what the environment should be: {"uid": 1000, "gpus": [{"gfx": "gfx942"}]}',
    )
    add(
        "--operator",
        action="append",
        default=[],
        metavar="MODULE",
        help="an extension that must work, as in flash_attn; may be repeated; from standard on",
    )
    add(
        "--checks",
        type=checks_in,
        default=[],
        metavar="FILE",
        help="checks of your own: a JSON list of objects with the keys of [[probe.checks]] in a profile",
    )
    add("--size", type=int, help="rows of the square matrices (default: by level)")
    add("--timeout", type=float, default=600, help="seconds for all of it (default: 600)")
    add(
        "--stage-timeout",
        type=stage_timeout,
        action="append",
        default=[],
        metavar="STAGE=SECONDS",
        help=f"seconds for one stage of one process: {', '.join(sorted(TIMEOUTS))}; may be repeated",
    )
    given = parser.parse_args(list(arguments))
    return {
        "level": given.level,
        "accelerator": given.accelerator,
        "runtime": given.runtime,
        "size": given.size,
        "operators": given.operator,
        "checks": given.checks,
        "timeout_seconds": given.timeout,
        "timeouts": dict(given.stage_timeout),
        "expect": given.expect_json,
    }


def stage_timeout(text: str) -> tuple[str, float]:
    """Return a stage and its seconds."""
    import argparse

    stage, _, seconds = text.partition("=")
    if stage not in TIMEOUTS:
        msg = f"{stage} is no stage"
        raise argparse.ArgumentTypeError(msg)
    try:
        return stage, float(seconds)
    except ValueError:
        msg = f"{text} is not STAGE=SECONDS"
        raise argparse.ArgumentTypeError(msg) from None


def checks_in(name: str) -> list[dict[str, Any]]:
    """Return the checks in a file, with the text of the Python files that they name, relative to it."""
    import argparse

    try:
        checks = json.loads(Path(name).read_text(encoding="utf-8"))
        for check in checks:
            check.pop("writable_mounts", None)  # it is about a container
            if "file" in check:
                path = Path(name).parent / check.pop("file")
                check["source"] = path.read_text(encoding="utf-8")
    except (OSError, ValueError, AttributeError, TypeError) as error:
        msg = f"{name}: {error}"
        raise argparse.ArgumentTypeError(msg) from None
    return list(checks)


def print_summary(checks: list[dict[str, Any]]) -> None:
    """Write the table of all checks for people."""
    with contextlib.suppress(OSError):
        write_all(2, "\n".join(["", *summary_lines(checks), "", ""]).encode(errors="replace"))


def summary_lines(checks: list[dict[str, Any]]) -> list[str]:
    """Return a table of all checks: those that are not as they should be first, with their reasons."""
    wrong = [
        [
            check["status"],
            "" if check["device"] is None else f"device {check['device']}",
            f"{check['group']} {check['name']}",
            reason_of(check),
        ]
        for status in ("fail", "degraded")
        for check in checks
        if check["status"] == status
    ]
    devices = sorted({check["device"] for check in checks if check["device"] is not None}, key=str)
    if len(devices) > MOST_DEVICES:
        devices = []
    rows: dict[tuple[str, str], dict[Any, str]] = {}
    for check in checks:
        cells = rows.setdefault((check["group"], check["name"]), {})
        where = check["device"] if check["device"] in devices else None
        cells[where] = worst(cells.get(where, "skipped"), check["status"])
    heads = [
        "check",
        *([""] if devices else ["status"]),
        *(f"device {device}" for device in devices),
    ]
    table = [
        [f"{group} {name}", cells.get(None, ""), *(cells.get(device, "") for device in devices)]
        for (group, name), cells in rows.items()
    ]
    lines = [*aligned([["status", "where", "check", "reason"], *wrong]), ""] if wrong else []
    return [*lines, *aligned([heads, *table])]


def reason_of(check: dict[str, Any]) -> str:
    """Return why a check is not as it should be, in one line of a table."""
    reason = " ".join(str(check.get("reason", "")).split())
    return reason if len(reason) <= WIDEST_REASON else reason[: WIDEST_REASON - 1] + "…"


def worst(one: str, other: str) -> str:
    """Return the worse of two statuses; skipped says less than any other."""
    order = ("skipped", "pass", "degraded", "fail")
    assert set(order) == set(STATUSES)
    return max(one, other, key=order.index)


def aligned(rows: list[list[str]]) -> list[str]:
    """Return rows as lines with their columns below each other."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
