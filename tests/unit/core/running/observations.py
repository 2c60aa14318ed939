"""Observations for tests: a container with one MI300X that works well. Change the one thing that a test is about."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rocmrun.core.doctor import Check
from rocmrun.core.running.cgroup import CgroupUse
from rocmrun.core.running.checks import container_checks
from rocmrun.core.running.gpu_metrics import Throttling
from rocmrun.core.running.observation import Observation, Sample
from rocmrun.core.running.process import Process
from rocmrun.core.running.record import ContainerRecord
from rocmrun.core.running.sensors import Clock, GpuSensors, Temperature
from tests.builders import GIB, gpu, host

ID = "ab12" * 16
NODES = frozenset({"/dev/kfd", "/dev/dri/renderD128"})


def sensors(**changes: Any) -> GpuSensors:
    """Return the sensors of a GPU under load."""
    values: dict[str, Any] = {
        "busy_percent": 97,
        "memory_busy_percent": 40,
        "vram_used": 150 * GIB,
        "vram_total": 192 * GIB,
        "core_clock": Clock(now=2050, highest=2100),
        "memory_clock": Clock(now=1300, highest=1300),
        "power_watts": 600.0,
        "power_cap_watts": 750.0,
        "temperatures": (Temperature(label="junction", celsius=70, critical=100),),
        "throttling": Throttling(now=()),
        "link_width": 16,
        "link_width_max": 16,
        "link_speed": "32.0 GT/s PCIe",
        "link_speed_max": "32.0 GT/s PCIe",
    }
    return GpuSensors(**(values | changes))


def use(**changes: Any) -> CgroupUse:
    """Return the use of a control group with room in every limit."""
    values: dict[str, Any] = {
        "version": 2,
        "cpu_limit": 4.0,
        "periods": 100,
        "throttled": 0,
        "cpu_seconds": 10.0,
        "cpus": "0-15",
        "memory_bytes": 2 * GIB,
        "cache_bytes": GIB,
        "memory_limit": 8 * GIB,
        "limit_hits": 0,
        "oom_kills": 0,
        "pids": 20,
        "pids_limit": 4096,
        "pids_refused": 0,
    }
    return CgroupUse(**(values | changes))


def process(pid: int = 700, **changes: Any) -> Process:
    """Return a process that holds the first GPU."""
    values: dict[str, Any] = {"pid": pid, "name": "python3", "cpu_seconds": 10.0, "nodes": NODES}
    return Process(**(values | changes))


def record(**changes: Any) -> ContainerRecord:
    """Return a workload that runs and was given the first GPU."""
    values: dict[str, Any] = {
        "container_id": ID,
        "name": "vllm",
        "profile": "vllm-serve",
        "state": "running",
        "pid": 700,
        "minors": frozenset({128}),
        "kfd": True,
        "log_driver": "json-file",
    }
    return ContainerRecord(**(values | changes))


def seen(
    *,
    gpus: int = 1,
    first: GpuSensors | Sequence[GpuSensors] | None = None,
    last: GpuSensors | Sequence[GpuSensors] | None = None,
    uses: tuple[CgroupUse, CgroupUse] | None = None,
    processes: tuple[Iterable[Process], Iterable[Process]] | None = None,
    seconds: float = 10.0,
    shm: tuple[int, int] | None = (0, GIB),
    **changes: Any,
) -> Observation:
    """Return two samples *seconds* apart; with *last* alone both have those sensors."""
    late = _all(last if last is not None else first, gpus)
    early = _all(first if first is not None else last, gpus)
    begun, ended = uses or (use(), use(cpu_seconds=12.0, periods=200))
    before, after = processes or ([process()], [process(cpu_seconds=12.0)])
    values: dict[str, Any] = {
        "record": record(minors=frozenset(range(128, 128 + gpus))),
        "host": host(gpus),
        "gpus": tuple(gpu(index) for index in range(gpus)),
        "samples": (
            Sample(at=0.0, sensors=early, cgroup=begun, processes=tuple(before), shm=shm),
            Sample(at=seconds, sensors=late, cgroup=ended, processes=tuple(after), shm=shm),
        ),
        "kfd_listed": True,
    }
    return Observation(**(values | changes))


def _all(given: GpuSensors | Sequence[GpuSensors] | None, gpus: int) -> tuple[GpuSensors, ...]:
    if given is None or isinstance(given, GpuSensors):
        return (given or sensors(),) * gpus
    return tuple(given)


def with_sensors(**changes: Any) -> Observation:
    """Return an observation in which the GPU has other readings."""
    return seen(last=sensors(**changes))


def with_use(last: dict[str, Any], first: dict[str, Any] | None = None) -> Observation:
    """Return an observation in which the control group has other counters."""
    return seen(uses=(use(**(first or {})), replace(use(cpu_seconds=12.0, periods=200), **last)))


def check(observation: Observation, check_id: str) -> Check:
    """Return the one check of that id."""
    (found,) = [each for each in container_checks(observation) if each.id == check_id]
    return found
