"""Keep probes that passed, and find them again."""

import time
from pathlib import Path

from pydantic import ValidationError

from rocmrun.core.host import HostFacts
from rocmrun.core.plan import Plan
from rocmrun.core.proof_record import ProofRecord, proof_key, reusable
from rocmrun.core.report import ProbeReport
from rocmrun.errors import HostNotReady, RocmrunError
from rocmrun.system.caller import boot_id, state_directory
from rocmrun.system.files import make_directory, read_text, write_atomic


def earlier_proof(plan: Plan, host: HostFacts, level: str) -> tuple[ProbeReport, str] | None:
    """Return an earlier report that still counts, and why; None when the probe must run."""
    key = proof_key(plan, host, level)
    try:
        text = read_text(_path(key), HostNotReady)
        record = ProofRecord.model_validate_json(text) if text else None
    except (RocmrunError, ValidationError):
        # A record that cannot be read proves nothing.
        return None
    if record is None:
        return None
    why = reusable(
        record, key=key, reuse=plan.probe.reuse, boot_id=boot_id(), now_seconds=time.time()
    )
    return (record.report, why) if why else None


def keep_proof(plan: Plan, host: HostFacts, level: str, report: ProbeReport) -> None:
    """Keep a report that passed. Failing to is no failure: the next launch probes again."""
    if not report.usable:
        return
    key = proof_key(plan, host, level)
    record = ProofRecord(key=key, boot_id=boot_id(), at_seconds=time.time(), report=report)
    try:
        make_directory(_path(key).parent, error=HostNotReady)
        write_atomic(_path(key), record.model_dump_json(), error=HostNotReady)
    except RocmrunError:
        return


def _path(key: str) -> Path:
    return state_directory() / "proofs" / f"{key}.json"
