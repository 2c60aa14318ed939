"""The probe under a job's filter: a launch runs it first and with equal rights, so that it must pass there too."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rocmrun.core.plan import Plan
from rocmrun.core.search import Search
from rocmrun.core.search_space import Finding, Question, Settings, Space, Stopped
from rocmrun.core.seccomp_filter import SeccompFilter
from rocmrun.core.seccomp_tailored import GroupNeeds, group_verdicts, with_probe
from rocmrun.core.verification import Verification
from rocmrun.usecases.privilege_trials import PrivilegeTrials, Variants

STAGE = "seccomp-probe"
_ENDS = ("the probe under the whole filter", "the probe under the job's filter")
# A probe that fails with every call is told, and no more: it is the job that was asked for.
_RETRIES = 1
_CONTRADICTION = "its runs contradict each other"
_SPENT = "the budget was spent"
_FAILS_UNDER_IT = (
    "it needs more than the job, and the job fails at times under the filter with both"
)
# Of so many runs more may fail than before, where some failed before: chance.
_CHANCE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideJob:
    """The job's plans, whose filters keep what the job needs and some of the other groups."""

    variants: Variants
    kept: tuple[str, ...]

    @property
    def permissive(self) -> tuple[str, ...]:
        """The groups that the job does without."""
        return tuple(name for name in self.variants.permissive if name not in self.kept)

    def plan(self, items: Iterable[str]) -> Plan:
        """Return the plan whose filter keeps the job's groups and *items*."""
        return self.variants.plan({*self.kept, *items})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSearch:
    """Searches what the probe needs beyond a job.

    Attributes:
        asked: The job's runs.
        settings: The job's; how often the filter must pass is among them.
        check: Called before each batch of runs.
    """

    base: SeccompFilter
    space: Space
    asked: PrivilegeTrials
    settings: Settings
    check: Callable[[], None]

    def extended(self, needs: GroupNeeds) -> GroupNeeds:
        """Return *needs* of the job with those of the probe, at the level at which a launch runs it."""
        finding, runs = self._search(needs.kept)
        if finding.status == "never":
            failed = next(result for results in runs.results.values() for result in results)
            return replace(needs, probe="fails", probe_reason=failed.evidence)
        if finding.status == "unstable" or not finding.control_passes:
            why = _CONTRADICTION if finding.status == "unstable" else _SPENT
            return replace(needs, probe="untested", probe_reason=why)
        if not finding.minimal:
            return replace(needs, probe="passes")
        more = group_verdicts(self.base, self._rest(needs.kept), finding, runs.results)
        both = {*needs.kept, *finding.minimal}
        kept = tuple(name for name in self.space.elements if name in both)
        verification, whole = self._verified(kept, needs.verification)
        if not _holds(verification, needs.verification):
            # The job's own filter is the one that was seen to do.
            why = _FAILS_UNDER_IT if verification.runs else _SPENT
            return replace(needs, probe="untested", probe_reason=why, stopped=True)
        proven = finding.status == "found" and set(finding.minimal) == set(finding.proven)
        return GroupNeeds(
            kept=kept,
            groups=with_probe(needs.groups, more),
            verification=verification,
            one_minimal=needs.one_minimal and proven,
            stopped=needs.stopped or finding.status == "stopped" or not whole,
            probe="passes",
        )

    def _rest(self, kept: tuple[str, ...]) -> Space:
        return Space.of([name for name in self.space.elements if name not in kept])

    def _search(self, kept: tuple[str, ...]) -> tuple[Finding, PrivilegeTrials]:
        variants = BesideJob(variants=self.asked.sides, kept=kept)
        level = variants.plan(()).probe.level
        trials = replace(
            self.asked.trials, oracle=None, levels=(level, level), accepted={}, run_id=f"{self.asked.trials.run_id}p"
        )  # fmt: skip
        runs = replace(
            self.asked, sides=variants, trials=trials, stage=STAGE, ends=_ENDS, results={}
        )

        def ask(questions: Sequence[Question]) -> list[bool]:
            self.check()
            return runs(questions)

        retries = min(self.settings.retries, _RETRIES)
        settings = replace(self.settings, jobs=1, deep=False, retries=retries)
        return Search(self._rest(kept), ask, settings).run(), runs

    def _verified(self, kept: tuple[str, ...], job: Verification) -> tuple[Verification, bool]:
        """Run the job under the filter that the probe made larger: how often it passed, and whether all runs were had."""
        repeats, jobs = self.settings.repeats, self.settings.jobs
        questions = [
            Question(members=frozenset(kept), attempt=number, purpose="proof")
            for number in range(repeats)
        ]
        try:
            for start in range(0, repeats, jobs):
                self.check()
                self.asked(questions[start : start + jobs])
        except Stopped:
            pass
        seen = [result.passed for result in self.asked.results.get(frozenset(kept), ())][:repeats]
        finding = Finding(
            status="found", minimal=kept, passes=sum(seen), runs=len(seen),
            control_passes=job.control_passes, control_runs=job.control_runs,
        )  # fmt: skip
        return Verification.of(finding), len(seen) == repeats


def _holds(found: Verification, before: Verification) -> bool:
    """Whether a job was seen to pass, and about as often as *before*."""
    failed, expected = found.runs - found.passes, before.runs - before.passes
    return found.passes > 0 and failed <= (expected + _CHANCE if expected else 0)
