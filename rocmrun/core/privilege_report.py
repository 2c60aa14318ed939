"""What diff-privileges found: verdicts with their evidence, and the certificate that says on what they hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rocmrun.core.exposure.score import Exposure
from rocmrun.core.oracle import TrialResult
from rocmrun.core.plan import Grant, Plan
from rocmrun.core.privilege_sides import ROOT, realised, without_smaller
from rocmrun.core.privileges import narrower_than, privilege_of
from rocmrun.core.profile.model import Profile
from rocmrun.core.recording import NOT_ASKED, Recording
from rocmrun.core.recording_signs import seen_of
from rocmrun.core.run_record import EngineSummary, HostSummary
from rocmrun.core.search_space import Finding, Members, Space
from rocmrun.core.seccomp_tailored import TailoredSeccomp
from rocmrun.core.verification import CertificateRecord, Verification

CERTIFICATE_VERSION = 1
_OTHER_JOB = "profile: the job is planned otherwise now: by its profile, or by an option that was or was not given then"
# What no experiment tries, since it is a matter of the job's data and no privilege.
_NARROWER = {
    "rootfs:rw": 'a mount with mode = "rw", or a tmpfs, at the one path that the job writes is narrower and needs no root; it was not tried'
}
Need = Literal["required", "degraded", "removable", "untested"]


class PrivilegeVerdict(CertificateRecord):
    """Whether the job needs one privilege.

    Attributes:
        evidence: What happened without it, in the program's own words where it had some.
        error: "EPERM" and the like, where the evidence says it.
        seen: What a recording of the permissive side has of it; "" where there is none, or it cannot tell.
        cause: Who said no, as far as the kind of privilege tells.
        exposes: What it opens, from the catalogue.
        effect: Of a capability: "effective", or "unlock" where it only unlocks system calls.
        warning: What may be lost without a word when it is left out; of what is kept, what is narrower and was not tried.
        instead_of: What it stands in for, when the permissive side has not got it itself.
    """

    privilege: str
    verdict: Need
    evidence: str = ""
    error: str = ""
    seen: str = ""
    cause: str = ""
    exposes: str = ""
    effect: str = ""
    severity: float = 0.0
    warning: str = ""
    instead_of: tuple[str, ...] = ()


class TrialRecord(CertificateRecord):
    """One run.

    Attributes:
        request: SHA-256 of the create request, labels left out, and of what is asked of the run.
        items: What the container had beyond the minimal side; of a stage "seccomp" the groups that its filter kept.
        purpose: "gate", "search", "proof" or "canary".
        reused: Whether the result is of an earlier, interrupted search.
    """

    request: str
    items: tuple[str, ...]
    purpose: str
    stage: str = "privileges"
    attempt: int = 0
    deep: bool = False
    reused: bool = False
    result: TrialResult


class Certificate(CertificateRecord):
    """A search, with everything that its result holds for.

    Attributes:
        recipe: "amd" where AMD's usual docker line was the permissive side, else "".
        minimal_profile: The profile of the minimal side; "" for the baseline.
        profile_hash: Of the plan of the permissive side as asked for.
        base: What the minimal side has by itself.
        minimal: What it needs beyond that.
        one_minimal: Whether each of these was left out by itself and the job failed.
        stopped: Whether the budget ended the search: the set is sufficient, and can be too large.
        seccomp: What came of tailoring a seccomp filter, where one was asked for.
        evidence: What one traced run of the permissive side asked of the kernel. It decided nothing.
    """

    certificate_version: int = CERTIFICATE_VERSION
    profile: str
    recipe: str = ""
    minimal_profile: str = ""
    image_ref: str
    image_digest: str | None = None
    image_id: str | None = None
    command: tuple[str, ...] = ()
    oracle: dict[str, Any]
    profile_hash: str
    engine: EngineSummary
    host: HostSummary
    base: tuple[str, ...]
    permissive: tuple[str, ...]
    minimal: tuple[str, ...]
    one_minimal: bool
    stopped: bool
    verification: Verification
    verdicts: tuple[PrivilegeVerdict, ...]
    seccomp: TailoredSeccomp | None = None
    evidence: Recording = NOT_ASKED
    runs: tuple[TrialRecord, ...]
    exposure: dict[str, Any]
    started_at: str
    ended_at: str

    @property
    def needs_more(self) -> bool:
        """Whether the minimal side fails as given."""
        return bool(self.minimal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What verdicts are made from.

    Attributes:
        results: Set of items → the results of its runs, in order.
        untested: Item → why no experiment could tell.
    """

    space: Space
    finding: Finding
    base: tuple[str, ...]
    results: Mapping[Members, Iterable[TrialResult]]
    untested: Mapping[str, str]
    recording: Recording = NOT_ASKED


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The certificate, and the minimal side as a plan and as a profile.

    Attributes:
        seccomp_text: The tailored seccomp profile; "" without one.
    """

    certificate: Certificate
    plan: Plan
    profile: Profile
    seccomp_text: str = ""

    @property
    def lacks_seccomp(self) -> bool:
        """Whether a seccomp profile was asked for and none was made."""
        return self.certificate.seccomp is not None and not self.seccomp_text


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticDifference:
    """Two plans side by side.

    Attributes:
        names: What the sides are called.
        only: Grants that one side alone has; a grant is the same when its right is, whatever its reason.
        both: Rights that both have.
        untested: Item → why no plan can hold it.
    """

    names: tuple[str, str]
    only: tuple[tuple[Grant, ...], tuple[Grant, ...]]
    both: tuple[str, ...]
    exposures: tuple[Exposure, Exposure]
    untested: dict[str, str]


def verdicts(evidence: Evidence) -> tuple[PrivilegeVerdict, ...]:
    """Return a verdict for every item of the permissive side, and for alternatives that were kept; needed ones first."""
    finding, space = evidence.finding, evidence.space
    largest = without_smaller(finding.minimal)
    kept = [item for item in finding.minimal if item in largest]
    names = [*kept, *(item for item in space.elements if item in space.asked and item not in kept)]
    found = [_verdict(evidence, item) for item in names]
    found += [_untested(item, why) for item, why in sorted(evidence.untested.items())]
    root = ROOT in {*evidence.base, *space.asked}
    return tuple(
        one.model_copy(update={"seen": seen_of(one.privilege, evidence.recording, root=root)})
        for one in found
    )


def _verdict(evidence: Evidence, item: str) -> PrivilegeVerdict:
    finding = evidence.finding
    held = finding.minimal if item in finding.minimal else evidence.space.asked
    entry = privilege_of(item, root=ROOT in evidence.base or ROOT in held)
    known: dict[str, Any] = {
        "privilege": item,
        "exposes": entry.exposes,
        "effect": entry.effect,
        "severity": entry.severity,
    }
    if item not in finding.minimal:
        return PrivilegeVerdict(verdict="removable", **known, **_why_removable(evidence, item))
    known["instead_of"] = _stands_in_for(evidence, item)
    without = [
        result
        for result in evidence.results.get(frozenset(finding.minimal) - {item}, ())
        if not result.passed
    ]
    if item not in finding.proven or not without:
        why = "the search ended before it was left out by itself; the set that passes has it"
        return PrivilegeVerdict(verdict="untested", evidence=why, **known)
    result = without[0]
    if result.verdict == "unstartable":
        return PrivilegeVerdict(verdict="untested", evidence=result.reason, **known)
    return PrivilegeVerdict(
        verdict="degraded" if result.verdict == "degraded" else "required",
        evidence=result.evidence,
        error=result.error,
        cause=entry.refused_by,
        warning=_NARROWER.get(item, ""),
        **known,
    )


def _why_removable(evidence: Evidence, item: str) -> dict[str, Any]:
    """Say that the job passed without it, in whose place something else stands, and what it may lose in silence."""
    finding = evidence.finding
    entry = privilege_of(item, root=ROOT in evidence.base)
    largest = without_smaller(finding.minimal)
    in_place = [
        name
        for name in finding.minimal
        if name in largest and item in _stands_in_for(evidence, name)
    ]
    passed = f"passed {finding.passes} of {finding.runs} runs without it"
    if in_place:
        passed = f"{', '.join(in_place)} does what the job needs of it; {passed}"
    quiet = f"jobs can lose without a word: {entry.wanted_by}" if entry.quiet else ""
    return {"evidence": passed, "warning": "" if in_place else quiet}


def _stands_in_for(evidence: Evidence, item: str) -> tuple[str, ...]:
    """Return the permissive items in whose place *item* was offered."""
    if item in evidence.space.asked:
        return ()
    root = ROOT in evidence.base
    kinds = ("shm:", "ipc:host") if item.startswith("shm:") else ()
    return tuple(
        asked
        for asked in sorted(evidence.space.asked - set(evidence.finding.minimal))
        if item in narrower_than(asked, root=root) or (kinds and asked.startswith(kinds))
    )


def _untested(item: str, why: str) -> PrivilegeVerdict:
    entry = privilege_of(item, root=True)
    return PrivilegeVerdict(
        privilege=item, verdict="untested", evidence=why, exposes=entry.exposes, severity=entry.severity
    )  # fmt: skip


def needed_items(base: Iterable[str], minimal: Iterable[str]) -> tuple[str, ...]:
    """Return what the minimal side must be given beyond *base*, as a profile would spell it."""
    had = set(realised(base))
    return tuple(item for item in realised({*base, *minimal}) if item not in had)


def changes_since(old: Certificate, new: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for each thing that *old* depends on and that is otherwise now.

    Args:
        old: The certificate.
        new: The same fields, as they are now; what is not in it is not compared.
    """
    was = old.model_dump(mode="json")
    sentences = []
    for name, now in sorted(new.items()):
        if name == "profile_hash":
            sentences += [_OTHER_JOB] if was.get(name) != now else []
            continue
        sentences += _differences(name.replace("_", " "), was.get(name), now)
    return tuple(sentences)


def _differences(name: str, was: Any, now: Any) -> list[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        return [
            sentence
            for key in sorted(was.keys() | now.keys())
            for sentence in _differences(f"{name} {key.replace('_', ' ')}", was.get(key), now.get(key))
        ]  # fmt: skip
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [s for index, (one, two) in pairs for s in _differences(f"{name} {index}", one, two)]
    return [] if was == now else [f"{name}: was {was!r}, is {now!r}"]
