"""Judge a support bundle that somebody sent: by its facts and this version's rules, and nothing of this host."""

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rocmrun.core.bundle import Bundle, Looked, parse_bundle
from rocmrun.core.bundle_outcome import JudgedBundle
from rocmrun.core.doctor import Seen
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts
from rocmrun.core.host_json import host_from_json
from rocmrun.core.report.model import ProbeReport
from rocmrun.errors import BundleInvalid, UsageError
from rocmrun.system.files import read_text
from rocmrun.usecases.doctor import Case, judged
from rocmrun.usecases.support import Question, answer


def judge_bundle(path: Path) -> JudgedBundle:
    """Return what this version's rules make of a bundle. Nothing of this host is looked at.

    Raises:
        BundleInvalid: there is none in the file, or a damaged one.
    """
    try:
        text = read_text(path, BundleInvalid)
    except BundleInvalid as error:
        error.hint = "a bundle is one JSON file: unpack an archive of it first"
        raise
    if text is None:
        msg = f"{path} does not exist"
        raise BundleInvalid(msg)
    bundle = parse_bundle(text, str(path))
    return JudgedBundle(bundle=bundle, found=judged(case_of(bundle)))


def case_of(bundle: Bundle) -> Case:
    """Return what was looked at.

    Raises:
        BundleInvalid: host or engine are none.
    """
    log, report = bundle.log_text, bundle.report
    if bundle.host is None:
        return Case(log=log, report=report)
    try:
        host = host_from_json(json.dumps(bundle.host))
        engine = TypeAdapter(EngineFacts).validate_python(bundle.engine) if bundle.engine else None
    except (UsageError, ValidationError) as error:
        msg = "the bundle is damaged: its host or engine has wrong values"
        raise BundleInvalid(msg) from error
    return Case(seen=_seen(bundle.looked or Looked(), host, engine, report), log=log, report=report)


def _seen(
    looked: Looked, host: HostFacts, engine: EngineFacts | None, report: ProbeReport | None
) -> Seen:
    asked = looked.support
    plain = {name: getattr(looked, name) for name in Looked.model_fields if name != "support"}
    return Seen(
        host=host,
        engine=engine,
        report=report,
        support=answer(
            Question(gpus=asked.gpus, claims=asked.claims, override=asked.override), host
        )
        if asked
        else None,
        **plain,
    )
