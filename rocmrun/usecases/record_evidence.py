"""One run of the permissive side under the kernel's trace: what it used and was refused. It orders, and never decides."""

import contextlib
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from rocmrun.core.certificate import TrialRecord
from rocmrun.core.plan import Plan
from rocmrun.core.recording import Recording, recording_of
from rocmrun.core.system_calls import CallNames, parse_call_names
from rocmrun.core.trace import ONE_LINE, REFUSED, SUCCEEDED, Trace, entries_but
from rocmrun.core.voice import Voice
from rocmrun.system import signals
from rocmrun.system.package_data import read_system_calls
from rocmrun.system.processes import threads_of
from rocmrun.system.tracefs import (
    PREFIX,
    Instance,
    TraceUnavailable,
    instance,
    process_numbers_are_the_kernels,
    tracefs,
)
from rocmrun.usecases.clean_traces import owner_name
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.privilege_trials import PrivilegeTrials
from rocmrun.usecases.trials import Trial

# Whose descendants containers are, before they belong to a process of their own.
DAEMONS = frozenset({"dockerd", "containerd", "podman"})
ENTRY, RETURN, TASK = "raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "task/task_newtask"
PROGRAM, CAPABILITY = "sched/sched_process_exec", "capability/cap_capable"
# Only a program of the kernel's own kind gives these: so 32-bit ones are told from it.
NAMED_EXECS = ("syscalls/sys_exit_execve", "syscalls/sys_exit_execveat")
PAUSE_SECONDS, FILTER_SECONDS = 0.02, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """How evidence is recorded.

    Attributes:
        root: The kernel's tracing files; None for where they are.
        uid: Who asks for it.
        buffer_kib: Room for each CPU's events; None for what is usual.
    """

    root: Path | None = None
    uid: int = field(default_factory=os.geteuid)
    buffer_kib: int | None = None


def record_evidence(recorder: Recorder, asked: PrivilegeTrials, voice: Voice) -> Recording:
    """Run the permissive side once while the kernel tells what it does; say why where it cannot."""
    plan = asked.sides.plan(asked.sides.permissive)
    try:
        with _tracing(recorder, voice) as tracing:
            _run(tracing, plan, asked)
            recording = tracing.result(plan)
    except TraceUnavailable as error:
        voice.warn(f"no evidence is recorded: {error}")
        return Recording(why=str(error))
    if not recording.complete:
        voice.warn(f"the recorded evidence is incomplete: {recording.why}")
    return recording


@contextlib.contextmanager
def _tracing(recorder: Recorder, voice: Voice) -> Iterator["_Tracing"]:
    owner = owner_name(secrets.token_hex(4))

    def left(why: str) -> None:
        voice.warn(f"trace instance {PREFIX}{owner} stays: {why}; rocmrun clean removes it later")

    with tracefs(recorder.root, uid=recorder.uid) as root:
        names = _names_of_calls()
        with (
            instance(
                root,
                owner,
                buffer_kib=recorder.buffer_kib,
                postponed=signals.postponed,
                on_left=left,
            ) as made,
            _Tracing(instance=made, names=names) as tracing,
        ):
            yield tracing


def _names_of_calls() -> CallNames:
    """Return the calls of this machine; without them, or without the kernel's numbers of processes, lines say nothing."""
    if not process_numbers_are_the_kernels():
        msg = "processes have other numbers here than in the kernel's trace: this is a container"
        raise TraceUnavailable(msg)
    names = parse_call_names(read_system_calls(), platform.machine())
    if names is None:
        msg = f"the numbers of system calls are not known for {platform.machine()}"
        raise TraceUnavailable(msg)
    return names


def _run(tracing: "_Tracing", plan: Plan, asked: PrivilegeTrials) -> None:
    watched = cast("Engine", _Watched(asked.trials.engine, tracing.first_process))
    trial = Trial(plan=plan)
    result = replace(asked.trials, engine=watched).run([trial])[0]
    asked.spending.runs += 1
    asked.records.append(
        TrialRecord(
            request=asked.trials.fingerprint(trial),
            items=asked.sides.permissive,
            purpose="recording",
            result=result,
        )
    )
    why = f": {result.evidence}" if result.evidence else ""
    asked.say(
        f"run {len(asked.records)} (recording): everything: {result.verdict}{why} [{result.seconds:.1f} s]"
    )


