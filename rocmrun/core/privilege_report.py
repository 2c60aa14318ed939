"""What diff-privileges found: a verdict for each privilege, with its evidence."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rocmrun.core.certificate import Certificate, PrivilegeVerdict
from rocmrun.core.exposure.score import Exposure
from rocmrun.core.oracle import TrialResult
from rocmrun.core.plan import Grant, Plan
from rocmrun.core.privilege_sides import ROOT, realised, without_smaller
from rocmrun.core.privileges import narrower_than, privilege_of
from rocmrun.core.profile.model import Profile
from rocmrun.core.recording import NOT_ASKED, Recording
from rocmrun.core.recording_signs import seen_of
from rocmrun.core.search_space import Finding, Members, Space
from rocmrun.core.tmpfs_offer import NOT_LOOKED_FOR, ROOTFS, TMPFS, TmpfsTried, note_on

# Sizes and places are of the job, so that no entry of the catalogue can name them as narrower.
_IN_PLACE_OF = {"shm:": ("shm:", "ipc:host"), TMPFS: (ROOTFS,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What verdicts are made from.

    Attributes:
        results: Set of items → the results of its runs, in order.
        untested: Item → why no experiment could tell.
        tmpfs: What came of looking for a tmpfs in the place of a writable root.
        ambient: Whether capabilities are in force for every user, as Podman makes them.
    """

    space: Space
    finding: Finding
    base: tuple[str, ...]
    results: Mapping[Members, Iterable[TrialResult]]
    untested: Mapping[str, str]
    recording: Recording = NOT_ASKED
    tmpfs: TmpfsTried = NOT_LOOKED_FOR
    ambient: bool = False


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
    entry = privilege_of(item, root=evidence.ambient or ROOT in evidence.base or ROOT in held)
    known: dict[str, Any] = {
        "privilege": item,
        "exposes": entry.exposes,
        "effect": entry.effect,
        "severity": entry.severity,
    }
    if item not in finding.minimal:
        return PrivilegeVerdict(verdict="removable", **known, **_why_removable(evidence, item))
    known["instead_of"] = _stands_in_for(evidence, item)
    known["warning"] = note_on(item, evidence.tmpfs)
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
        **known,
    )


def _why_removable(evidence: Evidence, item: str) -> dict[str, Any]:
    """Say that the job passed without it, in whose place something else stands, and what it may lose in silence."""
    finding = evidence.finding
    entry = privilege_of(item, root=evidence.ambient or ROOT in evidence.base)
    largest = without_smaller(finding.minimal)
    in_place = [
        name
        for name in finding.minimal
        if name in largest and item in _stands_in_for(evidence, name)
    ]
    passed = f"passed {finding.passes} of {finding.runs} runs without it"
    if in_place:
        do = "does" if len(in_place) == 1 else "do"
        passed = f"{', '.join(in_place)} {do} what the job needs of it; {passed}"
    quiet = f"jobs can lose without a word: {entry.wanted_by}" if entry.quiet else ""
    return {"evidence": passed, "warning": "" if in_place else quiet}


def _stands_in_for(evidence: Evidence, item: str) -> tuple[str, ...]:
    """Return the permissive items in whose place *item* was offered."""
    if item in evidence.space.asked:
        return ()
    root = ROOT in evidence.base
    kinds = next((kinds for start, kinds in _IN_PLACE_OF.items() if item.startswith(start)), ())
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
