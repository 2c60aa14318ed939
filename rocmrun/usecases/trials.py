"""Trials: one container a plan, inspected as a launch inspects it, judged and always removed."""

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rocmrun.core import labels
from rocmrun.core.create_request import create_request
from rocmrun.core.oracle import CommandOracle, TrialResult, judge, judge_probe
from rocmrun.core.plan import Plan, canonical_json
from rocmrun.core.probing.image import probe_plan
from rocmrun.core.probing.protocol import bootstrap_command
from rocmrun.core.voice import Voice
from rocmrun.core.writes import Writes
from rocmrun.errors import (
    CommandNotFound,
    EngineFailed,
    HostNotReady,
    LimitDropped,
    PortTaken,
    ProbeFailed,
    RocmrunError,
)
from rocmrun.system.caller import process_label, values_of
from rocmrun.usecases.attempt import Attempt
from rocmrun.usecases.containers import CreatedContainer, check_command, check_groups, created
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.proving import prove
from rocmrun.usecases.secrets import secret_files
from rocmrun.usecases.trial_writes import with_writes, written_by

ROLE = "trial"
NO_PROGRAM = "/rocmrun-canary/no-such-program"
IDLE_SECONDS = 600
# What an engine says of a container that it will not make: a reason of its own, and none of the job's.
UNSTARTABLE = (EngineFailed, HostNotReady)
HOST_ERRORS = (LimitDropped, PortTaken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A container to try.

    Attributes:
        deep: Whether the probe runs at the level of the verification.
        command: Runs in place of the plan's; None for the plan's own.
        look: Whether to look at where it wrote, or was not let write.
    """

    plan: Plan
    deep: bool = False
    command: tuple[str, ...] | None = None
    look: bool = False


@dataclass(slots=True)
class Trials:
    """Runs trials: a command under an oracle, or the probe where there is none.

    Attributes:
        oracle: None for the probe.
        levels: The probe's level while searching, and while verifying.
        timeout_seconds: When a command that has not ended counts as failed.
        ready: Called with each plan before its container is made.
        check_files: Path → text, for the Python files of the profile's own checks.
        accepted: Checks that may be degraded: those that are it on the permissive side.
    """

    engine: Engine
    oracle: CommandOracle | None
    levels: tuple[str, str]
    timeout_seconds: float
    voice: Voice
    run_id: str
    profile_file: str
    ready: Callable[[Plan], None]
    check_files: Mapping[str, str] = field(default_factory=dict)
    accepted: dict[bool, tuple[str, ...]] = field(default_factory=dict)
    _count: int = field(init=False, default=0)

    def fingerprint(self, trial: Trial) -> str:
        """Return a digest of all that a trial's result depends on here: its request, and what is asked of it."""
        request = self._request(trial)
        request.pop("Labels")
        asked = (
            self.oracle.to_json()
            if self.oracle
            else {**asdict(trial.plan.probe), "level": self.levels[trial.deep]}
        )
        value = {"request": request, "oracle": asked, "timeout": self.timeout_seconds}
        return hashlib.sha256(canonical_json(value).encode()).hexdigest()

    def run(self, trials: Sequence[Trial]) -> list[TrialResult]:
        """Run *trials* side by side and return their results, in order; probes run one after the other."""
        if self.oracle is None:
            return [self._probe(trial) for trial in trials]
        oracle = self.oracle
        with contextlib.ExitStack() as stack:
            running = [self._begun(stack, trial) for trial in trials]
            for one in running:
                if isinstance(one, Attempt):
                    one.join()
            return [
                self._judged(one, trial, oracle) if isinstance(one, Attempt) else one
                for one, trial in zip(running, trials, strict=True)
            ]

    def _judged(self, attempt: Attempt, trial: Trial, oracle: CommandOracle) -> TrialResult:
        outcome = attempt.outcome()
        result = judge(outcome, oracle)
        if not trial.look:
            return result
        writes = written_by(self.engine, attempt.container_id, trial.plan, self.voice.detail)
        return with_writes(result, writes, trial.plan, (outcome.stderr, outcome.stdout))

    def refusal(self, plan: Plan) -> str:
        """Return why the engine will not start a container of *plan*; "" when it does."""
        trial = Trial(plan=plan)
        try:
            with self._secrets(plan) as files, self._created(trial, files) as container:
                self.engine.start(container.container_id)
                self.engine.kill(container.container_id, "SIGKILL")
        except UNSTARTABLE as error:
            return _refused(error).reason
        return ""

    @contextlib.contextmanager
    def idle(self, plan: Plan) -> Iterator[str]:
        """Start a container of *plan* that does nothing for a while, and hand out its id.

        Raises:
            CommandNotFound: its image has neither sleep nor the plan's Python.
        """
        python = (plan.probe.python, "-c", f"import time; time.sleep({IDLE_SECONDS})")
        with contextlib.ExitStack() as stack:
            try:
                container = self._waiting(stack, plan, ("sleep", str(IDLE_SECONDS)))
            except CommandNotFound:
                container = self._waiting(stack, plan, python)
            self.engine.start(container.container_id)
            yield container.container_id

    def _waiting(
        self, stack: contextlib.ExitStack, plan: Plan, command: tuple[str, ...]
    ) -> CreatedContainer:
        self._count += 1
        self.ready(plan)
        request = create_request(plan, role="workload", command=command, labels=self._labels(plan))
        container = stack.enter_context(
            created(self.engine, plan, request, name=self._name(plan), on_warning=self.voice.detail)
        )
        check_command(self.engine, container, plan)
        return container

    def _begun(self, stack: contextlib.ExitStack, trial: Trial) -> Attempt | TrialResult:
        try:
            files = stack.enter_context(self._secrets(trial.plan))
            container = stack.enter_context(self._created(trial, files))
            if trial.command is None:
                check_groups(self.engine, container, trial.plan)
                check_command(self.engine, container, trial.plan)
            attempt = Attempt(
                engine=self.engine,
                container_id=container.container_id,
                attachment=self.engine.attach(container.container_id, stdin=False, tty=False),
                timeout_seconds=self.timeout_seconds,
            )
            stack.callback(attempt.close)
            attempt.start()
        except UNSTARTABLE as error:
            return _refused(error)
        return attempt

    def _secrets(self, plan: Plan) -> contextlib.AbstractContextManager[Mapping[str, str]]:
        """Write the job's secrets for one run; probes get none."""
        if self.oracle is None:
            return contextlib.nullcontext({})
        return secret_files(plan, f"{self.run_id}-{self._count}", keep=False)

    def _created(
        self, trial: Trial, files: Mapping[str, str]
    ) -> contextlib.AbstractContextManager[CreatedContainer]:
        self._count += 1
        self.ready(trial.plan)
        return created(
            self.engine,
            self._started(trial),
            self._request(trial, files),
            name=self._name(trial.plan),
            on_warning=self.voice.detail,
        )

    def _probe(self, trial: Trial) -> TrialResult:
        self._count += 1
        self.ready(trial.plan)
        # A failing check is what a search looks for, and no news of its own.
        quiet = replace(self.voice, say=self.voice.detail, on_probe=_unheard)
        began = time.monotonic()
        seen: list[Writes | None] = []

        def look(container_id: str) -> None:
            if trial.look:
                seen.append(written_by(self.engine, container_id, trial.plan, self.voice.detail))

        try:
            proof = prove(
                self.engine,
                trial.plan,
                level=self.levels[trial.deep],
                name=self._name(trial.plan),
                labels=self._labels(trial.plan),
                voice=quiet,
                check_files=self.check_files,
                on_end=look,
            )
        except ProbeFailed as error:
            return TrialResult(verdict="fail", reason=error.message)
        except UNSTARTABLE as error:
            return _refused(error)
        report = proof.report
        result = judge_probe(report, self.accepted.get(trial.deep))
        if seen:
            said = (*(check.reason for check in report.failures), *report.stderr_tail)
            result = with_writes(result, seen[0], trial.plan, said)
        return result.model_copy(update={"seconds": round(time.monotonic() - began, 3)})

    def _started(self, trial: Trial) -> Plan:
        """Return the plan of the container that runs: the probe's where there is no command."""
        return probe_plan(trial.plan) if self.oracle is None else trial.plan

    def _request(self, trial: Trial, files: Mapping[str, str] | None = None) -> dict[str, Any]:
        plan = self._started(trial)
        if self.oracle is None:
            # An image without a program of its own has the probe's: nothing else is started here.
            program = bootstrap_command(plan.probe.python)
            return create_request(plan, role="probe", command=program, labels=self._labels(plan))
        return create_request(
            plan,
            role="workload",
            command=trial.command,
            secrets=values_of(plan.env_from),
            secret_files=files,
            labels=self._labels(plan),
        )

    def _name(self, plan: Plan) -> str:
        return f"rocmrun-{plan.profile}-{self.run_id}-{ROLE}{self._count}"

    def _labels(self, plan: Plan) -> Mapping[str, str]:
        return {
            labels.RUN: self.run_id,
            labels.ROLE: ROLE,
            labels.PLAN: plan.hash,
            labels.PROFILE_FILE: self.profile_file,
            labels.CONTROLLER: process_label(),
            # Every label of ours is set, also when it says nothing: an image may bake one.
            labels.DETACHED: "",
            labels.KEEP: "",
            labels.MINORS: ",".join(str(minor) for minor in plan.render_minors),
        }


def _refused(error: RocmrunError) -> TrialResult:
    """Return what a container that does not start is worth; what holds for every container ends the search."""
    if isinstance(error, HOST_ERRORS):
        raise error
    return TrialResult(verdict="unstartable", reason=error.message)


@contextlib.contextmanager
def _unheard() -> Iterator[Callable[[object], None]]:
    """Tell nobody."""
    yield lambda _event: None
