"""Replace: a detached workload hands over to its successor, and takes the work back when that does not come up."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from rocmrun.core.voice import Voice
from rocmrun.core.workloads import Workload
from rocmrun.errors import EngineFailed, RocmrunError, UsageError, WorkloadAmbiguous
from rocmrun.system import signals
from rocmrun.system.caller import read_caller
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.secrets import forget_run, run_held
from rocmrun.usecases.workloads import end, list_workloads


def find_replaced(
    engine: Engine, *, name: str | None, profile: str, profile_file: str, uid: int | None = None
) -> Workload | None:
    """Return the workload that a launch replaces: the one called *name*, else the profile's that runs detached.

    Of a profile only those of user *uid* count, the caller's where it is None: a shipped profile is one file for
    everybody.

    Raises:
        UsageError: the one called *name* does not run detached.
        WorkloadAmbiguous: the profile has several.
    """
    found = list_workloads(engine, ended=True)
    if name is not None:
        named = next((workload for workload in found if workload.name == name), None)
        if named is not None and not named.detached:
            msg = f"{name} cannot be replaced: it does not run detached"
            raise UsageError(msg, hint=f"end it first: rocmrun stop {name}")
        return named
    uid = read_caller().uid if uid is None else uid
    candidates = [
        workload
        for workload in found
        if workload.alive
        and workload.uid in {None, uid}
        and workload.detached
        and (workload.profile, workload.profile_file) == (profile, profile_file)
    ]
    if len(candidates) > 1:
        msg = f"profile {profile} has {len(candidates)} detached workloads: which one is replaced?"
        raise WorkloadAmbiguous(
            msg, details=tuple(map(str, candidates)), hint="name it: --replace --name NAME"
        )
    return candidates[0] if candidates else None


@dataclass(slots=True)
class Handover:
    """The way from *old* to its successor, around the successor's creation; without *old* it does nothing.

    Until `commit` whatever ends the block brings *old* back: the same container, as it was made. The
    successor is gone by then, since the block that creates it lies inside.

    Attributes:
        name: What the successor is called in the end.
    """

    engine: Engine
    old: Workload | None
    name: str
    voice: Voice
    forget: Callable[[str], None] = forget_run
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
            end(self.engine, self.old.container_id)
        except EngineFailed:
            if self._is_there(self.old):
                raise
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
            self.engine.remove(old.container_id)
            self.forget(old.run)
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
