"""Day two: list workloads, read their logs, wait for them, stop them. Thin: the engine does the work."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rocmrun.core import labels
from rocmrun.core.workloads import Workload, is_ours, meant, workload_of
from rocmrun.errors import EngineFailed, UsageError, WorkloadAmbiguous, WorkloadNotFound
from rocmrun.system import signals
from rocmrun.system.caller import process_runs
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.foreground import STDOUT, write_all
from rocmrun.usecases.listed import record_of
from rocmrun.usecases.secrets import forget_ended, forget_run

DEFAULT_STOP_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A workload that was stopped.

    Attributes:
        exit_code: What it returned; None where it was gone too soon to ask.
        removed: Whether its container, and with it its log, is gone.
        had_ended: Whether it had ended before anybody stopped it.
    """

    name: str
    exit_code: int | None
    removed: bool
    had_ended: bool = False

    def __str__(self) -> str:
        """What was found of one that had ended, and what became of it; "" of any other."""
        if not self.had_ended:
            return ""
        found = f"{self.name} had ended with code {self.exit_code}"
        kept = f"kept: docker rm {self.name} removes it"
        return f"{found}; {'its container and its log are removed' if self.removed else kept}"


def list_workloads(engine: Engine, *, ended: bool) -> tuple[Workload, ...]:
    """Return the workloads that run, sorted by name; with *ended* all that are there."""
    found = (
        workload_of(summary)
        for summary in engine.containers(labels.ROLE)
        if summary["Labels"][labels.ROLE] == "workload"
        and is_ours(summary)
        and not labelled_by_its_image(engine, summary)
    )
    wanted = (workload for workload in found if ended or workload.alive)
    return tuple(sorted(wanted, key=lambda workload: (workload.name, workload.container_id)))


def labelled_by_its_image(engine: Engine, summary: Mapping[str, Any]) -> bool:
    """Whether a container's labels are its image's own: `docker commit` of one of ours bakes them."""
    image = engine.image(summary.get("ImageID") or summary.get("Image") or "")
    baked = dict(image.labels) if image is not None else {}
    run = summary["Labels"].get(labels.RUN, "")
    return labels.ROLE in baked and run == baked.get(labels.RUN, "")


def find_workload(engine: Engine, name: str) -> Workload:
    """Return the workload that *name* means.

    Raises:
        WorkloadNotFound: none.
        WorkloadAmbiguous: several.
    """
    return meant(list_workloads(engine, ended=True), name)


def stop(
    engine: Engine,
    names: Iterable[str],
    *,
    time_seconds: int | None = None,
    keep: bool = False,
    missing_ok: bool = False,
    runs: Callable[[str], bool] = process_runs,
    uid: int | None = None,
) -> tuple[Stopped, ...]:
    """Stop workloads and remove those that nobody else removes; nothing is stopped where one is not found.

    Another user's is stopped by its container's name alone: a shipped profile has one name for everybody.

    Args:
        engine: Where.
        names: Containers, or profiles.
        time_seconds: Between the polite signal and the kill; None for what the profile says.
        keep: Leave the containers, and their logs, in place.
        missing_ok: Pass over names of which there is none.
        runs: Says whether the process that a container's label names is still there.
        uid: Who asks; None for whoever runs this. Root may stop everybody's.

    Raises:
        WorkloadNotFound: one of *names* means none.
        WorkloadAmbiguous: one means several, or is a profile that runs as another user's.
    """
    uid = os.geteuid() if uid is None else uid
    known = list_workloads(engine, ended=True)
    found: dict[Workload, None] = {}
    for name in names:
        try:
            workload = meant(known, name)
        except WorkloadNotFound:
            if not missing_ok:
                raise
            continue
        if workload.name != name and uid not in {0, workload.uid} and workload.uid is not None:
            msg = f"the workload of profile {name} is that of uid {workload.uid}: {workload.name}"
            raise WorkloadAmbiguous(
                msg, hint=f"to stop it all the same: rocmrun stop {workload.name}"
            )
        found[workload] = None
    return tuple(
        _stopped(engine, workload, time_seconds, keep=keep or workload.kept, runs=runs)
        for workload in found
    )


