"""What was measured of a container over some time, as rows: the least, the mean and the most of each value."""

from collections.abc import Iterator
from dataclasses import dataclass

from rocmrun.core.running.observation import Observation, Spread, spread
from rocmrun.core.running.sensors import GpuSensors
from rocmrun.core.text import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One value; *gpu* is the index of the GPU that it is of, None for the container itself."""

    name: str
    unit: str
    spread: Spread
    gpu: int | None = None


def measured(seen: Observation) -> tuple[Measured, ...]:
    """Return what was measured, the container's own values first."""
    rows = [*_of_container(seen), *_of_gpus(seen)]
    return tuple(
        Measured(name=name, unit=unit, spread=found, gpu=gpu)
        for name, unit, found, gpu in rows
        if found is not None
    )


def _of_container(seen: Observation) -> Iterator[tuple[str, str, Spread | None, None]]:
    pairs = [(a, b) for a, b in zip(seen.samples, seen.samples[1:], strict=False) if b.at > a.at]
    cpus = [
        (b.cgroup.cpu_seconds - a.cgroup.cpu_seconds) / (b.at - a.at)
        for a, b in pairs
        if a.cgroup.cpu_seconds is not None and b.cgroup.cpu_seconds is not None
    ]
    throttled = [
        100 * (b.cgroup.throttled - a.cgroup.throttled) / (b.cgroup.periods - a.cgroup.periods)
        for a, b in pairs
        if a.cgroup.throttled is not None and b.cgroup.throttled is not None
        if a.cgroup.periods is not None and b.cgroup.periods is not None
        if b.cgroup.periods > a.cgroup.periods
    ]
    memory = (
        use.memory_bytes - (use.cache_bytes or 0) if use.memory_bytes is not None else None
        for use in (sample.cgroup for sample in seen.samples)
    )
    yield "CPUs used", "", spread(cpus), None
    yield "periods throttled", "%", spread(throttled), None
    yield "memory", "MiB", spread(None if size is None else size / MIB for size in memory), None


def _of_gpus(seen: Observation) -> Iterator[tuple[str, str, Spread | None, int]]:
    for position, gpu in enumerate(seen.gpus):
        yield "busy", "%", seen.spread(position, lambda each: each.busy_percent), gpu.index
        yield "memory busy", "%", seen.spread(position, lambda e: e.memory_busy_percent), gpu.index
        yield "VRAM used", "MiB", seen.spread(position, _vram), gpu.index
        yield "clock", "MHz", seen.spread(position, _clock), gpu.index
        yield "power", "W", seen.spread(position, lambda each: each.power_watts), gpu.index
        yield "hottest sensor", "°C", seen.spread(position, _heat), gpu.index


def _vram(sensors: GpuSensors) -> float | None:
    return None if sensors.vram_used is None else sensors.vram_used / MIB


def _clock(sensors: GpuSensors) -> int | None:
    return sensors.core_clock.now if sensors.core_clock else None


def _heat(sensors: GpuSensors) -> int | None:
    return max((each.celsius for each in sensors.temperatures), default=None)
