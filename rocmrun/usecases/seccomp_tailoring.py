"""The second search of diff-privileges: which groups of calls the job's filter can lose, once its rights are known."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from rocmrun.core.plan import Plan
from rocmrun.core.planning.security import SECCOMP_RULES
from rocmrun.core.profile.model import Profile
from rocmrun.core.search import Search
from rocmrun.core.search_space import Finding, Question, Settings, Space
from rocmrun.core.seccomp import compact_seccomp
from rocmrun.core.seccomp_filter import SeccompFilter
from rocmrun.core.seccomp_groups import floor
from rocmrun.core.seccomp_tailored import (
    CANARY_CALL,
    LEAST_REPEATS,
    GroupNeeds,
    TailoredSeccomp,
    group_verdicts,
    groups_in,
    groups_space,
    tailored,
    ungrouped,
)
from rocmrun.core.verification import Verification
from rocmrun.core.voice import Voice
from rocmrun.usecases.privilege_gate import canary_result
from rocmrun.usecases.privilege_sides import Sides
from rocmrun.usecases.privilege_trials import PrivilegeTrials
from rocmrun.usecases.seccomp_base import Base, BaseReader
from rocmrun.usecases.seccomp_probe import ProbeSearch
from rocmrun.usecases.trials import Trial

STAGE = "seccomp"
_ENDS = ("the whole filter", "the filter without any group")
UNCONFINED = "unconfined"
_WHY_NOT = {
    "never": "the job fails with the whole filter too when it is given by value",
    "unstable": "runs with the same filter contradict each other",
    "stopped": "the budget was spent before the whole filter had passed once",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tailored:
    """What came of it: the record, and where a filter was found its text with the job's plan and profile under it."""

    record: TailoredSeccomp
    text: str = ""
    plan: Plan | None = None
    profile: Profile | None = None


@dataclass(slots=True, kw_only=True)
class FilterVariants:
    """The job under a filter that keeps some groups of *base*, with its other rights as they were found."""

    sides: Sides
    items: tuple[str, ...]
    file: Path
    base: SeccompFilter
    floor: frozenset[str]
    permissive: tuple[str, ...]
    _made: dict[frozenset[str], tuple[Profile, Plan]] = field(default_factory=dict)

    def plan(self, items: Iterable[str]) -> Plan:
        """Return the job's plan under the filter that keeps the groups *items*."""
        return self.made(items)[1]

    def made(self, items: Iterable[str]) -> tuple[Profile, Plan]:
        """Return the job's profile and plan under the filter that keeps the groups *items*."""
        kept = frozenset(items)
        if kept not in self._made:
            self._made[kept] = self.under(tailored(self.base, kept, self.floor))
        return self._made[kept]

    def under(self, filter_: SeccompFilter) -> tuple[Profile, Plan]:
        """Return the job's profile and plan under *filter_*."""
        text = compact_seccomp(pretty(filter_))
        return self.sides.filtered(self.items, str(self.file), text)