def _stopped(
    engine: Engine,
    workload: Workload,
    time_seconds: int | None,
    *,
    keep: bool,
    runs: Callable[[str], bool],
) -> Stopped:
    end(engine, workload.container_id, time_seconds)
    code = None
    # Whoever started it in the foreground may have removed it by now.
    with contextlib.suppress(EngineFailed):
        code = engine.state(workload.container_id).exit_code
    ours = workload.detached or not runs(workload.controller)
    if ours:
        forget_run(workload.run)
    if ours and not keep:
        engine.remove(workload.container_id)
    return Stopped(
        name=workload.name,
        exit_code=workload.exit_code if code is None else code,
        removed=ours and not keep,
        had_ended=workload.exit_code is not None,
    )


def end(engine: Engine, container_id: str, time_seconds: int | None = None) -> bool:
    """Stop a container within the time that its profile gives it, or *time_seconds*; return whether it was there."""
    record = record_of(engine, container_id)
    if record is None:
        return False
    if time_seconds is None:
        asked = record["Config"].get("StopTimeout")
        time_seconds = DEFAULT_STOP_SECONDS if asked is None else asked
    engine.stop(container_id, time_seconds)
    return True


def wait(engine: Engine, name: str) -> tuple[Workload, int]:
    """Wait until a workload has ended for good; return it with its exit code.

    Raises:
        EngineFailed: it was gone before it could be asked.
    """
    workload = find_workload(engine, name)
    if workload.exit_code is not None:
        return workload, workload.exit_code
    ending = _InBackground(lambda: _ended(engine, workload.container_id))
    code = ending.result()
    forget_ended(engine)
    return workload, code


def _ended(engine: Engine, container_id: str) -> int:
    while True:
        try:
            code = engine.wait(container_id)
        except EngineFailed:
            if record_of(engine, container_id) is None:
                raise
            code = engine.wait(container_id)
        try:
            again = engine.state(container_id).status in {"running", "restarting"}
        except EngineFailed:
            # Removed by whoever started it.
            return code
        if not again:
            return code


def show_log(
    engine: Engine,
    name: str,
    *,
    follow: bool,
    tail: int | None,
    write: Callable[[int, bytes], None] = write_all,
) -> None:
    """Write a workload's log to stdout and stderr, byte for byte, as `docker logs` does.

    Args:
        engine: Where.
        name: A container, or a profile.
        follow: Go on until it ends.
        tail: How many lines from the end; None for all.
        write: Takes a descriptor and bytes.

    Raises:
        UsageError: it has no log.
        WorkloadNotFound: it is not there, or not any more.
    """
    workload = find_workload(engine, name)
    record = record_of(engine, workload.container_id)
    if record is None:
        msg = f"{workload.name} was removed a moment ago, and its log with it"
        raise WorkloadNotFound(msg, hint="rocmrun ps --all lists what is there")
    if record["HostConfig"]["LogConfig"]["Type"] == "none":
        msg = f"{workload.name} has no log: what it prints went to whoever launched it"
        raise UsageError(msg, hint="the output of --detach and --keep is kept")

    def copy() -> int:
        for stream, data in engine.logs(workload.container_id, follow=follow, tail=tail):
            write(1 if stream == STDOUT else 2, data)
        return 0

    _InBackground(copy).result()


@dataclass(slots=True)
class _InBackground:
    """A call in a thread of its own: a signal would be lost on the way into a wait without end."""

    call: Callable[[], int]
    _result: int = 0
    _failure: BaseException | None = None
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self.call()
        except BaseException as error:  # noqa: BLE001  # raised again in the main thread
            self._failure = error

    def result(self) -> int:
        """Wait for the end, and return or raise what came of it."""

        def ended(seconds: float) -> bool:
            self._thread.join(seconds)
            return not self._thread.is_alive()

        signals.wait_until(ended)
        if self._failure is not None:
            raise self._failure
        return self._result
