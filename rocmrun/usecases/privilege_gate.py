"""What comes before a search of privileges: an oracle that sees, and a permissive side that starts and passes."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

from rocmrun.core.certificate import TrialRecord
from rocmrun.core.oracle import TrialResult
from rocmrun.core.plan import Plan
from rocmrun.core.privilege_sides import NVIDIA
from rocmrun.core.search import Search
from rocmrun.core.search_space import Members, Question, Settings
from rocmrun.core.text import MIB
from rocmrun.core.voice import Voice
from rocmrun.errors import OracleBlind, OracleFails
from rocmrun.usecases.privilege_request import DiffRequest
from rocmrun.usecases.privilege_sides import Sides
from rocmrun.usecases.privilege_trials import PrivilegeTrials
from rocmrun.usecases.trials import NO_PROGRAM, Trial, Trials

CANARY_MEMORY = 32 * MIB
LONGEST_COMMAND = 120


def check_sight(sides: Sides, asked: PrivilegeTrials, voice: Voice) -> None:
    """Take away what the job cannot do without: an oracle that passes then sees nothing.

    Raises:
        OracleBlind: it passed.
    """
    trial, what = _canary(sides.plan(sides.permissive), probe=asked.trials.oracle is None)
    result = canary_result(trial, asked)
    voice.say(f"canary, {what}: {result.verdict} ({result.evidence or 'no reason'})")
    if result.passed:
        msg = f"the job passes {what}: what is asked of it cannot tell whether it works"
        raise OracleBlind(
            msg, hint="ask for more: --expect-output REGEX, --metric NAME=MIN, or the probe"
        )


def _canary(plan: Plan, *, probe: bool) -> tuple[Trial, str]:
    for node, what in (("/dev/kfd", "without /dev/kfd"), (NVIDIA, "without the GPUs' nodes")):
        if any(d.cdi or d.path.startswith(node) for d in plan.devices):
            return Trial(plan=_without(node, plan)), what
    if probe:
        small = plan.with_changes(memory_bytes=CANARY_MEMORY)
        return Trial(plan=small), "with too little memory for torch"
    return Trial(plan=plan, command=(NO_PROGRAM,)), "with a program that does not exist"


def _without(node: str, plan: Plan) -> Plan:
    """Return *plan* without what every GPU needs, and without what CDI brings."""
    return plan.with_changes(
        devices=tuple(d for d in plan.devices if not d.cdi and not d.path.startswith(node))
    )


def canary_result(trial: Trial, asked: PrivilegeTrials) -> TrialResult:
    """Run what should fail, once, and write it down."""
    key = asked.trials.fingerprint(trial)
    result = asked.memory.find(key, 0)
    reused = result is not None
    if result is None:
        result = asked.trials.run([trial])[0]
        asked.memory.add(key, result)
    record = TrialRecord(
        request=key,
        items=asked.sides.permissive,
        purpose="canary",
        stage=asked.stage,
        reused=reused,
        result=result,
    )
    asked.records.append(record)
    return result


def leave_out_what_cannot_start(sides: Sides, trials: Trials, voice: Voice) -> None:
    """Find the items with which the engine starts no container: they are untested, and never needed.

    Raises:
        OracleFails: not even the minimal side starts.
    """
    while why := trials.refusal(sides.plan(sides.permissive)):
        culprits = _culprits(sides, lambda items: bool(trials.refusal(sides.plan(items))))
        if not culprits:
            msg = f"the engine does not start the minimal side either: {why}"
            raise OracleFails(msg)
        sides.leave_out(culprits, f"the engine starts no container with it: {why}")
        voice.warn(f"{', '.join(culprits)} untested: the engine refuses it ({why})")
    space = sides.space
    if trials.refusal(sides.plan(space.elements)):
        offered = [item for item in space.elements if item not in space.asked]
        sides.no_offer |= {item for item in offered if trials.refusal(sides.plan([item]))}


def _culprits(sides: Sides, starts_not: Callable[[Members], bool]) -> tuple[str, ...]:
    """Return a smallest set of the permissive side's items that the engine refuses together."""
    space = sides.space
    alone = replace(space, elements=tuple(e for e in space.elements if e in space.asked))

    def ask(questions: Sequence[Question]) -> list[bool]:
        return [starts_not(question.members) for question in questions]

    return Search(alone, ask, Settings(retries=0, repeats=1)).run().minimal


def never_passes(request: DiffRequest, sides: Sides, asked: PrivilegeTrials) -> OracleFails:
    """Say what is known of a job that fails with every privilege."""
    whole = [record for record in asked.records if set(record.items) >= set(sides.permissive)]
    results = [record.result for record in whole if record.purpose != "canary"]
    last = results[-1] if results else TrialResult(verdict="fail")
    told = (last.reason, *((last.line,) if last.line and last.line != last.reason else ()))
    msg = f"the job fails on the permissive side too ({len(results)} runs): it is no privilege that it lacks"
    words = shlex.join(request.ask.options.command)
    command = words if 0 < len(words) <= LONGEST_COMMAND else "COMMAND"
    hint = (
        "see every check with `rocmrun probe`"
        if request.oracle is None
        else f"see all of its output: rocmrun launch {request.ask.profile} --no-probe -- {command}"
    )
    return OracleFails(msg, details=tuple(filter(None, told)), hint=hint)