@dataclass(slots=True, kw_only=True)
class Tailoring:
    """Makes a filter for the job.

    Attributes:
        file: Where the filter will be written: plans name it.
        asked: The search before: its memory, budget and records go on.
        settings: Those of the search before.
        check: Called before each batch of runs.
        hints: Calls that the job was seen to make; they order the groups.
    """

    sides: Sides
    reader: BaseReader
    file: Path
    asked: PrivilegeTrials
    settings: Settings
    voice: Voice
    check: Callable[[], None]
    hints: frozenset[str] = frozenset()
    _read: dict[tuple[tuple[str, ...], str | None], Base] = field(default_factory=dict)

    def prepare(self) -> None:
        """Read the base for the minimal side, before the first search: what keeps that from working is said now."""
        plan = self.sides.plan(())
        if plan.seccomp == UNCONFINED:
            return
        base = self._base(plan)
        groups = groups_in(base.filter, floor(no_new_privileges=plan.no_new_privileges))
        self.voice.say(
            f"then {len(groups)} groups of system calls vary, from {base.record.source} ({base.record.calls} calls); "
            f"what is found must pass {self._repeats} times"
        )

    def run(self, items: tuple[str, ...], why_not: str = "") -> Tailored:
        """Search the groups that the job needs with *items* beyond the minimal side.

        *why_not* is what keeps that from being tried.
        """
        plan = self.sides.plan(items)
        if why_not:
            return self._none("failed", why_not)
        if plan.seccomp == UNCONFINED:
            return self._none("nothing", "the job needs seccomp:unconfined: there is no filter to take from")  # fmt: skip
        base = self._base(plan)
        variants = self._variants(items, plan, base)
        asked = replace(
            self.asked, sides=variants, stage=STAGE, ends=_ENDS, results={}, say=self.voice.say
        )
        canary = Trial(plan=variants.under(base.filter.without([CANARY_CALL]))[1])
        blind = canary_result(canary, asked)
        self.voice.say(f"canary, without {CANARY_CALL}: {blind.verdict} ({blind.evidence})")
        if blind.passed:
            return self._none("failed", "the engine applies no filter that is given by value: the job passes without execve", base)  # fmt: skip
        space = groups_space(base.filter, variants.floor, self.hints)
        finding = self._searched(space, asked)
        if finding.status == "unstable" or not finding.control_passes:
            return self._none("failed", _WHY_NOT[finding.status], base)
        needs = self._needs(base, space, finding, asked)
        return self._found(variants, base, space, needs)

    @property
    def _repeats(self) -> int:
        return max(LEAST_REPEATS, self.settings.repeats)

    def _base(self, plan: Plan) -> Base:
        """Return the filter of *plan*'s container; it depends on its bounding set and a profile of its own alone."""
        key = (plan.cap_add, plan.seccomp)
        if key not in self._read:
            self._read[key] = self.reader.read(plan)
        return self._read[key]

    def _variants(self, items: tuple[str, ...], plan: Plan, base: Base) -> FilterVariants:
        held = floor(no_new_privileges=plan.no_new_privileges)
        return FilterVariants(
            sides=self.sides,
            items=items,
            file=self.file,
            base=base.filter,
            floor=held,
            permissive=tuple(group.name for group in groups_in(base.filter, held)),
        )

    def _searched(self, space: Space, asked: PrivilegeTrials) -> Finding:
        def ask(questions: Sequence[Question]) -> list[bool]:
            self.check()
            return asked(questions)

        # The smallest filter is the likeliest to refuse what a run does only now and then.
        settings = replace(self.settings, repeats=self._repeats, verify_least=True)
        return Search(space, ask, settings).run()

    def _needs(
        self, base: Base, space: Space, finding: Finding, asked: PrivilegeTrials
    ) -> GroupNeeds:
        """Return what the job needs, and the probe that a launch runs before it under the same filter."""
        needs = GroupNeeds(
            kept=finding.minimal,
            groups=group_verdicts(base.filter, space, finding, asked.results),
            verification=Verification.of(finding),
            one_minimal=(finding.status == "found" or not finding.minimal)
            and set(finding.minimal) == set(finding.proven),
            stopped=finding.status == "stopped",
        )
        if asked.trials.oracle is None:
            return needs
        self.voice.say("the probe, which a launch runs first, under the same filter:")
        search = ProbeSearch(
            base=base.filter,
            space=space,
            asked=asked,
            settings=replace(self.settings, repeats=self._repeats),
            check=self.check,
        )
        return search.extended(needs)

    def _found(
        self, variants: FilterVariants, base: Base, space: Space, needs: GroupNeeds
    ) -> Tailored:
        found = tailored(base.filter, needs.kept, variants.floor)
        text = pretty(found)
        profile, plan = variants.made(needs.kept)
        rights = self.sides.plan(variants.items)
        record = TailoredSeccomp(
            status="tailored",
            file=str(self.file),
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            base=base.record,
            removed=tuple(name for name in space.elements if name not in needs.kept),
            ungrouped=ungrouped(base.filter, variants.floor),
            calls_before=len(base.filter.calls),
            calls_after=len(found.calls),
            rules=tuple(
                g.what for g in rights.grants if g.what.removeprefix("seccomp:") in SECCOMP_RULES
            ),
            **{item.name: getattr(needs, item.name) for item in fields(needs)},
        )
        return Tailored(record=record, text=text, plan=plan, profile=profile)

    def _none(self, status: str, why: str, base: Base | None = None) -> Tailored:
        self.voice.warn(f"no seccomp profile: {why}")
        record = TailoredSeccomp.model_validate(
            {"status": status, "reason": why, "file": str(self.file), "base": base.record if base else None}
        )  # fmt: skip
        return Tailored(record=record)


def pretty(filter_: SeccompFilter) -> str:
    """Return a filter as people read it."""
    return json.dumps(filter_.to_json(), indent=2) + "\n"