class _Watched:
    """An engine that tells which process a container began with, as soon as it has started."""

    def __init__(self, engine: Engine, started: Callable[[int], None]) -> None:
        self._engine, self._started = engine, started

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def start(self, container_id: str) -> None:
        self._engine.start(container_id)
        self._started(int(self._engine.inspect(container_id)["State"].get("Pid") or 0))


class _Tracing:
    """A trace under way: a thread reads, so that the kernel has room."""

    def __init__(self, *, instance: Instance, names: CallNames) -> None:
        self._instance, self._names = instance, names
        self._tells_capabilities = instance.has(CAPABILITY)
        self._tells_programs = all(instance.has(event) for event in NAMED_EXECS)
        self._trace = Trace(names, tells_programs=self._tells_programs)
        self._pid = 0
        self._rest = ""
        self._failed = "the trace was not read to its end"
        self._lost = 0
        self._known: frozenset[int] = frozenset()
        self._changed_at = 0.0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, name="rocmrun-trace", daemon=True)

    def __enter__(self) -> "_Tracing":
        try:
            self._begin()
        except OSError as error:
            msg = f"the kernel refuses to trace what is needed: {error.strerror}"
            raise TraceUnavailable(msg) from error
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _begin(self) -> None:
        followed: tuple[int, ...] = ()
        # A daemon may start a thread while its threads are read: from then on the kernel adds them by itself.
        while followed != (found := threads_of(DAEMONS)):
            self._instance.follow(found)
            followed = found
        if not followed:
            msg = f"no process here is called {', '.join(sorted(DAEMONS))}: nobody knows where containers come from"
            raise TraceUnavailable(msg)
        self._instance.enable(TASK)
        self._instance.enable(PROGRAM, ONE_LINE)
        for event in NAMED_EXECS if self._tells_programs else ():
            self._instance.enable(event, SUCCEEDED)
        self._instance.enable(RETURN, REFUSED)
        if self._tells_capabilities:
            self._instance.enable(CAPABILITY)
        self._instance.enable(ENTRY)

    def first_process(self, pid: int) -> None:
        """Say which process the container began with; 0 where it had ended by then."""
        self._pid = pid

    def result(self, plan: Plan) -> Recording:
        """Return what was recorded, now that the run has ended."""
        self._ending.set()
        self._thread.join()
        if not self._trace.began:
            self._trace.guess_first_process()
        recording = recording_of(
            self._trace,
            self._names,
            held=_capabilities(plan),
            lost=self._lost,
            tells_capabilities=self._tells_capabilities,
        )
        if self._failed:
            return recording.model_copy(update={"complete": False, "why": self._failed})
        return recording

    def _read(self) -> None:
        try:
            while not self._ending.wait(0 if self._take() else PAUSE_SECONDS):
                pass
            self._instance.end()
            while self._take():
                pass
            self._lost = self._instance.lost()
            self._failed = ""
        except OSError as error:
            self._failed = f"the trace could not be read: {error.strerror}"

    def _take(self) -> bool:
        """Read what there is, up to a bound; return whether that was anything."""
        data = self._instance.read()
        text = self._rest + data.decode(errors="replace")
        *lines, self._rest = text.split("\n")
        if self._pid:
            self._trace.first_process(self._pid)
            self._pid = 0
        self._trace.feed(lines)
        self._know_less()
        return bool(data)

    def _know_less(self) -> None:
        """Ask no more for calls that the container is known to make: a busy job is hardly slowed down then."""
        known = frozenset(self._trace.inside.calls)
        if known != self._known and time.monotonic() - self._changed_at > FILTER_SECONDS:
            self._instance.filter(ENTRY, entries_but(known))
            self._known, self._changed_at = known, time.monotonic()


def _capabilities(plan: Plan) -> tuple[str, ...]:
    return tuple(name.removeprefix("CAP_") for name in plan.cap_add)
