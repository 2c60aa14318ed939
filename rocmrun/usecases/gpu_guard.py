"""Keep a GPU to one run: lock files around the start, labels on running containers, processes that KFD lists."""

import contextlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from rocmrun.core import labels
from rocmrun.core.host import HostFacts
from rocmrun.core.plan import Plan
from rocmrun.core.workloads import minors_of, name_of
from rocmrun.errors import EngineFailed, GpuBusy
from rocmrun.system import gpu_locks
from rocmrun.system.processes import container_of
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.workloads import labelled_by_its_image


def _to_nobody(_message: str) -> None:
    """Tell nobody."""


@contextlib.contextmanager
def gpus_reserved(
    plan: Plan,
    engine: Engine,
    *,
    exclusive: bool,
    wait_seconds: float,
    read_host: Callable[[], HostFacts],
    lock_directory: Path = gpu_locks.DIRECTORY,
    say: Callable[[str], None] = _to_nobody,
    leaving: Collection[str] = (),
) -> Iterator[Callable[[], None]]:
    """Hold the plan's GPUs until the block calls what it is given; labels of running containers hold them afterwards.

    Args:
        plan: Whose GPUs.
        engine: Where containers run.
        exclusive: Without it nothing is held and nobody is asked.
        wait_seconds: How long to wait for GPUs in use.
        read_host: Looks at the host again.
        lock_directory: Where the lock files are.
        say: Told once what is waited for.
        leaving: Ids of containers that this run replaces: they hold nothing against it.

    Raises:
        GpuBusy: another run or process has one, still after *wait_seconds*.
    """
    if not exclusive or not plan.gpus:
        yield _nothing
        return
    deadline = gpu_locks.now() + wait_seconds
    with contextlib.ExitStack() as stack:
        held = gpu_locks.held(
            plan.render_minors, wait_seconds=wait_seconds, directory=lock_directory
        )
        stack.enter_context(held)
        told = False
        while found := users(plan, engine, read_host(), leaving=leaving):
            if gpu_locks.now() >= deadline:
                msg = "a selected GPU is in use"
                raise GpuBusy(
                    msg,
                    details=tuple(found),
                    hint="wait for it with --wait SECONDS, choose another with --gpu, or share it with --share",
                )
            if not told:
                say(f"waiting up to {wait_seconds:g} s for {'; '.join(found)}")
                told = True
            gpu_locks.pause()
        yield stack.close


def _nothing() -> None:
    """Release nothing: nothing is held."""


def users(
    plan: Plan,
    engine: Engine,
    host: HostFacts,
    *,
    leaving: Collection[str] = (),
    find_container: Callable[[int], str | None] = container_of,
) -> list[str]:
    """Return a sentence for each run or process that holds one of the plan's GPUs.

    *find_container* turns a process id into the id of the container that the process is in.
    """
    wanted = set(plan.render_minors)
    found = []
    named, taken = set(leaving), set[int]()
    for container in engine.containers(labels.MINORS, running_only=True):
        shared = sorted(wanted.intersection(minors_of(container)))
        if not shared or container["Id"] in leaving or labelled_by_its_image(engine, container):
            continue
        nodes = ", ".join(f"renderD{minor}" for minor in shared)
        name = name_of(container)
        found.append(f"{nodes}: container {name} (rocmrun stop {name})")
        named.add(container["Id"])
        taken.update(shared)
    for gpu in host.gpus:
        if gpu.render_minor not in wanted:
            continue
        where = {pid: find_container(pid) for pid in gpu.holders}
        # Processes of a container that is named already; where nobody can tell, a GPU that it holds is enough.
        others = [
            named_process(engine, pid, container)
            for pid, container in where.items()
            if container not in named and not (container is None and gpu.render_minor in taken)
        ]
        if others:
            found.append(f"{gpu.label}: {', '.join(others)}")
    return found


def named_process(engine: Engine, pid: int, container: str | None) -> str:
    """Return a phrase for a process, with the name of the container that it is in."""
    if container is None:
        return f"process {pid}"
    name = container[:12]
    # Not of this engine, or gone meanwhile: its id is all there is.
    with contextlib.suppress(EngineFailed):
        name = engine.inspect(container)["Name"].lstrip("/")
    return f"process {pid} in container {name}"
