"""Launch: the main job, as the list of steps that it is."""

import contextlib
from collections.abc import Callable, Mapping

from rocmrun.core.create_request import create_request
from rocmrun.core.plan import Plan
from rocmrun.core.probing.image import WHOSE, named
from rocmrun.core.report.model import ProbeReport
from rocmrun.core.rights import unequal_rights
from rocmrun.core.run_record import RunRecord
from rocmrun.core.voice import Voice
from rocmrun.core.workloads import Workload
from rocmrun.errors import ContainerMismatch, ProbeFailed
from rocmrun.system import signals
from rocmrun.system.cache_directories import make_cache_directory
from rocmrun.system.caller import read_caller, values_of
from rocmrun.system.sysfs import read_host
from rocmrun.usecases.announce import announce
from rocmrun.usecases.containers import CreatedContainer, check_command, check_groups, created
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.gpu_guard import gpus_reserved
from rocmrun.usecases.launch_request import LaunchRequest, check_policy, check_request
from rocmrun.usecases.mount_sources import check_unchanged
from rocmrun.usecases.port_guard import check_ports
from rocmrun.usecases.prepare import load, prepare
from rocmrun.usecases.proofs import earlier_proof, keep_proof
from rocmrun.usecases.proving import Proof, prove
from rocmrun.usecases.replace import Handover, find_replaced, leftovers_of
from rocmrun.usecases.run import Run
from rocmrun.usecases.run_report import check_report_path, now, refusal_reported
from rocmrun.usecases.secrets import check_owner, check_secrets, forget_ended, secret_files
from rocmrun.usecases.volume_access import check_volume_access
from rocmrun.usecases.workload_run import leave_detached, run_foreground, start_detached


def launch(request: LaunchRequest, *, connect: Callable[[], Engine], voice: Voice) -> int:
    """Start what *request* asks for and return the exit code: the workload's own, or 0 when detached.

    Raises:
        RocmrunError: whatever went wrong before the workload ran; nothing is left behind then.
    """
    with signals.as_exceptions():
        run = begin(request, connect, voice, needs_secrets=True)
        with run.reported():
            forget_ended(run.engine)
            make_cache(run)
            run.replaced = _replaced(run)
            with _reserved(run) as release:
                check_ports(run.plan, run.engine, leaving=_leaving(run))
                proof = prove_first(run)
                return run_workload(run, proof, release)


def probe(request: LaunchRequest, *, connect: Callable[[], Engine], voice: Voice) -> RunRecord:
    """Prove the GPUs of *request*'s plan, always afresh, and return the record; a failed probe is a result.

    Raises:
        RocmrunError: the probe could not be run.
    """
    with signals.as_exceptions():
        run = begin(request, connect, voice)
        with run.reported():
            with _reserved(run):
                _prove(run, request.level or run.plan.probe.level)
            run.record = run.record.ended(ended_at=now())
    return run.record


def begin(
    request: LaunchRequest,
    connect: Callable[[], Engine],
    voice: Voice,
    *,
    needs_secrets: bool = False,
) -> Run:
    """Read everything and make the plan; profile and options are judged before an engine is waited for."""
    request.notify("STATUS=planning")
    check_report_path(request.report)
    check_report_path(request.junit, "--junit")
    with refusal_reported(request.report, request.ask.profile, request.junit):
        check_request(request)
        loaded = load(request.ask)
        check_policy(request, loaded)
        if needs_secrets:
            check_secrets(loaded.profile)
        engine = connect()
        prepared = prepare(
            request.ask,
            engine,
            fetch=True,
            on_pull=voice.on_pull,
            loaded=loaded,
            prove=request.probe,
        )
        if needs_secrets:
            check_owner(prepared.plan, prepared.engine)
    announce(prepared, voice)
    record = RunRecord.begin(prepared.plan, prepared.host, prepared.engine, started_at=now())
    record = record.with_signature(prepared.signature)
    return Run(engine=engine, request=request, prepared=prepared, voice=voice, record=record)


def make_cache(run: Run) -> None:
    """Make the plan's cache directory, which a bind mount needs to exist."""
    plan, profile = run.plan, run.prepared.loaded.path
    if plan.cache is not None:
        root = read_caller().cache_root
        make_cache_directory(plan.cache.source, root, plan.uid, plan.gid, profile=profile)


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
    earlier = earlier_proof(plan, run.prepared.host, run.prepared.engine, level)
    if earlier is not None:
        report, why = earlier
        voice.say(f"probe {level}: {why}, not run again (reuse = {plan.probe.reuse})")
        run.record = run.record.with_probe(report, reused=why)
        return None
    where = f", in {named(plan.probe.image)}: {WHOSE}" if plan.probe.image else ""
    request.notify(f"STATUS=probing, level {level}")
    voice.say(f"probe {level}: running in a container with the same rights{where}")
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
        check_files=run.prepared.check_files,
    )
    run.record = run.record.with_probe(proof.report)
    keep_proof(run.plan, run.prepared.host, run.prepared.engine, level, proof.report)
    return proof


