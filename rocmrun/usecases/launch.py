"""Launch: the main job, as the list of steps that it is."""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rocmrun.core.create_request import create_request
from rocmrun.core.loaded_profile import LoadedProfile
from rocmrun.core.plan import Plan, Role
from rocmrun.core.planner import cache_of
from rocmrun.core.report import ProbeReport, RecordedError, RunRecord
from rocmrun.core.rights import unequal_rights
from rocmrun.core.text import human_size
from rocmrun.core.voice import Voice
from rocmrun.errors import (
    ContainerMismatch,
    PlanRefused,
    ProbeFailed,
    ReportUnwritable,
    RocmrunError,
    UsageError,
)
from rocmrun.system import signals
from rocmrun.system.cache_directories import make_cache_directory
from rocmrun.system.caller import process_label, read_caller, values_of
from rocmrun.system.files import write_atomic
from rocmrun.system.sysfs import read_host
from rocmrun.usecases.containers import CreatedContainer, check_command, created
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.foreground import Foreground
from rocmrun.usecases.gpu_guard import MINORS_LABEL, gpus_reserved
from rocmrun.usecases.prepare import Ask, Prepared, prepare
from rocmrun.usecases.proofs import earlier_proof, keep_proof
from rocmrun.usecases.proving import Proof, prove

KILLED = 137


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """What the command line asks of a launch.

    Attributes:
        ask: What to plan.
        loaded: The profile that *ask* names, where it was read already.
        name: The container's name; None for one made up.
        probe: Whether to prove the GPUs first.
        level: Probe level; None for the profile's.
        detach: Leave the workload running and return.
        keep: Leave the ended container in place.
        share: Take GPUs that others use.
        wait_seconds: How long to wait for GPUs in use.
        report: Where the record of the run goes.
    """

    ask: Ask
    loaded: LoadedProfile | None = None
    name: str | None = None
    probe: bool = True
    level: str | None = None
    detach: bool = False
    keep: bool = False
    share: bool = False
    wait_seconds: float = 0
    report: Path | None = None


@dataclass(slots=True)
class Run:
    """One launch on its way."""

    engine: Engine
    request: LaunchRequest
    prepared: Prepared
    voice: Voice
    record: RunRecord
    run_id: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def plan(self) -> Plan:
        """What is launched."""
        return self.prepared.plan

    def labels(self, role: Role) -> dict[str, str]:
        """Return what lets others find, and `clean` judge, this run's containers."""
        labels = {
            "io.rocmrun.run": self.run_id,
            "io.rocmrun.role": role,
            "io.rocmrun.plan": self.plan.hash,
            "io.rocmrun.controller": ""
            if self.request.detach and role == "workload"
            else process_label(),
        }
        if self.request.keep and role == "workload":
            labels["io.rocmrun.keep"] = "1"
        if self.plan.gpus:
            labels[MINORS_LABEL] = ",".join(str(minor) for minor in self.plan.render_minors)
        return labels

    def container_name(self, role: Role) -> str:
        """Return a name that people recognise."""
        if role == "workload" and self.request.name:
            return self.request.name
        suffix = "-probe" if role == "probe" else ""
        return f"rocmrun-{self.plan.profile}-{self.run_id}{suffix}"


def launch(request: LaunchRequest, *, engine: Engine, voice: Voice) -> int:
    """Start what *request* asks for and return the exit code: the workload's own, or 0 when detached.

    Raises:
        RocmrunError: whatever went wrong before the workload ran; nothing is left behind then.
    """
    check_request(request)
    with signals.as_exceptions():
        prepared = prepare(
            request.ask, engine, fetch=True, on_pull=voice.on_pull, loaded=request.loaded
        )
        announce(prepared, voice)
        record = RunRecord.begin(prepared.plan, prepared.host, prepared.engine, started_at=_now())
        run = Run(engine=engine, request=request, prepared=prepared, voice=voice, record=record)
        with reported(run):
            make_cache(prepared.plan)
            with _reserved(run) as release:
                proof = prove_first(run)
                return run_workload(run, proof, release)


