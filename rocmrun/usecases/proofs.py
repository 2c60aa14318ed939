"""Keep probes that passed, and find them again."""

import time
from pathlib import Path

from pydantic import ValidationError

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts
from rocmrun.core.lock import LockedFacts
from rocmrun.core.measured import measured_facts
from rocmrun.core.plan import Plan
from rocmrun.core.probing.proof_record import ProofRecord, proof_key, reusable
from rocmrun.core.report.model import ProbeReport
from rocmrun.errors import HostNotReady, RocmrunError
from rocmrun.system.caller import boot_id, state_directory
from rocmrun.system.files import make_directory, read_text, write_atomic
from rocmrun.system.package_data import read_probe_source


def earlier_proof(
    plan: Plan, host: HostFacts, engine: EngineFacts | None, level: str
) -> tuple[ProbeReport, str] | None:
    """Return an earlier report that still counts, and why; None when the probe must run."""
    key = proof_key(plan, host, engine, level, read_probe_source())
    record = _record(_path(key))
    if record is None:
        return None
    why = reusable(
        record, key=key, reuse=plan.probe.reuse, boot_id=boot_id(), now_seconds=time.time()
    )
    return (record.report, why) if why else None


def keep_proof(
    plan: Plan, host: HostFacts, engine: EngineFacts | None, level: str, report: ProbeReport
) -> None:
    """Keep a report that passed. Failing to is no failure: the next launch probes again."""
    if not report.usable:
        return
    key = proof_key(plan, host, engine, level, read_probe_source())
    probed = plan.probe.image or plan.image
    record = ProofRecord(
        key=key,
        image=probed.digest or probed.image_id or "",
        boot_id=boot_id(),
        at_seconds=time.time(),
        report=report,
    )
    try:
        make_directory(_path(key).parent, error=HostNotReady)
        write_atomic(_path(key), record.model_dump_json(), error=HostNotReady)
    except RocmrunError:
        return


def measured_in(image: str, *, directory: Path | None = None) -> LockedFacts | None:
    """Return what the last probe that passed in *image* (a digest, or a local image's id) measured; None without one.

    *directory* is where proofs are; this user's unless a test stands elsewhere.
    """
    records = [record for path in _paths(directory) if (record := _record(path))]
    proven = [record for record in records if record.image == image and record.report.usable]
    for record in sorted(proven, key=lambda record: record.at_seconds, reverse=True):
        if facts := measured_facts(record.report):
            return facts
    return None


def _paths(directory: Path | None) -> list[Path]:
    try:
        return sorted((directory or state_directory() / "proofs").glob("*.json"))
    except OSError:
        return []


def _record(path: Path) -> ProofRecord | None:
    """Return a kept record. One that cannot be read proves nothing."""
    try:
        text = read_text(path, HostNotReady)
        return ProofRecord.model_validate_json(text) if text else None
    except (RocmrunError, ValidationError):
        return None


def _path(key: str) -> Path:
    return state_directory() / "proofs" / f"{key}.json"
