"""What a probe found and what a run did, as records that are stored and compared.

Reading is lenient (unknown keys are ignored, so that newer records stay readable); nothing here has a clock.
"""

from collections import Counter
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rocmrun.core.host import EngineFacts, Gpu, HostFacts
from rocmrun.core.plan import Plan
from rocmrun.core.signature import VerifiedSignature
from rocmrun.errors import RocmrunError

SCHEMA_VERSION = 1

# In the order in which the probe comes to them.
GROUPS = (
    "environment", "isolation", "tools", "hip", "build", "device", "collectives", "operators", "model",
    "own",
)  # fmt: skip
CheckStatus = Literal["pass", "degraded", "fail", "skipped"]
ReportStatus = Literal["pass", "degraded", "fail", "broken"]


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ProbeCheck(_Record):
    """One thing that the probe tried.

    Attributes:
        group: One of GROUPS.
        device: Index of the device, "cpu", or None where the check is about no device.
        evidence: What was seen; its keys belong to the check.
        reason: Why the status is not "pass".
        threshold: The number that decided, where one did, and where that number comes from.
    """

    group: str = Field(examples=list(GROUPS))
    name: str
    status: CheckStatus
    device: int | str | None = None
    seconds: float = 0.0
    evidence: dict[str, Any] = {}
    reason: str = ""
    threshold: float | None = None
    threshold_source: str = ""

    @property
    def label(self) -> str:
        """The check's name for people: "device 1: matmul_fp16"."""
        return (
            f"{self.group}: {self.name}"
            if self.device is None
            else f"device {self.device}: {self.name}"
        )


class Doing(_Record):
    """What the probe is trying just now: said while it runs, and kept in no report."""

    group: str
    name: str
    device: int | str | None = None


ProbeEvent = ProbeCheck | Doing


class ProbeReport(_Record):
    """A whole run of the probe.

    Attributes:
        status: The verdict; "broken" is a report that cannot be believed, whatever it says.
        reason: Why the verdict is not "pass".
        level: quick, standard or full; empty when the probe never said.
        stages: What the level runs: what is not named was not tried.
        seconds: How long the probe took by its own clock.
        noise_lines: Lines on its standard output that were no events; *noise* holds the first few.
        exit_code: Of the probe's process, where known.
        stderr_tail: The last lines that it wrote for people.
    """

    schema_version: int = SCHEMA_VERSION
    status: ReportStatus
    reason: str = ""
    probe_version: str = ""
    level: str = ""
    accelerator: str = ""
    runtime: str = "torch"
    stages: tuple[str, ...] = ()
    python: str = ""
    seconds: float = 0.0
    checks: tuple[ProbeCheck, ...] = ()
    noise_lines: int = 0
    noise: tuple[str, ...] = ()
    exit_code: int | None = None
    stderr_tail: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether work may start."""
        return self.status in {"pass", "degraded"}

    @property
    def proving_group(self) -> str:
        """The group of the checks that prove a device: torch's, or HIP's where torch was not asked for."""
        return "hip" if self.runtime == "hip" else "device"

    @property
    def counts(self) -> dict[str, int]:
        """How many checks have each status."""
        return dict(Counter(check.status for check in self.checks))

    @property
    def failures(self) -> tuple[ProbeCheck, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.status == "fail")

    @property
    def devices(self) -> tuple[int | str, ...]:
        """The devices that any check names, sorted."""
        named = {check.device for check in self.checks if check.device is not None}
        return tuple(sorted(named, key=lambda device: (isinstance(device, str), device)))

    def find(self, group: str, name: str, device: int | str | None = None) -> ProbeCheck | None:
        """Return a check by its names, None when it was not reported."""
        for check in self.checks:
            if (check.group, check.name, check.device) == (group, name, device):
                return check
        return None

    def version_of(self, what: Literal["torch", "hip", "cuda"]) -> str | None:
        """Return a version as the probe saw it inside the container."""
        name, key = ("torch", "version") if what == "torch" else ("accelerator", what)
        check = self.find("build", name)
        if check is None and what == "hip":
            check = self.find("hip", "runtime")
        value = None if check is None else check.evidence.get(key)
        return value if isinstance(value, str) else None


class GpuSummary(_Record):
    """What tells one GPU from another, and what runs on it."""

    index: int
    gfx: str | None = None
    name: str | None = None
    pci_address: str | None = None
    partition: int | None = None
    render_minor: int | None = None
    unique_id: str | None = None
    vbios: str | None = None
    firmware: dict[str, str] = {}

    @classmethod
    def of(cls, gpu: Gpu) -> "GpuSummary":
        """Return the summary of a GPU that was seen on the host."""
        same = {name: getattr(gpu, name) for name in cls.model_fields if name != "firmware"}
        return cls(**same, firmware=dict(gpu.firmware))


class HostSummary(_Record):
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


class EngineSummary(_Record):
    """Which engine ran the containers."""

    kind: str
    version: str
    api_version: str
    address: str

    @classmethod
    def of(cls, engine: EngineFacts) -> "EngineSummary":
        """Return the summary of *engine*."""
        return cls(**{name: getattr(engine, name) for name in cls.model_fields})


class RecordedGrant(_Record):
    """One right of the run, with its reason."""

    what: str
    reason: str
    asked_by: str


class RecordedError(_Record):
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


class RefusedRun(_Record):
    """A launch that ended before there was a plan: what `--report FILE` writes then.

    Attributes:
        profile: As the command line named it.
    """

    schema_version: int = SCHEMA_VERSION
    profile: str
    error: RecordedError
    started_at: str
    ended_at: str


class RunRecord(_Record):
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