def probe(request: LaunchRequest, *, engine: Engine, voice: Voice) -> RunRecord:
    """Prove the GPUs of *request*'s plan, always afresh, and return the record; a failed probe is a result.

    Raises:
        RocmrunError: the probe could not be run.
    """
    check_request(request)
    with signals.as_exceptions():
        prepared = prepare(
            request.ask, engine, fetch=True, on_pull=voice.on_pull, loaded=request.loaded
        )
        announce(prepared, voice)
        record = RunRecord.begin(prepared.plan, prepared.host, prepared.engine, started_at=_now())
        run = Run(engine=engine, request=request, prepared=prepared, voice=voice, record=record)
        with reported(run):
            make_cache(prepared.plan)
            with _reserved(run):
                _prove(run, request.level or prepared.plan.probe.level)
            run.record = run.record.ended(ended_at=_now())
    return run.record


def check_request(request: LaunchRequest) -> None:
    """Refuse options that contradict each other, before anything is looked at."""
    if request.detach and request.ask.tty:
        msg = "--detach leaves no terminal to attach: drop --tty"
        raise UsageError(msg)
    if request.detach and request.ask.interactive:
        msg = "--detach leaves nobody to feed stdin: drop --interactive"
        raise UsageError(msg)
    if request.ask.unlocked and read_caller().in_ci:
        msg = "--unlocked is refused where CI is set: what runs there must be a reviewed digest"
        raise PlanRefused(msg, hint="commit a lock: rocmrun lock")
    if request.report is not None:
        _check_report_path(request.report)


