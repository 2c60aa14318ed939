"""A container as it was seen over some time: samples, and what lies between the first and the last."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from rocmrun.core.host import Gpu, HostFacts
from rocmrun.core.running.cgroup import CgroupUse
from rocmrun.core.running.process import Process, distinct
from rocmrun.core.running.record import ContainerRecord
from rocmrun.core.running.sensors import GpuSensors

# A watch of a week takes as much memory as one of this many samples.
MOST_SAMPLES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Everything that changes, at one moment.

    Attributes:
        at: Seconds of a clock that only goes forward.
        sensors: Position of a GPU in the observation → what its files said.
        shm: Bytes used and in all of /dev/shm; None where this user may not look.
    """

    at: float
    sensors: tuple[GpuSensors, ...] = ()
    cgroup: CgroupUse = field(default_factory=CgroupUse)
    processes: tuple[Process, ...] = ()
    shm: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The least, the mean and the most of some values."""

    least: float
    mean: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How a process spent the time between two samples.

    Attributes:
        cpus: How many CPUs it kept busy.
        engine_share: Which part of the time its jobs kept the GPU's engines busy, as fdinfo counts.
    """

    process: Process
    cpus: float
    engine_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A container over some time.

    Attributes:
        gpus: Those that it was given, in the order of each sample's sensors.
        samples: In the order of time, at most MOST_SAMPLES; none where it does not run, or cannot be looked into.
        every: Of how many samples one is kept; the first and the last always are.
        taken: How many samples were taken, where some were not kept.
        others: Render minor → who else has memory or a queue on that GPU, a phrase each.
        kfd_listed: Whether KFD lists processes here.
        kfd_pids: Processes that KFD lists with memory or a queue on one of the GPUs.
        problem: Why there are no samples.
        interrupted: Whether it was ended before its time.
    """

    record: ContainerRecord
    host: HostFacts
    gpus: tuple[Gpu, ...] = ()
    samples: tuple[Sample, ...] = ()
    every: int = 1
    taken: int = 0
    others: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    kfd_listed: bool = False
    kfd_pids: frozenset[int] = frozenset()
    problem: str = ""
    interrupted: bool = False

    def with_sample(self, sample: Sample, most: int = MOST_SAMPLES) -> "Observation":
        """Return this and one sample more; of more than *most* those that are kept lie evenly in time."""
        before = max(self.taken, len(self.samples))
        # The last one is there because it was the last.
        stays = (before - 1) % self.every == 0
        samples = (*(self.samples if stays else self.samples[:-1]), sample)
        every = self.every
        if len(samples) > most:
            every *= 2
            samples = (*samples[:-1:2], sample)
        return replace(self, samples=samples, every=every, taken=before + 1)

    @property
    def seconds(self) -> float:
        """The time between the first and the last sample."""
        return self.samples[-1].at - self.samples[0].at if self.samples else 0.0

    @property
    def last(self) -> Sample:
        """The last sample."""
        return self.samples[-1]

    def sensors(self, position: int) -> list[GpuSensors]:
        """Return the readings of the GPU at *position* in the order of time."""
        return [sample.sensors[position] for sample in self.samples]

    def spread(self, position: int, pick: Callable[[GpuSensors], float | None]) -> Spread | None:
        """Return the spread of one value of a GPU; None where it was never read."""
        return spread(map(pick, self.sensors(position)))

    def grown(self, pick: Callable[[CgroupUse], float | None]) -> float | None:
        """Return by how much a counter of the control group grew."""
        if not self.samples:
            return None
        first, last = pick(self.samples[0].cgroup), pick(self.last.cgroup)
        return None if first is None or last is None else max(0.0, last - first)

    @property
    def cpus(self) -> float | None:
        """How many CPUs the container kept busy; None where it is not known."""
        used = self.grown(lambda use: use.cpu_seconds)
        return used / self.seconds if used is not None and self.seconds else None

    @property
    def rates(self) -> tuple[Rate, ...]:
        """How each process that is in the first and the last sample spent its time, the busiest first."""
        if not self.seconds:
            return ()
        before = {process.pid: process for process in self.samples[0].processes}
        found = [
            Rate(
                process=process,
                cpus=max(0.0, process.cpu_seconds - begun.cpu_seconds) / self.seconds,
                engine_share=max(0.0, engine_seconds(process) - engine_seconds(begun))
                / self.seconds,
            )
            for process in self.last.processes
            if (begun := before.get(process.pid))
        ]
        return tuple(sorted(found, key=lambda rate: -rate.cpus))

    @property
    def wanting(self) -> Rate | None:
        """The process that had work for a CPU whenever it was looked at; of several the busiest, None without any."""
        always = [
            {process.pid for process in sample.processes if process.runnable}
            for sample in self.samples
        ]
        steady = frozenset.intersection(*map(frozenset, always)) if always else frozenset()
        return next((rate for rate in self.rates if rate.process.pid in steady), None)

    @property
    def throttled_percent(self) -> float | None:
        """In how many of the quota's periods the container was stopped; None without periods."""
        periods = self.grown(lambda use: use.periods)
        throttled = self.grown(lambda use: use.throttled)
        return min(100.0, 100 * throttled / periods) if periods and throttled is not None else None


def engine_seconds(process: Process) -> float:
    """Return the time that a process kept the engines of GPUs busy, as fdinfo counts."""
    return sum(client.engine_seconds for client in distinct(process.clients))


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return the spread of *values* that are known; None without any."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(least=min(known), mean=sum(known) / len(known), most=max(known))
