"""What a probe found, as a record that is stored and compared.

Reading is lenient (unknown keys are ignored, so that newer records stay readable); nothing here has a clock.
"""

from collections import Counter
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1

# In the order in which the probe comes to them.
GROUPS = (
    "environment", "isolation", "tools", "hip", "build", "device", "collectives", "operators", "model",
    "own",
)  # fmt: skip
CheckStatus = Literal["pass", "degraded", "fail", "skipped"]
ReportStatus = Literal["pass", "degraded", "fail", "broken"]


class Record(BaseModel):
    """What is stored: newer records with more keys stay readable."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ProbeCheck(Record):
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


class Doing(Record):
    """What the probe is trying just now: said while it runs, and kept in no report."""

    group: str
    name: str
    device: int | str | None = None


ProbeEvent = ProbeCheck | Doing


class ProbeReport(Record):
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