def _check_report_path(path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        msg = (
            f"cannot write the report: {path} is a directory"
            if path.is_dir()
            else f"cannot write the report: {path.parent} is no directory"
        )
        raise ReportUnwritable(msg)
    # Tried before the run, not after it: a day's work should not end in a lost record.
    try:
        with path.open("a"):
            pass
    except OSError as error:
        msg = f"cannot write the report {path}: {error.strerror}"
        raise ReportUnwritable(msg) from error


def announce(prepared: Prepared, voice: Voice) -> None:
    """Name the profile and lock files used, and whatever the plan notes."""
    for note in prepared.loaded.shadows:
        voice.warn(note)
    lock = prepared.lock_path or "no lock file"
    image = prepared.plan.image
    voice.say(f"profile {prepared.loaded.path}, lock {lock}")
    if prepared.pin is None:
        voice.warn(
            f"{image.ref} is not locked: what starts is whatever the tag names on this machine"
        )
    else:
        voice.say(f"image {image.ref} @ {image.digest or image.image_id}")
    for note in prepared.plan.notes:
        (voice.warn if note in prepared.engine_notes else voice.detail)(note)


def make_cache(plan: Plan) -> None:
    """Make the plan's cache directory, which a bind mount needs to exist."""
    cache = cache_of(plan)
    if cache is not None:
        make_cache_directory(cache.source, read_caller().cache_root, plan.uid, plan.gid)


@contextlib.contextmanager
def reported(run: Run) -> Iterator[None]:
    """Write the report, whether the block ends well or not."""
    try:
        yield
    except RocmrunError as error:
        recorded = RecordedError(
            slug=error.slug, code=error.exit_code, message=error.message, hint=error.hint
        )
        run.record = run.record.ended(ended_at=_now(), error=recorded)
        raise
    finally:
        if run.request.report is not None:
            text = run.record.model_dump_json(indent=2) + "\n"
            write_atomic(run.request.report, text, error=ReportUnwritable)


def prove_first(run: Run) -> Mapping[str, object] | None:
    """Prove the GPUs, or find out why that is not needed; return the probe container's record.

    Raises:
        ProbeFailed: work must not start.
    """
    plan, request, voice = run.plan, run.request, run.voice
    if not request.probe:
        voice.warn("not probed: --no-probe starts the workload without a proof that its GPUs work")
        run.record = run.record.without_probe("--no-probe")
        return None
    level = request.level or plan.probe.level
    earlier = earlier_proof(plan, run.prepared.host, level)
    if earlier is not None:
        report, why = earlier
        voice.say(f"probe {level}: {why}, not run again (reuse = {plan.probe.reuse})")
        run.record = run.record.with_probe(report, reused=why)
        return None
    voice.say(f"probe {level}: running in a container with the same rights")
    proof = _prove(run, level)
    raise_if_failed(proof.report)
    voice.say(f"probe {level}: {proof.report.status}, {summary(proof.report)}")
    return proof.record


def _prove(run: Run, level: str) -> Proof:
    proof = prove(
        run.engine,
        run.plan,
        level=level,
        name=run.container_name("probe"),
        labels=run.labels("probe"),
        voice=run.voice,
    )
    run.record = run.record.with_probe(proof.report)
    keep_proof(run.plan, run.prepared.host, level, proof.report)
    return proof


def _reserved(run: Run) -> contextlib.AbstractContextManager[Callable[[], None]]:
    request = run.request
    return gpus_reserved(
        run.plan,
        run.engine,
        exclusive=run.prepared.loaded.profile.gpus.exclusive and not request.share,
        wait_seconds=request.wait_seconds,
        read_host=lambda: read_host(request.ask.host_root),
    )


def raise_if_failed(report: ProbeReport) -> None:
    """Refuse to start work after a probe that did not pass."""
    if report.usable:
        return
    # Failed checks were told as they came; a probe that got to none has only its last words.
    details = () if report.failures else report.stderr_tail[-5:]
    msg = f"the probe failed: {report.reason}"
    raise ProbeFailed(
        msg,
        details=details,
        hint="nothing was started; see every check with `rocmrun probe`",
    )


def summary(report: ProbeReport) -> str:
    """Return the counts and the versions of a report in one line."""
    counts = ", ".join(f"{count} {status}" for status, count in sorted(report.counts.items()))
    versions = [
        f"{name} {version}"
        for name in ("torch", "hip", "cuda")
        if (version := report.version_of(name))
    ]
    return f"{counts} in {report.seconds:.1f} s" + (f" ({', '.join(versions)})" if versions else "")


def run_workload(run: Run, proof: Mapping[str, object] | None, release: Callable[[], None]) -> int:
    """Create the workload's container, inspect it, compare it with the probe's, and run it."""
    plan, request = run.plan, run.request
    body = create_request(
        plan,
        role="workload",
        secrets=values_of(plan.env_from),
        labels=run.labels("workload"),
        keep_log=request.detach or request.keep,
    )
    name = run.container_name("workload")
    keep = request.detach or request.keep
    with created(
        run.engine, plan, body, name=name, keep=keep, on_warning=run.voice.warn
    ) as container:
        if proof is not None:
            check_same_rights(proof, container)
        check_command(run.engine, container, plan)
        if request.detach:
            return _detached(run, container)
        return _foreground(run, container, release)


def check_same_rights(proof: Mapping[str, object], container: CreatedContainer) -> None:
    """Refuse a workload container that differs from the probe's in any right."""
    different = unequal_rights(proof, container.record)
    if different:
        msg = "the engine gave the workload other rights than the probe had; nothing was started"
        raise ContainerMismatch(msg, details=different)


def _detached(run: Run, container: CreatedContainer) -> int:
    run.engine.start(container.container_id)
    run.voice.say(f"started {container.name}; stop it with: docker stop {container.name}")
    run.record = run.record.ended(ended_at=_now())
    run.voice.result(container.name)
    return 0


def _foreground(run: Run, container: CreatedContainer, release: Callable[[], None]) -> int:
    plan = run.plan
    attachment = run.engine.attach(container.container_id, stdin=plan.interactive, tty=plan.tty)
    run.voice.detail(f"starting {container.name}")
    foreground = Foreground(
        engine=run.engine,
        container_id=container.container_id,
        attachment=attachment,
        stdin=plan.interactive,
        tty=plan.tty,
        say=run.voice.say,
        on_started=release,
    )
    code = foreground.run(plan.stop_timeout_seconds)
    run.record = run.record.ended(ended_at=_now(), exit_code=code)
    if code == KILLED and not foreground.killed:
        run.voice.warn(_killed(plan, noticed=run.engine.state(container.container_id).oom_killed))
    return code


def _killed(plan: Plan, *, noticed: bool) -> str:
    """Say why a workload was killed; not every engine notices that the kernel did it (20.10 on cgroup v1)."""
    if noticed:
        return "the kernel killed the workload: it reached the container's memory limit"
    limit = f" ({human_size(plan.memory_bytes)})" if plan.memory_bytes else ""
    return (
        f"the workload was killed; if nobody did it, it reached the container's memory limit{limit}"
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
