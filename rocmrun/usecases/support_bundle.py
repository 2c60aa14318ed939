"""Write what a diagnosis was made from, fit for strangers: a support bundle."""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import fields as dataclass_fields
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rocmrun import __version__
from rocmrun.core.bundle import (
    FORMAT,
    READ_THIS_FIRST,
    Bundle,
    LogPart,
    Looked,
    Made,
    SupportAsked,
    bundle_text,
)
from rocmrun.core.bundle_bounds import bounded_log, bounded_report
from rocmrun.core.bundle_facts import (
    claims_facts,
    command,
    engine_facts,
    host_facts,
    image_facts,
    kind_of_host,
    plan_facts,
    profile_facts,
)
from rocmrun.core.bundle_outcome import WrittenBundle
from rocmrun.core.doctor import Diagnosis, Seen
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import DeviceNode, Gpu, HostFacts
from rocmrun.core.image_report import Declared, ImageReport
from rocmrun.core.known_strings import Personal
from rocmrun.core.lock import LockedFacts
from rocmrun.core.plan import Plan
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.public_words import public_words
from rocmrun.core.redaction import Redactor
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.run_record import RefusedRun, RunRecord
from rocmrun.errors import BundleInvalid, BundleUnwritable, RocmrunError
from rocmrun.system.files import read_text, write_atomic
from rocmrun.system.package_data import read_findings, read_public_words
from rocmrun.system.profile_search import shipped_texts
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.doctor import Case, judged
from rocmrun.usecases.judge_bundle import case_of
from rocmrun.usecases.personal import personal_of, personal_of_caller
from rocmrun.usecases.prepare import Prepared, load
from rocmrun.usecases.proofs import earlier_proof
from rocmrun.usecases.run_report import check_report_path, now
from rocmrun.usecases.support import question

Render = Callable[[Diagnosis], dict[str, Any]]
Run = RunRecord | RefusedRun


def check_bundle_path(path: Path, *, force: bool) -> None:
    """Refuse a place where no bundle can be written, before anything is looked at.

    Raises:
        BundleUnwritable: with the reason.
    """
    if path.exists() and not force:
        msg = f"{path} is there already"
        raise BundleUnwritable(msg, hint="another name, or --force to replace it")
    try:
        check_report_path(path, "--bundle", "the bundle")
    except RocmrunError as error:
        raise BundleUnwritable(error.message) from error


def write_bundle(
    case: Case,
    ask: Ask | None,
    path: Path,
    *,
    found: Diagnosis,
    render: Render,
    run: Run | None = None,
    personal: Callable[[], Personal] = personal_of_caller,
) -> WrittenBundle:
    """Write what *case* was made from to *path*, for its owner's eyes alone until they send it.

    Args:
        case: What was looked at.
        ask: The profile that it was looked at for.
        path: The file; one that is there is replaced.
        found: What is found in *case* as it is.
        render: Gives what was found as JSON values.
        run: The record of a run that the report came in.
        personal: Tells what is private of the caller.

    Raises:
        BundleUnwritable: it cannot be written.
    """
    known = personal() | personal_of(case, ask)
    loaded = load(ask) if ask else None
    bundle = make_bundle(case, known, loaded=loaded, run=run, at=now(), render=render)
    text = bundle_text(bundle)
    write_atomic(path, text, error=BundleUnwritable, private=True)
    return WrittenBundle(
        path=str(path),
        size_bytes=len(text),
        bundle=bundle,
        differs=_differs(found, bundle.kinds),
    )


def make_bundle(
    case: Case,
    personal: Personal,
    *,
    at: str,
    render: Render,
    loaded: LoadedProfile | None = None,
    run: Run | None = None,
) -> Bundle:
    """Return the bundle of *case*."""
    redactor = Redactor(personal, _words())
    host = case.seen.host if case.seen else None
    made = Made(rocmrun=__version__, at=at, host=kind_of_host(host, redactor))
    asked = profile_facts(loaded.name, loaded.profile, redactor) if loaded else None
    parts = _parts(case, run, redactor)
    first = Bundle(made=made, profile=asked, **parts).model_dump(mode="json")
    # Who is named in one place with a sign ("/home/…") is known in all others then.
    redactor.learn()
    bundle = Bundle.model_validate(redactor.known(first))
    masked = {kind: count for kind, count in sorted(redactor.replaced.items()) if count}
    found = render(judged(case_of(bundle)))
    return bundle.model_copy(update={"found": found, "masked": masked})


