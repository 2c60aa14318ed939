"""Keep a GPU to one run: lock files around the start, labels on running containers, processes that KFD lists."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from rocmrun.core.host import HostFacts
from rocmrun.core.plan import Plan
from rocmrun.errors import GpuBusy
from rocmrun.system import gpu_locks
from rocmrun.usecases.engine_protocol import Engine

MINORS_LABEL = "io.rocmrun.render-minors"


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
) -> Iterator[Callable[[], None]]:
    """Hold the plan's GPUs until the block calls what it is given; labels of running containers hold them afterwards.

    *say* is told once what is waited for.

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
        while found := users(plan, engine, read_host()):
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


def users(plan: Plan, engine: Engine, host: HostFacts) -> list[str]:
    """Return a sentence for each run or process that holds one of the plan's GPUs."""
    wanted = set(plan.render_minors)
    found = []
    for container in engine.containers(MINORS_LABEL, running_only=True):
        minors = {
            int(minor)
            for minor in container["Labels"][MINORS_LABEL].split(",")
            if minor.isascii() and minor.isdigit()
        }
        if taken := sorted(minors & wanted):
            name = (container.get("Names") or [container["Id"][:12]])[0].lstrip("/")
            nodes = ", ".join(f"renderD{minor}" for minor in taken)
            found.append(f"{nodes}: container {name} (docker stop {name})")
    if found:
        return found
    # A container of ours shows up among KFD's processes too: it is named once.
    for gpu in host.gpus:
        if gpu.render_minor in wanted and gpu.holders:
            pids = ", ".join(str(pid) for pid in gpu.holders)
            found.append(f"{gpu.label}: process {pids}")
    return found
