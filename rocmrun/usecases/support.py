"""What AMD's support matrix says of a plan, and what the profile wants done about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rocmrun.core.gpu_table import parse_gpu_table
from rocmrun.core.host import HostFacts
from rocmrun.core.image import ImageFacts
from rocmrun.core.lock import LockedFacts
from rocmrun.core.plan import Plan
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.support.finding import Finding
from rocmrun.core.support.judge import SupportReport, judge
from rocmrun.core.support.matrix import parse_matrix
from rocmrun.errors import Unsupported
from rocmrun.system.caller import values_of
from rocmrun.system.package_data import read_gpu_table, read_support_matrix

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the matrix is asked of a plan, beside the host.

    Attributes:
        gpus: Indices of the GPUs that are passed.
        override: HSA_OVERRIDE_GFX_VERSION inside, where it is set.
    """

    gpus: tuple[int, ...]
    claims: LockedFacts | None = None
    override: str | None = None


def support_of(
    plan: Plan, host: HostFacts, claims: LockedFacts | None, image: ImageFacts | None
) -> SupportReport | None:
    """Return what the matrix says of *plan* on *host*; None for a plan without AMD GPUs."""
    asked = question(plan, claims, image)
    return answer(asked, host) if asked else None


def question(plan: Plan, claims: LockedFacts | None, image: ImageFacts | None) -> Question | None:
    """Return what the matrix is to be asked; None for a plan without AMD GPUs."""
    if plan.probe.accelerator != "rocm" or not plan.gpus:
        return None
    baked = image.environment if image else {}
    asked = [name for name in plan.env_from if name == OVERRIDE]
    # A profile's empty value takes the image's away.
    inside = {**baked, **dict(plan.env), **values_of(asked)}
    return Question(
        gpus=tuple(gpu.index for gpu in plan.gpus),
        claims=claims,
        override=inside.get(OVERRIDE) or None,
    )


def answer(asked: Question, host: HostFacts) -> SupportReport:
    """Return what the matrix says on *host*."""
    return judge(
        parse_matrix(read_support_matrix()),
        parse_gpu_table(read_gpu_table()),
        host,
        [gpu for gpu in host.gpus if gpu.index in asked.gpus],
        asked.claims,
        override=asked.override,
    )


def refuse_unsupported(report: SupportReport | None, loaded: LoadedProfile) -> None:
    """Stop a launch that the profile's policy forbids.

    Raises:
        Unsupported: with every finding that blocks.
    """
    blocked = _blocked(report, loaded)
    if blocked:
        msg = f"AMD's support matrix stands against profile {loaded.name} on this host"
        raise Unsupported(
            msg,
            details=tuple(f"{finding.subject}: {told(finding)}" for finding in blocked),
            hint='choose another image or driver; or accept it with [support] policy = "ignore" in the profile',
        )


def support_notes(report: SupportReport | None, loaded: LoadedProfile) -> tuple[str, ...]:
    """Return a plan's note that its launch would be refused."""
    blocked = _blocked(report, loaded)
    if not blocked:
        return ()
    subjects = ", ".join(f"{finding.subject} {finding.verdict}" for finding in blocked)
    support = loaded.profile.support
    policy = f'[support] policy = "{support.policy}", unknown = "{support.unknown}"'
    return (f"a launch is refused, by {policy}: {subjects}",)


def _blocked(report: SupportReport | None, loaded: LoadedProfile) -> list[Finding]:
    support = loaded.profile.support
    return report.decided(support.policy, unknown=support.unknown)["block"] if report else []


def support_warnings(report: SupportReport | None, loaded: LoadedProfile) -> Sequence[str]:
    """Return a sentence for each finding that the policy wants said aloud."""
    support = loaded.profile.support
    warned = report.decided(support.policy, unknown=support.unknown)["warn"] if report else []
    return [f"support, {finding.subject}: {told(finding)}" for finding in warned]


def told(finding: Finding) -> str:
    """Return a finding in one sentence, with the row that it rests on."""
    return f"{finding.verdict}: {finding.sentence}" + (f" [{finding.row}]" if finding.row else "")
