"""Render what diff-privileges found: a table of verdicts, the minimal profile in several forms, and JSON."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from rocmrun.console.output import JSON_VERSION
from rocmrun.console.tables import indented_table, plain_table, print_table
from rocmrun.console.tailored_seccomp import print_filter, reliability
from rocmrun.core.certificate import Certificate, PrivilegeVerdict
from rocmrun.core.docker_run.line import docker_run_line
from rocmrun.core.exposure.score import HIGHEST, Exposure
from rocmrun.core.plan import Grant, Plan
from rocmrun.core.privilege_forms import compose_form, kubernetes_form
from rocmrun.core.privilege_report import Found, StaticDifference
from rocmrun.core.privileges import Privilege, privilege_of
from rocmrun.core.recording import NOT_ASKED, Recording
from rocmrun.core.text import human_size, printable

FORMS = ("docker", "compose", "kubernetes")
_ORDER = ("required", "degraded", "untested", "removable")


def form(name: str, plan: Plan) -> str:
    """Return the minimal side as a docker line, a compose file or a Pod."""
    return {
        "docker": docker_run_line,
        "compose": compose_form,
        "kubernetes": kubernetes_form,
    }[name](plan)


def found_as_json(found: Found) -> dict[str, Any]:
    """Return the certificate with the forms of the minimal side as one JSON object."""
    return {
        "v": JSON_VERSION,
        "ok": True,
        **found.certificate.model_dump(mode="json"),
        "needs_more": found.certificate.needs_more,
        "forms": {name: form(name, found.plan) for name in FORMS},
    }


def print_found(console: Console, found: Found, forms: tuple[str, ...]) -> None:
    """Print the verdicts, what they hold for, and the forms asked for."""
    certificate = found.certificate
    kept, gone = _sorted(certificate.verdicts)
    if kept:
        print_table(console, _table(kept))
        console.print()
    if gone:
        seen = certificate.verification
        console.print(f"Without these {len(gone)} it passed {seen.passes} of {seen.runs} runs:")
        print_table(console, _removable(gone))
        console.print()
    for line in _summary(certificate):
        console.print(printable(line))
    for verdict in certificate.verdicts:
        if verdict.warning:
            console.print(printable(f"note: {verdict.privilege}: {verdict.warning}"))
    if certificate.seccomp is not None:
        console.print()
        print_filter(console, certificate.seccomp)
    for name in forms:
        console.print()
        console.print(f"The minimal side, {name}:", style="bold")
        console.print(form(name, found.plan).rstrip("\n"), soft_wrap=True)


def _sorted(
    verdicts: Iterable[PrivilegeVerdict],
) -> tuple[list[PrivilegeVerdict], list[PrivilegeVerdict]]:
    """Return what is kept, and what is not needed; of both the most severe first."""
    severe = sorted(verdicts, key=lambda one: (_ORDER.index(one.verdict), -one.severity))
    gone = [verdict for verdict in severe if verdict.verdict == "removable"]
    return [verdict for verdict in severe if verdict not in gone], gone


def _table(verdicts: Iterable[PrivilegeVerdict]) -> Table:
    table = plain_table("privilege", "verdict", "evidence", "exposes")
    for verdict in verdicts:
        cause = f" [{verdict.cause}]" if verdict.cause else ""
        seen = f"; recorded: {verdict.seen}" if verdict.seen else ""
        instead = f" (instead of {', '.join(verdict.instead_of)})" if verdict.instead_of else ""
        table.add_row(
            printable(_named(verdict) + instead),
            verdict.verdict,
            printable(verdict.evidence + cause + seen),
            verdict.exposes,
        )
    return table


def _removable(verdicts: Iterable[PrivilegeVerdict]) -> Table:
    """What is not needed has one evidence for all; the recording's word is each one's own."""
    recorded = any(verdict.seen for verdict in verdicts)
    columns = ("not needed", "exposes", *(("recorded",) if recorded else ()))
    table = plain_table(*columns)
    for verdict in verdicts:
        seen = [printable(verdict.seen)] if recorded else []
        table.add_row(printable(_named(verdict)), verdict.exposes, *seen)
    return table


def _named(verdict: PrivilegeVerdict) -> str:
    effect = " (unlocks system calls only)" if verdict.effect == "unlock" else ""
    size = verdict.privilege.removeprefix("shm:")
    room = f" ({human_size(int(size))})" if size.isdecimal() else ""
    return f"{verdict.privilege}{effect}{room}"


def _summary(certificate: Certificate) -> list[str]:
    seen = certificate.verification
    before, after = (certificate.exposure[side] for side in ("permissive", "minimal"))
    needed = ", ".join(certificate.minimal) or "nothing"
    side = certificate.minimal_profile or "the baseline"
    lines = [
        f"{certificate.profile} needs beyond {side}: {needed}",
        f"exposure {before['total']:.1f} ({before['band']}) → {after['total']:.1f} ({after['band']}), of {HIGHEST:g}",
        f"{len(certificate.runs)} runs; the minimal side passed {seen.passes} of {seen.runs}, the permissive side "
        f"{seen.control_passes} of {seen.control_runs}: {reliability(seen)}",
        *_recorded(certificate.evidence),
    ]
    if not certificate.one_minimal:
        lines.append(
            "not every kept privilege was left out by itself: the set is sufficient, and can be too large"
        )
    lines.append(
        f"holds for this command, {certificate.image_ref} @ {certificate.image_digest or certificate.image_id}, "
        f"{certificate.engine.kind} {certificate.engine.version} and kernel {certificate.host.kernel}; no proof for other inputs"
    )
    return lines


def _recorded(evidence: Recording) -> list[str]:
    """Say what a traced run saw, or why there is nothing; nothing where nobody asked."""
    if evidence == NOT_ASKED:
        return []
    if not evidence.recorded:
        return [f"nothing was recorded: {evidence.why}"]
    refused = sum(one.times for one in evidence.refused)
    kinds = "no word of capabilities from this kernel"
    if evidence.capabilities is not None:
        kinds = f"{len(evidence.capabilities)} capabilities asked for"
    partly = f"; incomplete: {evidence.why}" if evidence.why else ""
    calls = len(evidence.calls) + len(evidence.unnamed)
    return [f"recorded in one run: {calls} system calls, {refused} refusals, {kinds}{partly}"]


def static_as_json(difference: StaticDifference) -> dict[str, Any]:
    """Return the static difference as one JSON object."""
    return {
        "v": JSON_VERSION,
        "ok": True,
        "sides": [
            {
                "name": name,
                "only": [
                    {**asdict(grant), "exposes": _exposes(grant.what, difference, index)}
                    for grant in only
                ],
                "exposure": exposure.to_json(),
            }
            for index, (name, only, exposure) in enumerate(_sides(difference))
        ],
        "both": list(difference.both),
        "untested": difference.untested,
    }


def print_static(console: Console, difference: StaticDifference) -> None:
    """Print what either side alone has, and both exposures."""
    for index, (name, only, exposure) in enumerate(_sides(difference)):
        title = f"Only {name} ({len(only)}), exposure {exposure.total:.1f}, {exposure.band}"
        console.print(printable(f"{title}{':' if only else ''}"), style="bold")
        table = indented_table()
        for grant in sorted(only, key=lambda one: -_severity(one.what, difference, index)):
            table.add_row(
                printable(grant.what),
                printable(grant.reason),
                _exposes(grant.what, difference, index),
            )
        if only:
            print_table(console, table)
        console.print()
    for item, why in difference.untested.items():
        console.print(printable(f"{item} is in no plan: {why}"))
    console.print(f"{len(difference.both)} rights are in both; nothing was run")


def _sides(
    difference: StaticDifference,
) -> Iterator[tuple[str, tuple[Grant, ...], Exposure]]:
    return zip(difference.names, difference.only, difference.exposures, strict=True)


def _exposes(what: str, difference: StaticDifference, side: int) -> str:
    """Return what the catalogue says of a grant as it works on one side; "" for what is no privilege."""
    known = _known(what, difference, side)
    return known.exposes if known else ""


def _severity(what: str, difference: StaticDifference, side: int) -> float:
    known = _known(what, difference, side)
    return known.severity if known else 0.0


def _known(what: str, difference: StaticDifference, side: int) -> Privilege | None:
    rights = {*difference.both, *(grant.what for grant in difference.only[side])}
    try:
        return privilege_of(what, root="user:root" in rights)
    except ValueError:
        return None
