"""What the doctor looks at, and what it found."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from rocmrun.core.diagnosis.finding import Finding, Kind
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts
from rocmrun.core.image_report import ImageReport
from rocmrun.core.report.model import ProbeReport
from rocmrun.core.support.judge import Policy, SupportReport

Result = Literal["ok", "warn", "blocker", "unknown"]
CHECKS = (
    "matrix", "driver", "permissions", "engine", "image-build", "architecture", "operators", "speed",
)  # fmt: skip
# A blocker is a cause that is likely at least.
SURE = frozenset({"high", "medium"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes:
        id: One of CHECKS.
        looked_at: What was read.
        evidence: What was seen, one sentence.
        hint: What to do, a command where one exists.
        kind: The finding that explains it.
    """

    id: str
    looked_at: str
    result: Result
    evidence: str
    hint: str = ""
    kind: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that the checks judge; what is None was not looked at or could not be.

    Attributes:
        wants_gpus: Whether the profile needs AMD GPUs; None without a profile.
        engine_problem: Why no engine answered.
        memlock: The plan's limit of locked memory in bytes; -1 is none, None where it sets none.
        refusal: Why no plan could be made: (slug, message, hint).
        denied: Nodes that the container's user may not open, a sentence each.
        unreadable: Mounts that it may not use, a sentence each.
    """

    host: HostFacts
    wants_gpus: bool | None = None
    engine: EngineFacts | None = None
    engine_problem: str = ""
    support: SupportReport | None = None
    policy: Policy = "warn"
    image: ImageReport | None = None
    lints: tuple[str, ...] = ()
    torch: str | None = None
    denied: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    memlock: int | None = None
    refusal: tuple[str, str, str] | None = None
    report: ProbeReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the doctor found.

    Attributes:
        checks: Of the host, in order; none where a log alone was read.
        findings: In the order in which they must be mended.
        kinds: What is known of every kind.
        failure: Why the probe's report that was read says that no work must start; "" where it does not.
    """

    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    failure: str = ""

    @property
    def blocked(self) -> bool:
        """Whether something was found that must be mended."""
        sure = any(f.confidence in SURE and f.kind.step != "noise" for f in self.findings)
        return bool(self.failure) or sure or any(one.result == "blocker" for one in self.checks)