def _reserved(run: Run) -> contextlib.AbstractContextManager[Callable[[], None]]:
    request = run.request
    return gpus_reserved(
        run.plan,
        run.engine,
        exclusive=run.prepared.loaded.profile.gpus.exclusive and not request.share,
        wait_seconds=request.wait_seconds,
        read_host=lambda: read_host(request.ask.host_root),
        lock_directory=request.lock_directory,
        say=run.voice.say,
        leaving=_leaving(run),
    )


def _leaving(run: Run) -> tuple[str, ...]:
    return (run.replaced.container_id,) if run.replaced else ()


def _replaced(run: Run) -> Workload | None:
    """Return the workload that this one takes the place of; the old one goes on until the new one was proved."""
    if not run.request.replace:
        return None
    loaded = run.prepared.loaded
    found = find_replaced(
        run.engine, name=run.request.name, profile=loaded.name, profile_file=loaded.path
    )
    if found is None:
        named = f': no workload is called "{run.request.name}"' if run.request.name else ""
        run.voice.say(f"there is nothing to replace{named}")
    else:
        run.voice.say(f"replacing {found}: it goes on until its successor was proved")
        run.leftovers = leftovers_of(run.engine, found)
    return found


def raise_if_failed(report: ProbeReport) -> None:
    """Refuse to start work after a probe that did not pass."""
    if report.usable:
        return
    # Failed checks were told as they came; a probe that got to none has only its last words.
    details = () if report.failures else report.stderr_tail[-5:]
    # Only failures pay for the rules.
    from rocmrun.usecases.doctor import cause_lines, likely_cause  # noqa: PLC0415

    msg = f"the probe failed: {report.reason}"
    raise ProbeFailed(
        msg,
        details=(*details, *cause_lines(likely_cause(report))),
        hint=_hint(report),
    )


def _hint(report: ProbeReport) -> str:
    """Return what to do next: a Python without torch needs no look at every check."""
    lacking = [one.evidence for one in report.failures if one.evidence.get("missing_module") == "torch"]  # fmt: skip
    if lacking and (python := lacking[0].get("python_elsewhere")):
        return f'nothing was started; [probe] python = "{python}" proves with the Python that has torch'
    if lacking:
        return (
            'nothing was started; [probe] python names another interpreter, runtime = "hip" proves AMD GPUs '
            "without torch, and --no-probe starts without a proof"
        )
    return "nothing was started; see every check with `rocmrun probe`"


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
    engine = run.prepared.engine.key if run.prepared.engine else ""
    with secret_files(run.plan, run.run_id, keep=run.request.detach, engine=engine) as files:
        return _run_with(run, proof, release, files)


def _run_with(
    run: Run,
    proof: Mapping[str, object] | None,
    release: Callable[[], None],
    files: Mapping[str, str],
) -> int:
    plan, request = run.plan, run.request
    body = create_request(
        plan,
        role="workload",
        secrets=values_of(plan.env_from),
        secret_files=files,
        labels=run.labels("workload"),
        keep_log=request.detach or request.keep,
    )
    # Once more: somebody may have cleaned while the probe ran.
    make_cache(run)
    name = run.container_name("workload")
    keep = request.detach or request.keep
    handover = Handover(
        run.engine, run.replaced, run.final_name, run.voice, leftovers=run.leftovers
    )
    with (
        handover,
        created(
            run.engine, plan, body, name=name, keep=keep, on_warning=run.voice.warn
        ) as container,
    ):
        if proof is not None:
            check_same_rights(proof, container, plan)
        check_groups(run.engine, container, plan)
        check_command(run.engine, container, plan)
        check_volume_access(run.engine, container, plan, run.prepared.engine)
        check_unchanged(run.prepared, run.engine)
        if not request.detach:
            return run_foreground(run, container, release)
        start_detached(run, container, handover)
    return leave_detached(run)


def check_same_rights(proof: Mapping[str, object], container: CreatedContainer, plan: Plan) -> None:
    """Refuse a workload container that differs from the probe's in any right."""
    cache = plan.cache.target if plan.cache else None
    same_image = plan.probe.image is None
    different = unequal_rights(
        proof,
        container.record,
        cache=cache,
        secrets=[secret.target for secret in plan.secrets],
        same_image=same_image,
    )
    if different:
        msg = "the engine gave the workload other rights than the probe had; nothing was started"
        raise ContainerMismatch(msg, details=different)
