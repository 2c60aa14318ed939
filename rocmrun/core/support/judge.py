"""The verdict of AMD's support matrix on a job: each fact judged by itself, with the row it rests on.

GPU, system, driver, torch and compiled targets are five questions; no answer stands in for another.
What the matrix does not say is "unknown", which is an answer too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rocmrun.core.gpu_table import GpuTable
from rocmrun.core.host import Gpu, HostFacts
from rocmrun.core.lock import LockedFacts
from rocmrun.core.support.finding import Finding, Job, Verdict
from rocmrun.core.support.gpus import judge_code, judge_gpus
from rocmrun.core.support.host import judge_driver, judge_system
from rocmrun.core.support.matrix import Matrix
from rocmrun.core.support.names import model_names

Action = Literal["allow", "warn", "block"]
Policy = Literal["require", "warn", "ignore"]

# From good to bad: the last one of a report is its verdict.
ORDER: tuple[Verdict, ...] = (
    "supported", "unknown", "deprecated", "outside", "unsupported", "incompatible",
)  # fmt: skip

# What a launch does. "outside" is not in AMD's list and in no contradiction to it; "incompatible" is
# what AMD's driver table leaves out, or an image that was measured to have no code for the GPU.
DECISIONS: dict[Policy, dict[Verdict, Action]] = {
    "require": {
        "supported": "allow", "unknown": "warn", "deprecated": "warn", "outside": "block",
        "unsupported": "block", "incompatible": "block",
    },
    "warn": {
        "supported": "allow", "unknown": "allow", "deprecated": "warn", "outside": "warn",
        "unsupported": "warn", "incompatible": "block",
    },
    "ignore": dict.fromkeys(ORDER, "allow"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportReport:
    """All answers for one job.

    Attributes:
        rocm: The image's ROCm version, and where that was read.
        data_of: ISO date of the newest fact in the matrix.
    """

    rocm: str | None
    rocm_source: str
    data_of: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst answer."""
        return max(
            (finding.verdict for finding in self.findings), key=ORDER.index, default="unknown"
        )

    def decided(self, policy: Policy, *, unknown: Action = "allow") -> dict[Action, list[Finding]]:
        """Return what to do about each finding; *unknown* is what the profile asks for where nobody knows."""
        actions: dict[Action, list[Finding]] = {"allow": [], "warn": [], "block": []}
        for finding in self.findings:
            actions[_action(finding, policy, unknown)].append(finding)
        return actions

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"verdict": self.verdict, **asdict(self)}


def _action(finding: Finding, policy: Policy, unknown: Action) -> Action:
    action = DECISIONS[policy][finding.verdict]
    if finding.verdict == "unknown" and unknown == "block" and policy != "ignore":
        return "block"
    # AMD publishes images whose torch its own matrix does not list (7.2.4 with 2.10.0).
    return "warn" if finding.subject == "torch" and action == "block" else action


def judge(
    matrix: Matrix,
    table: GpuTable,
    host: HostFacts,
    gpus: Iterable[Gpu],
    claims: LockedFacts | None,
    *,
    override: str | None = None,
) -> SupportReport:
    """Return what the matrix says of *gpus* on *host* with the image that *claims* describe.

    Args:
        matrix: AMD's published support.
        table: Which models there are.
        host: System, kernel and driver.
        gpus: What is passed.
        claims: ROCm, torch and compiled targets of the image, each with its source.
        override: HSA_OVERRIDE_GFX_VERSION inside, where it is set.
    """
    passed = tuple(gpus)
    facts = claims or LockedFacts()
    version = facts.rocm
    job = Job(
        matrix=matrix,
        host=host,
        gpus=passed,
        names={gpu.index: model_names(gpu, table) for gpu in passed},
        release=matrix.release(version) if version else None,
        rocm=version,
    )
    return SupportReport(
        rocm=version,
        rocm_source=facts.sources.get("rocm", ""),
        data_of=matrix.newest_fact,
        findings=(
            *_of_release(job),
            *judge_gpus(job),
            *judge_system(job),
            judge_driver(job),
            *_of_torch(job, facts.torch),
            *judge_code(job, facts, override),
        ),
    )


def _of_release(job: Job) -> Iterator[Finding]:
    """Say what is known of the release itself, where that is not everything."""
    if job.rocm is None:
        yield job.found("release", "unknown", "which ROCm the image holds is not known")
    elif job.release is None:
        newest = job.matrix.releases[-1].version
        yield job.found(
            "release", "unknown", f"the matrix has no ROCm {job.rocm} (its newest is {newest})"
        )
    elif job.release.preview:
        yield job.found(
            "release", "outside", f"ROCm {job.rocm} is a technology preview, not for production",
            f"ROCm {job.release.version}: {job.release.stream}",
        )  # fmt: skip


def _of_torch(job: Job, torch: str | None) -> Iterator[Finding]:
    """Judge PyTorch, where the image says that it has one: never a reason to block."""
    if torch is None:
        return
    release = job.release
    version = torch.partition("+")[0]
    if release is None or not release.pytorch:
        yield job.found("torch", "unknown", f"torch {version}: no list was found")
        return
    listed = ", ".join(release.pytorch)
    known = any(version == one or version.startswith(f"{one}.") for one in release.pytorch)
    yield job.found(
        "torch",
        "supported" if known else "outside",
        f"torch {version} is {'' if known else 'not '}listed ({listed})",
        f"ROCm {release.version}, PyTorch",
    )
