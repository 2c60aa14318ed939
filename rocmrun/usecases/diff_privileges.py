"""diff-privileges: find by experiment which privileges a job needs, as the list of steps that it is."""

import hashlib
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rocmrun.core.exposure import score_plan
from rocmrun.core.loaded_profile import LoadedProfile, refuse_overrides
from rocmrun.core.oracle import CommandOracle, TrialResult
from rocmrun.core.privilege_report import (
    Certificate,
    Evidence,
    Found,
    Verification,
    needed_items,
    verdicts,
)
from rocmrun.core.run_record import EngineSummary, HostSummary
from rocmrun.core.search import Search
from rocmrun.core.search_space import Finding, Question, Settings, Space
from rocmrun.core.voice import Voice
from rocmrun.errors import Interrupted, OracleFails, Unavailable, UsageError
from rocmrun.system import gpu_locks, signals
from rocmrun.system.package_data import read_probe_source
from rocmrun.system.sysfs import read_host
from rocmrun.usecases.ask import Ask, refuse_unlocked_in_ci
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.gpu_guard import gpus_reserved
from rocmrun.usecases.launch import announce
from rocmrun.usecases.mount_sources import check_unchanged
from rocmrun.usecases.prepare import load
from rocmrun.usecases.privilege_gate import check_sight, leave_out_what_cannot_start
from rocmrun.usecases.privilege_sides import Sides, load_minimal, make_sides
from rocmrun.usecases.privilege_trials import Budget, PrivilegeTrials
from rocmrun.usecases.run_report import now
from rocmrun.usecases.secrets import check_secrets
from rocmrun.usecases.trial_memory import TrialMemory
from rocmrun.usecases.trials import Trial, Trials

# Before a run has shown how long it takes: a container and a short command; a probe with one import of torch.
COMMAND_SECONDS, PROBE_SECONDS = 5, 20
SEVERAL_NEEDED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """What the command line asks of diff-privileges.

    Attributes:
        ask: The profile, with its command.
        minimal: The profile of the minimal side; None for the baseline.
        recipe: "amd" for AMD's usual docker line as the permissive side.
        oracle: What the command must do; None for the probe.
        level: The probe's level when the result is verified; searching is quick.
        timeout_seconds: When a command that has not ended counts as failed.
        resume: Go on with what an interrupted search remembered.
    """

    ask: Ask
    minimal: Ask | None = None
    recipe: str | None = None
    oracle: CommandOracle | None = None
    level: str = "quick"
    settings: Settings = field(default_factory=Settings)
    budget: Budget = field(default_factory=Budget)
    timeout_seconds: float = 600
    share: bool = False
    wait_seconds: float = 0
    resume: bool = False
    lock_directory: Path = gpu_locks.DIRECTORY


def diff_privileges(request: DiffRequest, *, connect: Callable[[], Engine], voice: Voice) -> Found:
    """Search the smallest set of privileges with which the job passes, and prove it.

    Raises:
        RocmrunError: the sides cannot be compared, or the job fails on the permissive side too.
    """
    with signals.as_exceptions():
        loaded = load(request.ask)
        minimal = load_minimal(request.minimal) if request.minimal else None
        check_policy(request, loaded)
        engine = connect()
        sides = make_sides(
            request.ask,
            loaded,
            minimal,
            engine,
            recipe=request.recipe,
            prove=request.oracle is None,
            on_pull=voice.on_pull,
        )
        announce(sides.prepared, voice)
        _refuse_wider(loaded, sides)
        plan = sides.plan(())
        reserved = gpus_reserved(
            plan,
            engine,
            exclusive=loaded.profile.gpus.exclusive and not request.share,
            wait_seconds=request.wait_seconds,
            read_host=lambda: read_host(request.ask.host_root),
            lock_directory=request.lock_directory,
            say=voice.say,
        )
        with reserved:
            return _Diff(request=request, sides=sides, engine=engine, voice=voice).run()


