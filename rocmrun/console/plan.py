"""Render a plan: for people, and as JSON."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from rocmrun.console.access import print_access
from rocmrun.console.exposure import exposure_line, print_exposure
from rocmrun.console.output import JSON_VERSION
from rocmrun.console.support import print_support, support_line
from rocmrun.console.tables import indented_table, print_table
from rocmrun.core.create_request import create_request
from rocmrun.core.docker_run.line import docker_run_line
from rocmrun.core.engine_report import engine_line, engine_to_json
from rocmrun.core.image_report import ImageReport
from rocmrun.core.plan import Plan
from rocmrun.core.plan_view import PlanView
from rocmrun.core.probing.image import WHOSE, named
from rocmrun.core.text import human_size, printable


def plan_as_json(view: PlanView) -> dict[str, Any]:
    """Return the plan as one JSON object, with its hash, its docker line and where it was read from."""
    plan, host = view.plan, view.host
    return {
        "v": JSON_VERSION,
        "ok": True,
        "plan": asdict(plan),
        "hash": plan.hash,
        "exposure": view.exposure.to_json(),
        "access": view.access.to_json(),
        "image": view.image.to_json(),
        "support": view.support.to_json() if view.support else None,
        "docker_run": docker_run_line(plan),
        "create_request": create_request(plan, role="workload"),
        "sources": {"profile": view.profile_path, "lock": view.lock_path},
        "engine": engine_to_json(view.engine, host) if view.engine else None,
        "host": {"kernel": host.kernel, "driver_version": host.driver_version, "root": host.root},
    }


def print_plan(console: Console, view: PlanView) -> None:
    """Print what would be granted, what is left out, and the equivalent docker line."""
    plan = view.plan
    for name, value in _header(view):
        console.print(f"{name:<10} {printable(value)}", markup=False)
    console.print()
    _print_gpus(console, plan)
    console.print(f"Grants beyond the empty container ({len(plan.grants)}):", style="bold")
    print_table(console, _grant_table(plan))
    console.print()
    console.print("Left out of AMD's usual docker line:", style="bold")
    for item in plan.left_out:
        console.print(f"  {item.what}: {item.reason}", markup=False)
    if view.support:
        console.print()
        print_support(console, view.support)
    print_access(console, view.access)
    console.print()
    print_exposure(console, view.exposure)
    if plan.notes:
        console.print()
        console.print("Notes:", style="bold")
        for note in plan.notes:
            console.print(f"  {printable(note)}", markup=False)
    console.print()
    console.print("The same container without rocmrun:", style="bold")
    console.print(docker_run_line(plan), markup=False, soft_wrap=True)


def _header(view: PlanView) -> list[tuple[str, str]]:
    plan = view.plan
    digest = plan.image.digest or (
        f"local image {plan.image.image_id}"
        if plan.image.source == "local"
        else "not locked: launch refuses it until `rocmrun lock` pins it"
    )
    limits = [
        f"{human_size(plan.memory_bytes)} memory" if plan.memory_bytes else "no memory limit",
        f"{plan.pids} processes",
    ]
    if plan.cpus:
        limits.append(f"{plan.cpus:g} cpus")
    return [
        ("profile", f"{plan.profile} ({view.profile_path or '?'})"),
        ("image", plan.image.ref),
        ("digest", digest),
        *([("declares", _declared(view.image))] if view.image.declared else []),
        ("lock", view.lock_path or "none that covers this image"),
        ("command", " ".join((*(plan.entrypoint or ()), *plan.command)) or "the image's own"),
        (
            "user",
            f"{plan.user}, no capabilities"
            if not plan.cap_add
            else f"{plan.user}, capabilities {', '.join(plan.cap_add)}",
        ),
        ("root fs", "read-only" if plan.read_only_root else "writable"),
        ("network", plan.network),
        ("limits", ", ".join(limits)),
        ("engine", engine_line(view.engine, view.host) if view.engine else "none was asked"),
        ("isolation", plan.isolation),
        ("probe", f"{plan.probe.level}, {plan.probe.accelerator}, {plan.probe.runtime}"),
        *([("checks", _own_checks(plan))] if plan.probe.checks else []),
        *([("probe in", f"{named(plan.probe.image)}: {WHOSE}")] if plan.probe.image else []),
        *([("support", support_line(view.support))] if view.support else []),
        ("plan", plan.hash[:16]),
        ("exposure", exposure_line(view.exposure)),
    ]


def _declared(image: ImageReport) -> str:
    return ", ".join(str(claim) for claim in image.declared)


def _print_gpus(console: Console, plan: Plan) -> None:
    if not plan.gpus:
        return
    table = Table(
        "HIP index",
        "KFD index",
        "PCI address",
        "partition",
        "render node",
        "gfx",
        "unique id",
        box=None,
        pad_edge=False,
    )
    for position, gpu in enumerate(plan.gpus):
        table.add_row(
            str(position),
            str(gpu.index),
            gpu.pci_address or "unknown",
            "-" if gpu.partition is None else str(gpu.partition),
            f"renderD{gpu.render_minor}",
            gpu.gfx or "unknown",
            gpu.unique_id or "none",
        )
    print_table(console, table)
    console.print()


def _grant_table(plan: Plan) -> Table:
    table = indented_table()
    table.add_column(no_wrap=True)
    table.add_column()
    for grant in plan.grants:
        table.add_row(
            printable(grant.what), f"{printable(grant.reason)} [{printable(grant.asked_by)}]"
        )
    return table


def _own_checks(plan: Plan) -> str:
    """Return the profile's own checks with the level from which each runs; one that writes says so."""
    return ", ".join(
        f"{check.name} (from {check.level}{', writes to mounts' if check.writable_mounts else ''})"
        for check in plan.probe.checks
    )