@cache
def _words() -> frozenset[str]:
    """Return what is public: our own words, those of the profiles that we ship, and names of fields."""
    records = (Bundle, Looked, Made, SupportAsked, LogPart, ProbeReport, ProbeCheck, LockedFacts)
    values = (HostFacts, Gpu, DeviceNode, EngineFacts, Plan, ImageReport, Declared)
    names = [name for kind in records for name in kind.model_fields]
    names += [field.name for kind in values for field in dataclass_fields(kind)]
    own = (FORMAT, *READ_THIS_FIRST, *names)
    return public_words(read_findings(), read_public_words(), " ".join(own), *shipped_texts())


def read_run(path: Path) -> Run | None:
    """Return the record of a run, where the file of a report is one."""
    try:
        text = read_text(path, BundleInvalid)
        for record in (RunRecord, RefusedRun):
            with contextlib.suppress(ValidationError):
                return record.model_validate_json(text or "")
    except BundleInvalid:
        return None
    return None


def _parts(case: Case, run: Run | None, redactor: Redactor) -> dict[str, Any]:
    """Return what goes into the bundle, each part without what is private."""
    seen, prepared = case.seen, case.prepared
    log, log_cut = bounded_log(case.log, redactor.text, case.log_unread)
    report, report_cut = bounded_report(
        case.report, redactor.value, lambda words: command(words, redactor)
    )
    return {
        "host": host_facts(seen.host, redactor) if seen else None,
        "engine": engine_facts(seen.engine, redactor) if seen and seen.engine else None,
        "looked": _looked(seen, prepared, redactor) if seen else None,
        "plan": plan_facts(prepared.plan, redactor) if prepared else None,
        "report": report,
        "run": _run(run, redactor) if run else None,
        "proof": _proof(prepared, redactor) if prepared else None,
        "log": log,
        "cut": (*log_cut, *report_cut),
    }


def _looked(seen: Seen, prepared: Prepared | None, redactor: Redactor) -> Looked:
    asked = question(prepared.plan, prepared.claims, prepared.image) if prepared else None
    return Looked(
        wants_gpus=seen.wants_gpus,
        policy=seen.policy,
        engine_problem=redactor.text(seen.engine_problem),
        support=SupportAsked(
            gpus=asked.gpus,
            claims=claims_facts(asked.claims, redactor),
            override=redactor.text(asked.override) if asked.override else None,
        )
        if asked
        else None,
        image=image_facts(seen.image, redactor) if seen.image else None,
        lints=tuple(map(redactor.text, seen.lints)),
        torch=redactor.text(seen.torch) if seen.torch else None,
        denied=tuple(map(redactor.text, seen.denied)),
        unreadable=tuple(map(redactor.text, seen.unreadable)),
        refusal=(seen.refusal[0], redactor.text(seen.refusal[1]), redactor.text(seen.refusal[2]))
        if seen.refusal
        else None,
    )


def _run(run: Run, redactor: Redactor) -> dict[str, Any]:
    """Return how a run went; what it ran is told by the plan."""
    kept = (
        "isolation", "probe_outcome", "probe_reason", "torch_version", "rocm_version", "cuda_version", "exit_code",
        "error", "started_at", "ended_at",
    )  # fmt: skip
    values = run.model_dump(mode="json")
    shown: dict[str, Any] = redactor.value({name: values[name] for name in kept if name in values})
    return shown


def _proof(prepared: Prepared, redactor: Redactor) -> dict[str, Any] | None:
    plan = prepared.plan
    found = earlier_proof(plan, prepared.host, prepared.engine, plan.probe.level)
    if found is None:
        return None
    report, why = found
    return {
        "why_it_counts": why,
        "status": report.status,
        "level": report.level,
        "probe_version": redactor.text(report.probe_version),
        "not_passed": [
            redactor.text(f"{check.label}: {check.reason}")
            for check in report.checks
            if check.status in {"fail", "degraded"}
        ],
    }


def _differs(whole: Diagnosis, kinds: Iterable[str]) -> str:
    found = [finding.kind.slug for finding in whole.findings]
    if found == list(kinds):
        return ""
    return (
        f"without masking and cutting the causes are {', '.join(found) or 'none'};"
        f" by the bundle they are {', '.join(kinds) or 'none'}"
    )