@dataclass(slots=True)
class _Diff:
    """One diff on its way."""

    request: DiffRequest
    sides: Sides
    engine: Engine
    voice: Voice
    _asked: PrivilegeTrials = field(init=False)
    _settings: Settings = field(init=False)
    _hash: str = field(init=False)
    _timed: bool = field(init=False, default=False)
    _started_at: str = field(init=False, default_factory=now)

    def __post_init__(self) -> None:
        """Set the experiment up; nothing runs yet."""
        request, sides = self.request, self.sides
        probe = request.oracle is None
        # Ports of the host are there once, and GPUs are proved by one probe at a time.
        alone = probe or bool(sides.plan(()).ports)
        self._settings = replace(
            request.settings,
            jobs=1 if alone else request.settings.jobs,
            deep=probe and request.level != "quick",
        )
        if alone and request.settings.jobs > 1:
            why = "probes want the GPUs for themselves" if probe else "ports can be published once"
            self.voice.say(f"one run at a time: {why}")
        trials = Trials(
            engine=self.engine,
            oracle=request.oracle,
            levels=("quick", request.level),
            timeout_seconds=request.timeout_seconds,
            voice=self.voice,
            run_id=secrets.token_hex(4),
            profile_file=sides.prepared.loaded.path,
            check_files=sides.prepared.check_files,
            ready=sides.make_cache,
        )
        self._hash = sides.plan(sides.permissive).hash
        key = trials.fingerprint(Trial(plan=sides.plan(sides.permissive)))
        self._asked = PrivilegeTrials(
            sides=sides,
            trials=trials,
            memory=TrialMemory.of(key, where=self._where(), resume=request.resume),
            budget=request.budget,
            say=self.voice.say,
        )

    def _where(self) -> list[Any]:
        """Return what answers depend on beside the containers themselves."""
        host = HostSummary.of(self.sides.prepared.host, self.sides.plan(()))
        engine = EngineSummary.of(self.engine.facts())
        probe = hashlib.sha256(read_probe_source()).hexdigest() if not self.request.oracle else ""
        return [host.model_dump(mode="json"), engine.model_dump(mode="json"), probe]

    def run(self) -> Found:
        """Estimate, look for blindness, take out what cannot start, search, and write down what was found."""
        self._announce()
        try:
            check_sight(self.sides, self._asked, self.voice)
            leave_out_what_cannot_start(self.sides, self._asked.trials, self.voice)
            space = self.sides.space
            finding = Search(space, self._ask, self._settings).run()
        except (Interrupted, Unavailable) as error:
            again = "go on where it stopped: the same line with --resume"
            error.hint = f"{error.hint}; {again}" if error.hint else again
            raise
        if finding.status == "never":
            raise self._never()
        if finding.status == "stopped" and not finding.control_passes:
            msg = "the budget was spent before the permissive side had passed once"
            raise UsageError(
                msg, hint=f"--budget {expected_runs(len(space.asked), self._settings)}"
            )
        if finding.status == "unstable":
            self.voice.warn(
                "runs of the same container contradict each other; the result is the permissive side"
            )
        return self._found(space, finding)

    def _announce(self) -> None:
        """Say what varies, and how many runs that may take, before the first."""
        varying = len(self.sides.permissive)
        settings = self._settings
        runs = expected_runs(varying, settings)
        seconds = PROBE_SECONDS if self.request.oracle is None else COMMAND_SECONDS
        minutes = runs * seconds / settings.jobs / 60
        vary = "1 privilege varies" if varying == 1 else f"{varying} privileges vary"
        needed = min(SEVERAL_NEEDED, varying)
        self.voice.say(
            f"{vary}; {4 + 2 * settings.deep} runs when none is needed, about {runs} when "
            f"{needed} {'is' if needed == 1 else 'are'}: about {max(1, math.ceil(minutes))} min if a run takes {seconds} s"
        )
        for item, why in self.sides.untested.items():
            self.voice.warn(f"{item} is untested: {why}")
        remembered = self._asked.memory.remembered
        if remembered:
            self.voice.say(f"{remembered} results of an earlier search are remembered")

    def _ask(self, questions: Sequence[Question]) -> list[bool]:
        check_unchanged(self.sides.prepared, self.engine)
        if not self._timed and questions[0].purpose == "search":
            self._say_how_long()
        return self._asked(questions)

    def _say_how_long(self) -> None:
        """Say how long the search may take, now that runs have shown how long one takes."""
        self._timed = True
        records = self._asked.records
        seconds = max(record.result.seconds for record in records)
        left = max(1, expected_runs(len(self.sides.permissive), self._settings) - len(records))
        minutes = math.ceil(left * seconds / self._settings.jobs / 60)
        self.voice.say(f"a run takes up to {seconds:.1f} s: about {minutes} min more")

    def _never(self) -> OracleFails:
        """Say what is known of a job that fails with every privilege."""
        whole = [r for r in self._asked.records if set(r.items) >= set(self.sides.permissive)]
        results = [record.result for record in whole if record.purpose != "canary"]
        last = results[-1] if results else TrialResult(verdict="fail")
        told = (last.reason, *((last.line,) if last.line and last.line != last.reason else ()))
        msg = f"the job fails on the permissive side too ({len(results)} runs): it is no privilege that it lacks"
        hint = (
            "see every check with `rocmrun probe`"
            if self.request.oracle is None
            else f"see all of its output: rocmrun launch {self.request.ask.profile} --no-probe -- COMMAND"
        )
        return OracleFails(msg, details=tuple(filter(None, told)), hint=hint)

    def _found(self, space: Space, finding: Finding) -> Found:
        sides, request = self.sides, self.request
        permissive, minimal = sides.plan(sides.permissive), sides.plan(finding.minimal)
        host, facts = sides.prepared.host, self.engine.facts()
        evidence = Evidence(
            space=space,
            finding=finding,
            base=sides.base,
            results=self._asked.results,
            untested=sides.untested,
        )
        certificate = Certificate(
            profile=permissive.profile,
            recipe=request.recipe or "",
            minimal_profile=request.minimal.profile if request.minimal else "",
            image_ref=permissive.image.ref,
            image_digest=permissive.image.digest,
            image_id=permissive.image.image_id,
            command=permissive.command,
            oracle=request.oracle.to_json() if request.oracle else {"probe": request.level},
            profile_hash=self._hash,
            engine=EngineSummary.of(facts),
            host=HostSummary.of(host, permissive),
            base=sides.base,
            permissive=sides.permissive,
            minimal=needed_items(sides.base, finding.minimal),
            one_minimal=finding.status == "found" and set(finding.minimal) == set(finding.proven),
            stopped=finding.status == "stopped",
            verification=Verification.of(finding),
            verdicts=verdicts(evidence),
            runs=tuple(self._asked.records),
            exposure={
                "permissive": score_plan(permissive, host, facts).to_json(),
                "minimal": score_plan(minimal, host, facts).to_json(),
            },
            started_at=self._started_at,
            ended_at=now(),
        )
        return Found(certificate=certificate, plan=minimal, profile=sides.profile(finding.minimal))


