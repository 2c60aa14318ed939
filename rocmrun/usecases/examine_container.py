"""Look at a container that runs, for a moment or for a while, and judge what was seen."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rocmrun.core.diagnosis.diagnose import diagnose
from rocmrun.core.diagnosis.reading import read_text
from rocmrun.core.doctor import Diagnosis
from rocmrun.core.host import Gpu
from rocmrun.core.running.checks import container_checks
from rocmrun.core.running.observation import Observation, Sample
from rocmrun.core.running.operator_logs import operator_checks
from rocmrun.core.running.record import ContainerRecord, container_record
from rocmrun.core.text import printable
from rocmrun.errors import EngineFailed, EngineUnreachable, RocmrunError, WorkloadNotFound
from rocmrun.system.cgroup_files import Cgroup
from rocmrun.system.container_processes import read_process, shm_use
from rocmrun.system.processes import container_of
from rocmrun.system.sysfs import Tree, read_host
from rocmrun.system.sysfs.sensors import lists_processes, read_sensors
from rocmrun.usecases.doctor import known_kinds
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.find_container import find_container
from rocmrun.usecases.gpu_guard import named_process
from rocmrun.usecases.listed import record_of

# Without --watch: enough for what is counted over time.
GLANCE_SECONDS = 1.0
LOG_LINES, LOG_BYTES = 2000, 1 << 20


def _to_nobody(_seen: Observation) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """For how long to look, and how often.

    Attributes:
        on_sample: Told each sample, with what is known of the container so far.
        pause, now: The clock.
    """

    seconds: float = GLANCE_SECONDS
    interval: float = GLANCE_SECONDS
    on_sample: Callable[[Observation], None] = _to_nobody
    pause: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A container as it was seen, and what the checks and the rules make of that."""

    seen: Observation
    diagnosis: Diagnosis


def examine_container(
    engine: Engine,
    name: str,
    *,
    watch: Watch,
    host_root: Path = Path("/"),
    machine_root: Path = Path("/"),
) -> Examined:
    """Return what a container uses and what holds it up; Ctrl-C ends the watching, and what was seen is judged.

    Args:
        engine: Where it is.
        name: A container's name or id, a profile's that has just one workload, or a run.
        watch: How long.
        host_root: Holds /sys and /dev of the GPUs.
        machine_root: Holds /proc and the control groups: those of the machine on which the engine runs.

    Raises:
        WorkloadNotFound: there is none.
        WorkloadAmbiguous: it could be several.
    """
    container_id, ours = find_container(engine, name)
    inspected = record_of(engine, container_id)
    if inspected is None:
        msg = f"{printable(name, 80)} was removed a moment ago"
        raise WorkloadNotFound(msg, hint="docker ps --all lists what is there")
    record = container_record(inspected, ours=ours)
    seen = _watched(engine, record, watch, host_root, machine_root)
    log, problem = _log(engine, record)
    kinds = known_kinds()
    # As with --log, the text alone: what this host lacks is no cause for a container that runs.
    found = diagnose(read_text(log), kinds) if log else ()
    checks = (*container_checks(seen), *operator_checks(record, log, problem))
    return Examined(seen=seen, diagnosis=Diagnosis(checks=checks, findings=found, kinds=kinds))


def _watched(
    engine: Engine, record: ContainerRecord, watch: Watch, host_root: Path, machine_root: Path
) -> Observation:
    host = read_host(host_root)
    gpus = record.gpus(host)
    seen = Observation(record=record, host=host, gpus=gpus)
    if not record.runs:
        return seen
    if container_of(record.pid, machine_root) != record.container_id:
        what = f"process {record.pid}, by which the engine knows it, is another one here, or none"
        return replace(seen, problem=f"{what}: the engine runs elsewhere, or it has just ended")
    tree, cgroup = Tree(host_root), Cgroup(record.pid, machine_root)
    own = {*cgroup.pids(), record.pid}
    seen = replace(
        seen,
        others=_others(engine, gpus, own, machine_root),
        kfd_listed=lists_processes(tree),
        kfd_pids=frozenset(pid for gpu in gpus for pid in gpu.holders),
    )
    try:
        for at in _moments(watch):
            sample = _sample(record, gpus, tree, cgroup, machine_root, at)
            if not sample.processes:
                return replace(seen, record=_now(engine, record))
            seen = seen.with_sample(sample)
            watch.on_sample(seen)
    except KeyboardInterrupt:
        seen = replace(seen, interrupted=True)
    # It may have been started again between two samples, or have become unhealthy.
    with contextlib.suppress(EngineUnreachable):
        seen = replace(seen, record=_now(engine, record))
    return seen


def _now(engine: Engine, record: ContainerRecord) -> ContainerRecord:
    """Return the record of a container as it is by now: it may have ended while it was looked at."""
    try:
        found = engine.inspect(record.container_id)
    except EngineFailed:
        return replace(record, state="removed", pid=0, exit_code=None)
    return container_record(found, ours=bool(record.profile))


def _moments(watch: Watch) -> Iterator[float]:
    """Yield the time at each moment to look, the last when the time is over."""
    begun = watch.now()
    yield begun
    count = max(1, round(watch.seconds / watch.interval))
    for number in range(1, count + 1):
        # Counted from the start, so that the time that looking takes does not add up.
        rest = begun + number * watch.seconds / count - watch.now()
        if rest > 0:
            watch.pause(rest)
        yield watch.now()


def _sample(  # one root for the GPUs, one for the machine
    record: ContainerRecord,
    gpus: tuple[Gpu, ...],
    tree: Tree,
    cgroup: Cgroup,
    machine_root: Path,
    at: float,
) -> Sample:
    # Where its group can be read and is empty it has ended: its number may be another's by now.
    pids = cgroup.pids() or ((record.pid,) if cgroup.problem else ())
    found = (read_process(pid, machine_root) for pid in pids)
    return Sample(
        at=at,
        sensors=read_sensors(tree, gpus),
        cgroup=cgroup.use(),
        processes=tuple(process for process in found if process),
        shm=shm_use(record.pid if record.pid in pids else pids[0], machine_root) if pids else None,
    )


def _others(
    engine: Engine, gpus: tuple[Gpu, ...], own: set[int], machine_root: Path
) -> dict[int, tuple[str, ...]]:
    """Return render minor → who else has memory or a queue on that GPU."""
    return {
        gpu.render_minor: tuple(
            named_process(engine, pid, container_of(pid, machine_root))
            for pid in gpu.holders
            if pid not in own
        )
        for gpu in gpus
        if gpu.render_minor is not None
    }


def _log(engine: Engine, record: ContainerRecord) -> tuple[str | None, str]:
    """Return the last part of what a container printed, or None and why there is none."""
    if record.log_driver == "none":
        return None, "what it prints goes to whoever started it, and is kept nowhere"
    data = bytearray()
    try:
        for _, chunk in engine.logs(record.container_id, follow=False, tail=LOG_LINES):
            data += chunk
            del data[:-LOG_BYTES]
    except RocmrunError as error:
        return None, error.message
    return data.decode(errors="replace"), ""
