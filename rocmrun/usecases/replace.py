"""Replace: a detached workload hands over to its successor, and takes the work back when that does not come up.

A successor has a name of its own until its predecessor is gone. Where rocmrun is killed in between it keeps
that name; its label says which one it was to get, so that the next `--replace` or `clean` can finish.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType

from rocmrun.core.voice import Voice
from rocmrun.core.workloads import Workload
from rocmrun.errors import EngineFailed, RocmrunError, UsageError, WorkloadAmbiguous
from rocmrun.system import signals
from rocmrun.system.caller import process_runs, read_caller
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.secrets import forget_run, run_held
from rocmrun.usecases.workloads import end, list_workloads


def cut_off(
    workloads: Iterable[Workload], runs: Callable[[str], bool] = process_runs
) -> tuple[Workload, ...]:
    """Return the successors whose launch was killed before they got their name.

    *runs* says whether the process that a container's label names is still there.
    """
    return tuple(each for each in workloads if each.handing_over and not runs(each.controller))


def find_replaced(
    engine: Engine,
    *,
    name: str | None,
    profile: str,
    profile_file: str,
    uid: int | None = None,
    runs: Callable[[str], bool] = process_runs,
) -> Workload | None:
    """Return the workload that a launch replaces: the one called *name*, else the profile's that runs detached.

    Of a profile only those of user *uid* count, the caller's where it is None: a shipped profile is one file for
    everybody. A successor whose launch was killed counts by the name that it was to get.

    Raises:
        UsageError: the one called *name* does not run detached.
        WorkloadAmbiguous: the profile has several.
    """
    found = list_workloads(engine, ended=True)
    unfinished = cut_off(found, runs)
    if name is not None:
        return _called(name, found, unfinished)
    uid = read_caller().uid if uid is None else uid
    own = [
        workload
        for workload in found
        if workload.uid in {None, uid}
        and workload.detached
        and (workload.profile, workload.profile_file) == (profile, profile_file)
    ]
    candidates = [workload for workload in own if workload.alive]
    if not candidates:
        # Killed between the end of one and the start of the other.
        left = {each.successor_of for each in unfinished if each in own}
        candidates = [workload for workload in own if workload.name in left]
    if len(candidates) > 1:
        msg = f"profile {profile} has {len(candidates)} detached workloads: which one is replaced?"
        raise WorkloadAmbiguous(
            msg, details=tuple(map(str, candidates)), hint="name it: --replace --name NAME"
        )
    return candidates[0] if candidates else None


def _called(
    name: str, found: Iterable[Workload], unfinished: Iterable[Workload]
) -> Workload | None:
    named = next((workload for workload in found if workload.name == name), None)
    if named is not None and not named.detached:
        msg = f"{name} cannot be replaced: it does not run detached"
        raise UsageError(msg, hint=f"end it first: rocmrun stop {name}")
    if named is None or not named.alive:
        running = [each for each in unfinished if each.successor_of == name and each.alive]
        return running[0] if running else named
    return named


def leftovers_of(
    engine: Engine, replaced: Workload, runs: Callable[[str], bool] = process_runs
) -> tuple[Workload, ...]:
    """Return what a handover that was killed has left beside *replaced*, and nobody needs once that is replaced."""
    name = replaced.final_name
    found = list_workloads(engine, ended=True)
    unfinished = cut_off(found, runs)
    return tuple(
        each
        for each in found
        if each.container_id != replaced.container_id
        and not each.alive
        and each.detached
        and (each.name == name or (each in unfinished and each.successor_of == name))
    )


@dataclass(slots=True)
class Handover:
    """The way from *old* to its successor, around the successor's creation; without *old* it does nothing.

    Until `commit` whatever ends the block brings *old* back: the same container, as it was made. The
    successor is gone by then, since the block that creates it lies inside.

    Attributes:
        name: What the successor is called in the end.
        leftovers: Goes with *old*.
    """

    engine: Engine
    old: Workload | None
    name: str
    voice: Voice
    forget: Callable[[str], None] = forget_run
    leftovers: tuple[Workload, ...] = ()
    _stopped: bool = field(init=False, default=False)
    _new: str = field(init=False, default="")
    _stack: contextlib.ExitStack = field(init=False, default_factory=contextlib.ExitStack)

    def __enter__(self) -> "Handover":
        return self

    def stop_old(self) -> None:
        """Free ports and GPUs for the successor, which is ready to start."""
        if self.old is None or not self.old.alive:
            return
        self.voice.say(
            f"stopping {self.old.name}; it is started again if its successor does not come up"
        )
        self._stopped = True
        self._stack.enter_context(run_held(self.old.run))
        try:
            there = end(self.engine, self.old.container_id)
        except EngineFailed:
            if self._is_there(self.old):
                raise
            there = False
        if not there:
            # It ended and was removed while its successor was proved.
            self.old = None

    def commit(self, new: str) -> None:
        """Let container *new* take the place for good; signals wait until that is done."""
        self._stack.enter_context(signals.postponed())
        self._new = new

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._stack:
            if self.old is None:
                return
            if error is None and self._new:
                self._finish(self.old)
            elif self._stopped:
                with signals.postponed():
                    self._start_again(self.old)

    def _finish(self, old: Workload) -> None:
        """Take the old one away; whatever fails here, the new one runs."""
        try:
            for gone in (old, *self.leftovers):
                self.engine.remove(gone.container_id)
                self.forget(gone.run)
            self.engine.rename(self._new, self.name)
        except RocmrunError as error:
            self.voice.warn(
                f"the new workload runs, but is not called {self.name}: {error.message}"
            )

    def _start_again(self, old: Workload) -> None:
        try:
            self.engine.start(old.container_id)
        except RocmrunError as error:
            self.voice.warn(
                f"{old.name} could not be started again: {error.message}; try: docker start {old.name}"
            )
        else:
            self.voice.say(f"started {old.name} again")

    def _is_there(self, old: Workload) -> bool:
        try:
            self.engine.state(old.container_id)
        except EngineFailed:
            return False
        return True
