"""What one launch did, as the record that `--report FILE` writes."""

from typing import Literal

from pydantic import Field

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import Gpu, HostFacts
from rocmrun.core.plan import Plan
from rocmrun.core.report.model import SCHEMA_VERSION, ProbeReport, Record
from rocmrun.core.signature import VerifiedSignature
from rocmrun.errors import RocmrunError


class GpuSummary(Record):
    """What tells one GPU from another, and what runs on it."""

    index: int
    gfx: str | None = None
    name: str | None = None
    pci_address: str | None = None
    partition: int | None = None
    render_minor: int | None = None
    unique_id: str | None = None
    vbios: str | None = None
    firmware: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def of(cls, gpu: Gpu) -> "GpuSummary":
        """Return the summary of a GPU that was seen on the host."""
        same = {name: getattr(gpu, name) for name in cls.model_fields if name != "firmware"}
        return cls(**same, firmware=dict(gpu.firmware))


class HostSummary(Record):
    """The parts of a host that can explain why a run went otherwise than the last one."""

    kernel: str | None = None
    os_name: str | None = None
    driver_version: str | None = None
    driver_source: str | None = None
    gpus: tuple[GpuSummary, ...] = ()

    @classmethod
    def of(cls, host: HostFacts, plan: Plan) -> "HostSummary":
        """Return the summary of *host* with the GPUs that *plan* passes."""
        passed = {gpu.index for gpu in plan.gpus}
        return cls(
            kernel=host.kernel,
            os_name=host.os_name,
            driver_version=host.driver_version,
            driver_source=host.driver_source,
            gpus=tuple(GpuSummary.of(gpu) for gpu in host.gpus if gpu.index in passed),
        )


class EngineSummary(Record):
    """Which engine ran the containers."""

    kind: str
    version: str
    api_version: str
    address: str

    @classmethod
    def of(cls, engine: EngineFacts) -> "EngineSummary":
        """Return the summary of *engine*."""
        return cls(**{name: getattr(engine, name) for name in cls.model_fields})


class RecordedGrant(Record):
    """One right of the run, with its reason."""

    what: str
    reason: str
    asked_by: str


class RecordedError(Record):
    """Why the workload did not run."""

    slug: str
    code: int
    message: str
    hint: str | None = None
    details: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: RocmrunError) -> "RecordedError":
        """Return *error* as it is kept: the code is its class's, whatever `launch` ends with."""
        return cls(
            slug=error.slug,
            code=error.exit_code,
            message=error.message,
            hint=error.hint,
            details=error.details,
        )


class RefusedRun(Record):
    """A launch that ended before there was a plan: what `--report FILE` writes then.

    Attributes:
        profile: As the command line named it.
    """

    schema_version: int = SCHEMA_VERSION
    profile: str
    error: RecordedError
    started_at: str
    ended_at: str


class RunRecord(Record):
    """One launch: what `--report FILE` writes.

    Attributes:
        probe_outcome: "passed", "degraded", "failed", "reused" (an earlier probe counted) or "none".
        probe_reason: Why it was reused or left out.
        probe_image_ref: What the probe ran in where that was not the workload's image; what it says
            of versions is then about its own user space.
        signature: What cosign verified of the image, where the profile asks for it.
        exit_code: Of the workload; None when it never ran.
        started_at: ISO 8601 with offset, by the caller's clock.
    """

    schema_version: int = SCHEMA_VERSION
    profile: str
    image_ref: str
    image_digest: str | None = None
    image_id: str | None = None
    platform: str
    probe_image_ref: str | None = None
    probe_image_digest: str | None = None
    probe_image_id: str | None = None
    plan_hash: str
    signature: VerifiedSignature | None = None
    isolation: str
    grants: tuple[RecordedGrant, ...] = ()
    host: HostSummary
    engine: EngineSummary | None = None
    probe_outcome: Literal["passed", "degraded", "failed", "reused", "none"] = "none"
    probe_reason: str = ""
    probe: ProbeReport | None = None
    torch_version: str | None = None
    rocm_version: str | None = None
    cuda_version: str | None = None
    exit_code: int | None = None
    error: RecordedError | None = None
    started_at: str
    ended_at: str | None = None

    @classmethod
    def begin(
        cls, plan: Plan, host: HostFacts, engine: EngineFacts | None, *, started_at: str
    ) -> "RunRecord":
        """Return the record of a run that has just been planned."""
        return cls(
            profile=plan.profile,
            image_ref=plan.image.ref,
            image_digest=plan.image.digest,
            image_id=plan.image.image_id,
            platform=plan.image.platform,
            probe_image_ref=plan.probe.image.ref if plan.probe.image else None,
            probe_image_digest=plan.probe.image.digest if plan.probe.image else None,
            probe_image_id=plan.probe.image.image_id if plan.probe.image else None,
            plan_hash=plan.hash,
            isolation=plan.isolation,
            grants=tuple(
                RecordedGrant(what=grant.what, reason=grant.reason, asked_by=grant.asked_by)
                for grant in plan.grants
            ),
            host=HostSummary.of(host, plan),
            engine=None if engine is None else EngineSummary.of(engine),
            started_at=started_at,
        )

    def with_signature(self, signature: VerifiedSignature | None) -> "RunRecord":
        """Return the record with what was verified of the image's signature."""
        return self.model_copy(update={"signature": signature})

    def with_probe(self, report: ProbeReport, *, reused: str = "") -> "RunRecord":
        """Return the record with what a probe found; *reused* says why an earlier one counts."""
        outcome = {"pass": "passed", "degraded": "degraded"}.get(report.status, "failed")
        own = self.probe_image_ref is None
        return self.model_copy(
            update={
                "probe": report,
                "probe_outcome": "reused" if reused else outcome,
                "probe_reason": reused or report.reason,
                "torch_version": report.version_of("torch") if own else None,
                "rocm_version": report.version_of("hip") if own else None,
                "cuda_version": report.version_of("cuda") if own else None,
            }
        )

    def without_probe(self, reason: str) -> "RunRecord":
        """Return the record of a run that no probe preceded, with the reason."""
        return self.model_copy(update={"probe_reason": reason})

    def ended(
        self, *, ended_at: str, exit_code: int | None = None, error: RecordedError | None = None
    ) -> "RunRecord":
        """Return the finished record."""
        return self.model_copy(
            update={"ended_at": ended_at, "exit_code": exit_code, "error": error}
        )