def expected_runs(varying: int, settings: Settings) -> int:
    """Return about how many runs a search takes when three privileges are needed, canary and proof among them."""
    needed = min(SEVERAL_NEEDED, varying)
    if not needed:
        return 4
    searching = needed * (math.ceil(math.log2(max(2, varying / needed))) + 1)
    return 5 + searching + needed * (1 + settings.retries) + settings.repeats


def check_request(request: DiffRequest) -> None:
    """Refuse options that contradict each other, before anything is looked at."""
    if request.recipe and request.minimal:
        msg = "--recipe names the permissive side; the minimal side is the baseline then"
        raise UsageError(msg, hint="leave out MINIMAL, or --recipe")
    refuse_unlocked_in_ci(request.ask)


def check_policy(request: DiffRequest, loaded: LoadedProfile) -> None:
    """Refuse what a profile that forbids overrides may not be run with, and a command whose secrets are not there."""
    ask = request.ask
    asked = {
        f"--recipe {request.recipe}": request.recipe,
        "--debug": ask.debug,
        "--unlocked": ask.unlocked,
        "--share": request.share,
    }
    refuse_overrides(loaded, [option for option, given in asked.items() if given])
    if request.oracle is not None:
        check_secrets(loaded.profile)


def _refuse_wider(loaded: LoadedProfile, sides: Sides) -> None:
    """A minimal side with rights that the profile has not is a change of it too."""
    wider = sorted(set(sides.base) - set(sides.asked.items))
    refuse_overrides(loaded, [f"{item}, which the minimal side has" for item in wider])
