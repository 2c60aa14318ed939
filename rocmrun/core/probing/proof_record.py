"""When an earlier probe still counts: the same probe, plan, image, engine, kernel, driver and GPUs, and not too long ago."""

import hashlib
from dataclasses import asdict
from typing import Literal

from pydantic import BaseModel, ConfigDict

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts
from rocmrun.core.plan import Plan, canonical_json
from rocmrun.core.report.model import ProbeReport

DAY_SECONDS = 24 * 3600
# What the probe never sees: a change here does not make its proof stale.
_UNPROVEN = (
    "command", "entrypoint", "workdir", "ports", "env_from", "restart", "stop_timeout_seconds",
    "log_size_bytes", "interactive", "tty", "labels", "notes", "left_out", "grants", "probe",
    "health",
)  # fmt: skip


class ProofRecord(BaseModel):
    """A probe that passed, as it is kept.

    Attributes:
        key: `proof_key` of the plan and host it passed for.
        image: The digest of the image that was probed, or the id of a local one; "" in older records.
        boot_id: The kernel's boot id then.
        at_seconds: When, in seconds since the epoch.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str
    image: str = ""
    boot_id: str
    at_seconds: float
    report: ProbeReport


def proof_key(
    plan: Plan, host: HostFacts, engine: EngineFacts | None, level: str, source: bytes = b""
) -> str:
    """Return a digest over everything that a probe's result depends on; *source* is the probe's own text."""
    rights = {name: value for name, value in asdict(plan).items() if name not in _UNPROVEN}
    gpus = [
        (gpu.pci_address, gpu.unique_id, gpu.partition, gpu.vbios, gpu.firmware)
        for gpu in host.gpus
        if gpu.index in {planned.index for planned in plan.gpus}
    ]
    value = {
        "rights": rights,
        "probe": (
            level,
            plan.probe.python,
            plan.probe.runtime,
            asdict(plan.probe.image) if plan.probe.image else None,
            plan.probe.accelerator,
            plan.probe.operators,
            [asdict(check) for check in plan.probe.checks_at(level)],
        ),
        "engine": _engine(engine),
        "kernel": host.kernel,
        "driver": (host.driver_version, host.driver_source),
        "gpus": gpus,
        "source": hashlib.sha256(source).hexdigest(),
    }
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _engine(engine: EngineFacts | None) -> tuple[object, ...]:
    """Return what an engine adds to a container by itself: who starts it, and what holds it by default."""
    if engine is None:
        return ()
    return (
        engine.kind,
        engine.identity,
        engine.version,
        engine.components,
        engine.default_runtime,
        engine.security_options,
        engine.cgroup_version,
        engine.cgroup_driver,
    )


def reusable(
    record: ProofRecord,
    *,
    key: str,
    reuse: Literal["boot", "24h", "never"] | str,
    boot_id: str,
    now_seconds: float,
) -> str | None:
    """Return why *record* counts, in words for people; None when it does not."""
    if reuse == "never" or record.key != key or not record.report.usable:
        return None
    age = now_seconds - record.at_seconds
    if age < 0:
        return None
    if reuse == "boot":
        same = bool(boot_id) and record.boot_id == boot_id
        return f"passed {_ago(age)} ago, since this boot" if same else None
    return f"passed {_ago(age)} ago" if age <= DAY_SECONDS else None


def _ago(seconds: float) -> str:
    for size, name in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"
