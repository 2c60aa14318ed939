"""Replace: a detached workload hands over to its successor, and takes the work back when that does not come up."""

import contextlib
from collections.abc import Callable, Iterator

from rocmrun.core.voice import Voice
from rocmrun.core.workloads import Workload
from rocmrun.errors import RocmrunError, UsageError, WorkloadAmbiguous
from rocmrun.system import signals
from rocmrun.usecases.containers import CreatedContainer
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.secrets import forget_run
from rocmrun.usecases.workloads import end, list_workloads


def find_replaced(
    engine: Engine, *, name: str | None, profile: str, profile_file: str
) -> Workload | None:
    """Return the workload that a launch replaces: the one called *name*, else the profile's that runs detached.

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
    candidates = [
        workload
        for workload in found
        if workload.alive
        and workload.detached
        and (workload.profile, workload.profile_file) == (profile, profile_file)
    ]
    if len(candidates) > 1:
        msg = f"profile {profile} has {len(candidates)} detached workloads: which one is replaced?"
        raise WorkloadAmbiguous(
            msg, details=tuple(map(str, candidates)), hint="name it: --replace --name NAME"
        )
    return candidates[0] if candidates else None


@contextlib.contextmanager
def handed_over(
    engine: Engine,
    old: Workload,
    new: CreatedContainer,
    *,
    name: str,
    voice: Voice,
    forget: Callable[[str], None] = forget_run,
) -> Iterator[None]:
    """Stop *old*, let the block bring *new* up, then remove *old* and call *new* by *name*.

    Ports and GPUs are free for *new* in between. When the block fails *new* is removed and *old* is
    started again: the same container, as it was made.
    """
    voice.say(f"stopping {old.name}; it is started again if its successor does not come up")
    try:
        if old.alive:
            end(engine, old.container_id)
        yield
    except BaseException:
        with signals.postponed():
            engine.remove(new.container_id)
            if old.alive:
                _start_again(engine, old, voice)
        raise
    with signals.postponed():
        engine.remove(old.container_id)
        forget(old.run)
        engine.rename(new.container_id, name)


def _start_again(engine: Engine, old: Workload, voice: Voice) -> None:
    try:
        engine.start(old.container_id)
    except RocmrunError as error:
        voice.warn(
            f"{old.name} could not be started again: {error.message}; try: docker start {old.name}"
        )
    else:
        voice.say(f"started {old.name} again")
