"""Answers for a search of privileges: runs a trial for each question, within a budget, and remembers all of them."""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rocmrun.core.certificate import TrialRecord
from rocmrun.core.oracle import TrialResult
from rocmrun.core.plan import Plan
from rocmrun.core.privilege_sides import without_smaller
from rocmrun.core.search_space import Members, Question, Stopped
from rocmrun.errors import RocmrunError, UsageError
from rocmrun.usecases.trial_memory import TrialMemory
from rocmrun.usecases.trials import Trial, Trials

_BUDGET = re.compile(r"([1-9][0-9]{0,5})(m|min|h)?")
_SECONDS = {"m": 60, "min": 60, "h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much may be spent; None is no limit."""

    runs: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Budget":
        """Return the budget that "40" (runs), "15m" or "2h" means.

        Raises:
            UsageError: it is none of these.
        """
        match = _BUDGET.fullmatch(text)
        if match is None:
            msg = f'--budget "{text}" is neither a number of runs nor a time'
            raise UsageError(msg, hint="write --budget 40, --budget 15m or --budget 2h")
        amount, unit = int(match[1]), match[2]
        return cls(seconds=amount * _SECONDS[unit]) if unit else cls(runs=amount)


@dataclass(slots=True)
class Spending:
    """What has been spent of a budget, by every stage of a search."""

    budget: Budget
    runs: int = 0
    _began: float = field(default_factory=time.monotonic)

    def check(self, runs: int) -> None:
        """Raise Stopped when *runs* more are not to be had."""
        most, seconds = self.budget.runs, self.budget.seconds
        out_of_runs = most is not None and self.runs + runs > most
        if out_of_runs or (seconds is not None and time.monotonic() - self._began > seconds):
            raise Stopped


class Variants(Protocol):
    """The job under every set of items that a search may ask about."""

    @property
    def permissive(self) -> tuple[str, ...]:
        """All that varies."""

    def plan(self, items: Iterable[str]) -> Plan:
        """Return the job's plan with *items* alone of what varies."""


@dataclass(slots=True)
class PrivilegeTrials:
    """Answers questions about sets of items.

    Attributes:
        stage: Which search asks, as the certificate says it.
        ends: What the whole and the empty set are called.
        records: Every run, in order.
        results: Set → the results of its runs, in order of attempts.
        say: Told of each run.
        looked_at: Sets whose runs are looked at for where they write, until something is found.
    """

    sides: Variants
    trials: Trials
    memory: TrialMemory
    spending: Spending
    say: Callable[[str], None]
    stage: str = "privileges"
    ends: tuple[str, str] = ("everything", "the minimal side")
    records: list[TrialRecord] = field(default_factory=list)
    results: dict[Members, list[TrialResult]] = field(default_factory=dict)
    looked_at: set[Members] = field(default_factory=set)

    def __call__(self, questions: Sequence[Question]) -> list[bool]:
        """Answer one batch.

        Raises:
            Stopped: the budget is spent.
        """
        trials = [self._trial(question) for question in questions]
        keys = [
            self.trials.fingerprint(trial) if isinstance(trial, Trial) else "" for trial in trials
        ]
        self._run(
            [
                (t, k, q)
                for t, k, q in zip(trials, keys, questions, strict=True)
                if isinstance(t, Trial)
            ]
        )
        return [
            self._recorded(question, key, trial).passed
            for question, key, trial in zip(questions, keys, trials, strict=True)
        ]

    def _trial(self, question: Question) -> Trial | TrialResult:
        try:
            plan = self.sides.plan(question.members)
            look = question.members in self.looked_at and question.purpose != "proof"
            return Trial(plan=plan, deep=question.deep, look=look)
        except RocmrunError as error:
            # No plan of this host has these items: what is missing is what makes it one.
            return TrialResult(verdict="fail", reason=error.message)

    def _run(self, asked: Sequence[tuple[Trial, str, Question]]) -> None:
        """Run what is not remembered; sets that come to the same container are run once."""
        new: dict[tuple[str, int], Trial] = {}
        for trial, key, question in asked:
            if self.memory.find(key, question.attempt) is None:
                new[key, question.attempt] = trial
        if not new:
            return
        self.spending.check(len(new))
        for (key, _), result in zip(new, self.trials.run(list(new.values())), strict=True):
            self.spending.runs += 1
            self.memory.add(key, result)
        self.memory.save()

    def _recorded(self, question: Question, key: str, trial: Trial | TrialResult) -> TrialResult:
        found = trial if isinstance(trial, TrialResult) else self.memory[key, question.attempt]
        self.results.setdefault(question.members, []).append(found)
        if found.passed and question.members == frozenset(self.sides.permissive):
            # What is degraded with every privilege is no privilege's doing.
            self.trials.accepted.setdefault(question.deep, found.degraded)
        record = TrialRecord(
            request=key,
            items=tuple(sorted(question.members)),
            purpose=question.purpose,
            stage=self.stage,
            attempt=question.attempt,
            deep=question.deep,
            reused=bool(key) and self.memory.is_earlier(key, question.attempt),
            result=found,
        )
        self.records.append(record)
        what = _held(record, set(self.sides.permissive), self.ends)
        self.say(_line(len(self.records), record, what))
        return found


def _held(record: TrialRecord, whole: set[str], ends: tuple[str, str]) -> str:
    held, left = set(record.items), sorted(whole - set(record.items))
    if held >= whole:
        return ends[0]
    if not held:
        return ends[1]
    if len(left) > len(held):
        return f"only {', '.join(sorted(without_smaller(held)))}"
    instead = sorted(without_smaller(held) - whole)
    return f"without {', '.join(left)}" + (f", with {', '.join(instead)}" if instead else "")


def _line(number: int, record: TrialRecord, what: str) -> str:
    result = record.result
    why = f": {result.evidence}" if result.evidence else ""
    kept = ", remembered" if record.reused else ""
    level = ", thorough" if record.deep else ""
    return f"run {number} ({record.purpose}{level}{kept}): {what}: {result.verdict}{why} [{result.seconds:.1f} s]"
