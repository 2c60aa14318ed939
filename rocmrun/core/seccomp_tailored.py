"""A seccomp filter made for one job: groups of calls taken from the engine's own, and what is known of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from rocmrun.core.oracle import TrialResult
from rocmrun.core.search_space import Finding, Members, Space
from rocmrun.core.seccomp_filter import SeccompFilter
from rocmrun.core.seccomp_groups import GROUPS, CallGroup, group_of
from rocmrun.core.verification import CertificateRecord, Verification

# A list of calls is wrong in ways that a privilege is not: every run takes its own path through them.
LEAST_REPEATS = 10
# The canary: nothing starts without it.
CANARY_CALL = "execve"
ProbeUnder = Literal["job", "passes", "fails", "untested"]
GroupNeed = Literal["required", "degraded", "removed", "untested"]


class SeccompBase(CertificateRecord):
    """What was subtracted from.

    Attributes:
        source: In words: the engine's own, or a file.
        engine: Its kind and version: what its own filter depends on.
        file: The file, where it was one; "" where the engine was asked.
        sha256: Of the file; of the filter's JSON text where the engine was asked.
        calls: How many calls it lets run in this container.
    """

    source: str
    engine: str
    file: str = ""
    sha256: str
    calls: int


class GroupVerdict(CertificateRecord):
    """Whether the job needs one group of calls.

    Attributes:
        evidence: What happened without it, in the program's own words where it had some.
        warning: What may be lost without a word, now that it is removed.
        needed_by: "probe" where the job does without, and the probe that a launch runs first does not.
        calls: Those of the group that the base lets run.
    """

    group: str
    verdict: GroupNeed
    needed_by: Literal["job", "probe"] = "job"
    evidence: str = ""
    error: str = ""
    exposes: str = ""
    wanted_by: str = ""
    warning: str = ""
    severity: float = 0.0
    calls: tuple[str, ...] = ()


class TailoredSeccomp(CertificateRecord):
    """What came of tailoring.

    Attributes:
        status: "tailored"; "nothing": there is nothing to subtract from; "failed": no filter that passes was found.
        reason: Why there is no filter; "" where there is.
        file: Where it was to be written.
        sha256: Of the text that is written there.
        kept, removed: Names of groups.
        ungrouped: Calls that stay since no group has them and the floor does not name them.
        rules: Grants of the privilege search that are in the filter, so that no capability need unlock them.
        probe: The probe that a launch runs first: "passes" under it; is the "job" itself; "fails" under the whole
            filter too, so that a launch needs --no-probe; or "untested".
        one_minimal: Whether each group that was kept was left out by itself and the job failed.
        stopped: Whether the budget ended the search: the filter passes, and can allow too much.
    """

    status: Literal["tailored", "nothing", "failed"]
    reason: str = ""
    file: str
    sha256: str = ""
    base: SeccompBase | None = None
    groups: tuple[GroupVerdict, ...] = ()
    kept: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    ungrouped: tuple[str, ...] = ()
    calls_before: int = 0
    calls_after: int = 0
    rules: tuple[str, ...] = ()
    probe: ProbeUnder = "untested"
    probe_reason: str = ""
    one_minimal: bool = False
    stopped: bool = False
    verification: Verification | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNeeds:
    """Which groups must be kept, and what is known of that; the fields are those of `TailoredSeccomp`."""

    kept: tuple[str, ...]
    groups: tuple[GroupVerdict, ...]
    verification: Verification
    one_minimal: bool
    stopped: bool
    probe: ProbeUnder = "job"
    probe_reason: str = ""


def groups_in(base: SeccompFilter, floor: frozenset[str]) -> tuple[CallGroup, ...]:
    """Return the groups of which *base* lets something run that is not in the floor."""
    return tuple(
        group
        for group in GROUPS
        if group.calls & base.calls - floor or group.architectures & set(base.architectures)
    )


def tailored(base: SeccompFilter, kept: Iterable[str], floor: frozenset[str]) -> SeccompFilter:
    """Return *base* without the calls of every group but those *kept*; what the floor names stays."""
    held = set(kept)
    gone = [group for group in GROUPS if group.name not in held]
    return base.without(
        frozenset().union(*(group.calls for group in gone)) - floor,
        frozenset().union(*(group.architectures for group in gone)),
    )


def ungrouped(base: SeccompFilter, floor: frozenset[str]) -> tuple[str, ...]:
    """Return the calls that no search takes away, though nothing is known to need them."""
    grouped = frozenset().union(*(group.calls for group in GROUPS))
    return tuple(sorted(base.calls - grouped - floor))


def groups_space(
    base: SeccompFilter, floor: frozenset[str], hints: frozenset[str] = frozenset()
) -> Space:
    """Return the search for the groups that must be kept, the mildest preferred.

    *hints* are calls that a job was seen to make: their groups come first. They order, and never decide.
    """
    groups = sorted(
        groups_in(base, floor),
        key=lambda group: (not group.calls & hints - floor, group.severity, group.name),
    )
    return Space.of([group.name for group in groups])


def group_verdicts(
    base: SeccompFilter,
    space: Space,
    finding: Finding,
    results: Mapping[Members, Iterable[TrialResult]],
) -> tuple[GroupVerdict, ...]:
    """Return a verdict for each group of *space*; those that were kept first."""
    removed = [name for name in space.elements if name not in finding.minimal]
    return (
        *(_kept(base, name, finding, results) for name in finding.minimal),
        *(_verdict(base, name, "removed", "") for name in removed),
    )


def with_probe(
    job: tuple[GroupVerdict, ...], probe: tuple[GroupVerdict, ...]
) -> tuple[GroupVerdict, ...]:
    """Return the verdicts of a job, and in the place of removed groups those that the probe keeps."""
    kept = [verdict for verdict in probe if verdict.verdict != "removed"]
    names = {verdict.group for verdict in kept}
    needed = [verdict for verdict in job if verdict.verdict != "removed"]
    return (
        *needed,
        *(verdict.model_copy(update={"needed_by": "probe"}) for verdict in kept),
        *(
            verdict
            for verdict in job
            if verdict.verdict == "removed" and verdict.group not in names
        ),
    )


def _kept(
    base: SeccompFilter,
    name: str,
    finding: Finding,
    results: Mapping[Members, Iterable[TrialResult]],
) -> GroupVerdict:
    """Say what happened without a group; a runtime that cannot start is a need too: it is the filter's doing."""
    without = results.get(frozenset(finding.minimal) - {name}, ())
    failed = [result for result in without if not result.passed]
    if name not in finding.proven or not failed:
        why = "the search ended before it was left out by itself; the filter that passes has it"
        return _verdict(base, name, "untested", why)
    result = failed[0]
    need: GroupNeed = "degraded" if result.verdict == "degraded" else "required"
    return _verdict(base, name, need, result.evidence, error=result.error)


def _verdict(
    base: SeccompFilter, name: str, verdict: GroupNeed, evidence: str, *, error: str = ""
) -> GroupVerdict:
    group = group_of(name)
    lost = group.quiet and verdict == "removed"
    return GroupVerdict(
        group=name,
        verdict=verdict,
        evidence=evidence,
        error=error,
        exposes=group.exposes,
        wanted_by=group.wanted_by,
        warning=f"jobs can lose without a word: {group.wanted_by}" if lost else "",
        severity=group.severity,
        calls=tuple(sorted(group.calls & base.calls)),
    )
