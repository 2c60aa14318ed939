"""Doctor: look at the host in order, read what failed, and name the cause with the next step."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rocmrun.core.closest import closest
from rocmrun.core.diagnosis.diagnose import HIGH, diagnose
from rocmrun.core.diagnosis.finding import Finding, Kind, Reason
from rocmrun.core.diagnosis.from_report import report_text
from rocmrun.core.diagnosis.kinds import parse_kinds
from rocmrun.core.diagnosis.log_text import MOST_CHARACTERS
from rocmrun.core.diagnosis.reading import read_text
from rocmrun.core.doctor import SURE, Check, Diagnosis, Seen
from rocmrun.core.doctor_checks import host_checks
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts
from rocmrun.core.image_report import environment_lints, image_report
from rocmrun.core.report.model import ProbeReport
from rocmrun.core.report.parser import ReportParser
from rocmrun.errors import HostNotReady, PlanRefused, RocmrunError, UsageError
from rocmrun.system.log_files import BoundedText, read_bounded
from rocmrun.system.package_data import read_findings
from rocmrun.system.sysfs import read_host
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.prepare import Prepared, load, nothing_is_pulled, prepare


def known_kinds() -> Mapping[str, Kind]:
    """Return what is known of every kind."""
    return parse_kinds(read_findings())


def explain(slug: str) -> Kind:
    """Return what is known of one kind.

    Raises:
        UsageError: there is no such kind.
    """
    kinds = known_kinds()
    if slug in kinds:
        return kinds[slug]
    near = closest(slug, kinds)
    msg = f"there is no finding {slug!r}"
    raise UsageError(msg, hint=f"rocmrun explain {near}" if near else "rocmrun explain --list")


def causes_in(text: str) -> tuple[Finding, ...]:
    """Return what a text points to."""
    return diagnose(read_text(text), known_kinds())


def likely_cause(report: ProbeReport) -> Finding | None:
    """Return the first cause that a failed probe points to, if one is likely."""
    found = causes_in(report_text(report))
    return found[0] if found and found[0].confidence in SURE else None


def cause_lines(finding: Finding | None) -> tuple[str, ...]:
    """Return what to add to an error's details: the likely cause, and where to read on."""
    if finding is None:
        return ()
    return (f"likely cause: {finding.kind.title}: rocmrun explain {finding.kind.slug}",)


def add_cause(error: RocmrunError) -> None:
    """Add the likely cause to an error that is told in another program's words."""
    found = causes_in("\n".join((error.message, *error.details)))
    if found and found[0].confidence in SURE:
        error.details = (*error.details, *cause_lines(found[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that a diagnosis is made from, with nothing judged yet.

    Attributes:
        seen: The host with its engine; None where a text alone is asked about.
        log: What a program printed.
        log_unread: What of it was not read, in words.
        prepared: The plan and what it was made from; None without a profile, or where none can be made.
    """

    seen: Seen | None = None
    log: str | None = None
    log_unread: str = ""
    report: ProbeReport | None = None
    prepared: Prepared | None = None


def examine(
    ask: Ask | None,
    *,
    host_root: Path,
    log: str | None,
    report: ProbeReport | None,
    connect: Callable[[], Engine],
) -> Diagnosis:
    """Return the host's checks (unless a text alone is asked about) and the causes that the texts point to."""
    return judged(look(ask, host_root=host_root, log=log, report=report, connect=connect))


def look(
    ask: Ask | None,
    *,
    host_root: Path,
    log: str | None,
    report: ProbeReport | None,
    connect: Callable[[], Engine],
    host: HostFacts | None = None,
    always: bool = False,
) -> Case:
    """Look at the host, unless a text alone is asked about.

    Args:
        ask: The profile and what the command line changes in it.
        host_root: Read in place of "/".
        log: What a program printed.
        report: What a probe found.
        connect: Returns the engine.
        host: Facts saved on another machine: then neither this host nor its engine is looked at.
        always: Look at the host beside a text too.
    """
    if ask is None and host is None and not always and not (log is None and report is None):
        return Case(log=log, report=report)
    seen, prepared = _seen(ask, host or host_root, report, connect)
    return Case(seen=seen, log=log, report=report, prepared=prepared)


def judged(case: Case) -> Diagnosis:
    """Return what the checks and the rules make of a case."""
    kinds = known_kinds()
    seen, log, report = case.seen, case.log, case.report
    checks = host_checks(seen) if seen else ()
    text = "\n".join([*([log] if log else []), *([report_text(report)] if report else [])])
    # A host without GPUs explains no failure of a job that passes none.
    told = seen if seen and seen.wants_gpus is not False else None
    host, engine = (told.host, told.engine) if told else (None, seen.engine if seen else None)
    found = diagnose(read_text(text, host=host, engine=engine), kinds) if text else ()
    return Diagnosis(
        checks=checks,
        findings=_with_checks(found, checks, kinds),
        kinds=kinds,
        failure=report.reason if report and not report.usable else "",
    )


def _with_checks(
    found: tuple[Finding, ...], checks: tuple[Check, ...], kinds: Mapping[str, Kind]
) -> tuple[Finding, ...]:
    """Put what stands in the way on this host before what the text points to, in the order of mending."""
    blockers: dict[str, list[Reason]] = {}
    for check in checks:
        if check.result == "blocker" and check.kind:
            reason = Reason(meaning=check.evidence, points=HIGH, lines=())
            blockers.setdefault(check.kind, []).append(reason)
    here = [
        Finding(kind=kinds[slug], confidence="high", points=HIGH, reasons=tuple(reasons))
        for slug, reasons in blockers.items()
    ]
    here.sort(key=lambda finding: finding.kind.order)
    return (*here, *(finding for finding in found if finding.kind.slug not in blockers))


def _seen(
    ask: Ask | None,
    place: HostFacts | Path,
    report: ProbeReport | None,
    connect: Callable[[], Engine],
) -> tuple[Seen, Prepared | None]:
    engine, facts, problem = None, None, ""
    if isinstance(place, Path):
        try:
            engine = connect()
            facts = engine.facts()
        except RocmrunError as error:
            problem = error.message
    if ask is None:
        return Seen(host=_host(place), engine=facts, engine_problem=problem, report=report), None
    try:
        prepared = prepare(ask, engine, fetch=False, on_pull=nothing_is_pulled)
    except (HostNotReady, PlanRefused) as error:
        # What the plan cannot be made from is what the doctor is asked about.
        refusal = (error.slug, error.message, error.hint or "")
        seen = Seen(
            host=_host(place),
            wants_gpus=load(ask).profile.accelerator == "rocm",
            engine=facts,
            engine_problem=problem,
            refusal=refusal,
            report=report,
        )
        return seen, None
    return _of_plan(prepared, facts, problem, report), prepared


def _host(place: HostFacts | Path) -> HostFacts:
    return read_host(place) if isinstance(place, Path) else place


def _of_plan(
    prepared: Prepared, facts: EngineFacts | None, problem: str, report: ProbeReport | None
) -> Seen:
    plan, image = prepared.plan, prepared.image
    return Seen(
        host=prepared.host,
        wants_gpus=bool(plan.gpus) and plan.probe.accelerator == "rocm",
        engine=facts,
        engine_problem=problem,
        denied=tuple(
            f"{node.path} ({node.owner}, {node.mode}): {node.sentence or node.errno}"
            for node in prepared.access.nodes
            if node.errno not in {"0", "unknown"}
        ),
        unreadable=tuple(
            f"{mount.source}: {mount.sentence}"
            for mount in prepared.access.mounts
            if mount.errno == "EACCES"
        ),
        memlock=next((limit.hard for limit in plan.ulimits if limit.name == "memlock"), None),
        support=prepared.support,
        policy=prepared.loaded.profile.support.policy,
        image=image_report(image, prepared.claims),
        lints=environment_lints(image.environment if image else {}, dict(plan.env)),
        torch=prepared.claims.torch if prepared.claims else None,
        report=report,
    )


def read_log(path: str) -> BoundedText:
    """Return the text of a log, of standard input for "-": as much of its start and end as is looked at.

    Raises:
        UsageError: it cannot be read.
    """
    if not path:
        # As a variable that is not set leaves it: no other question is answered in its place.
        msg = "--log names no file"
        raise UsageError(msg, hint="- is standard input")
    try:
        return read_bounded(path, MOST_CHARACTERS)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise UsageError(msg) from error


def read_report(path: Path) -> ProbeReport:
    """Return the probe's report in a record of a run, in a report by itself, or in the probe's own lines.

    Raises:
        UsageError: there is none in it.
    """
    text = read_log(str(path)).text
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        inner = value.get("probe") or value
        try:
            return ProbeReport.model_validate(inner)
        except ValidationError:
            value = None
    parser = ReportParser()
    if parser.feed(text.encode()):
        return parser.finish(exit_code=None)
    msg = f"{path} holds no report of a probe"
    raise UsageError(msg, hint="rocmrun probe PROFILE --report FILE")
