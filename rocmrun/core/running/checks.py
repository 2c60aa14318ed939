"""All checks of a container that runs, in order: its state, its devices, its GPUs, its limits, what holds it up."""

from collections.abc import Iterator

from rocmrun.core.doctor import Check, Result
from rocmrun.core.running.gpu_checks import gpu_checks, is_idle, words
from rocmrun.core.running.limit_checks import THROTTLED_PERCENT, limit_checks
from rocmrun.core.running.observation import Observation, Rate
from rocmrun.core.running.record import ContainerRecord

CONTAINER_CHECKS = (
    "state", "devices", "gpu-busy", "gpu-memory", "gpu-clock", "gpu-throttling", "gpu-power",
    "gpu-link", "gpu-sharing", "cpu-quota", "cpu-place", "memory", "pids", "shm", "bottleneck",
    "operator-logs",
)  # fmt: skip
# Codes that tell what ended a process, beyond its own: 128 + the signal, and those of `docker run`.
_CODES = {
    125: "the engine could not start it",
    126: "its command cannot be executed",
    127: "its command was not found",
    134: "SIGABRT: it ended itself",
    135: "SIGBUS: often /dev/shm is full",
    137: "SIGKILL: from outside, or by the kernel for want of memory",
    139: "SIGSEGV: it crashed",
    143: "SIGTERM: it was asked to end",
}
_KILLED = 137
# Bounds of ours: from the first on a container works, from the second on one of its CPUs is full.
WORKING_CPUS, FULL_CPU = 0.5, 0.9


def container_checks(seen: Observation) -> tuple[Check, ...]:
    """Return every check of a container, in order; what it prints is judged apart."""
    found = [_state(seen.record)]
    if seen.samples:
        found += [_devices(seen), *gpu_checks(seen), *limit_checks(seen), *_bottleneck(seen)]
    elif seen.problem:
        looked = "its processes, control group and GPUs"
        found.append(Check(id="devices", looked_at=looked, result="unknown", evidence=seen.problem))
    return tuple(found)


def _state(record: ContainerRecord) -> Check:
    looked = "the engine's record"
    again = f", started again {record.restarts} times" if record.restarts else ""
    logs = f"rocmrun logs {record.name} --tail 50" if record.profile else f"docker logs --tail 50 {record.name}"  # fmt: skip
    if record.state in {"running", "paused"}:
        health = f", {record.health}" if record.health else ""
        evidence = f"{record.state}{health}{again}"
        if record.health == "unhealthy":
            last = f": {record.health_output}" if record.health_output else ""
            return Check(id="state", looked_at=looked, result="blocker", evidence=f"{evidence}{last}", hint=logs)  # fmt: skip
        wrong: Result = "warn" if record.state == "paused" or record.restarts else "ok"
        hint = f"docker unpause {record.name}" if record.state == "paused" else logs
        return Check(id="state", looked_at=looked, result=wrong, evidence=evidence, hint="" if wrong == "ok" else hint)  # fmt: skip
    if record.state == "created":
        evidence = record.error or "it was created and never started"
        return Check(id="state", looked_at=looked, result="blocker", evidence=evidence, hint=f"docker start {record.name}")  # fmt: skip
    return _ended(record, again, logs)


def _ended(record: ContainerRecord, again: str, logs: str) -> Check:
    if record.exit_code is None:
        return Check(id="state", looked_at="the engine's record", result="warn",
            evidence=f"{record.state}, with its exit code and its log{again}")  # fmt: skip
    code = record.exit_code
    parts = [f"{record.state or 'ended'}, exit code {code}{again}"]
    if record.oom_killed:
        parts.append("the kernel killed it at its limit of memory")
    elif meaning := _CODES.get(code):
        parts.append(meaning)
    if record.error:
        parts.append(record.error)
    failed = code != 0 or record.oom_killed or record.state != "exited"
    return Check(
        id="state",
        looked_at="the engine's record",
        result="blocker" if failed else "warn",
        evidence="; ".join(parts),
        hint=logs,
        kind="oom-cgroup-137" if record.oom_killed or code == _KILLED else "",
    )


def _devices(seen: Observation) -> Check:
    looked = "open descriptors of its processes, and what KFD lists"
    record = seen.record
    if not seen.gpus:
        given = ", ".join(f"renderD{minor}" for minor in sorted(record.minors))
        if given or record.every_gpu:
            return Check(id="devices", looked_at=looked, result="unknown",
                evidence=f"it was given {given or 'every GPU'}, which KFD does not list on this host",
                hint="rocmrun host")  # fmt: skip
        return Check(id="devices", looked_at=looked, result="ok", evidence="it was given no GPU")
    readable = [process for process in seen.last.processes if process.nodes is not None]
    own = {process.pid for process in seen.last.processes} & seen.kfd_pids
    if not readable and own:
        return Check(id="devices", looked_at=looked, result="ok",
            evidence=f"KFD lists {_processes(len(own))} of it with memory or a queue")  # fmt: skip
    if not readable:
        return Check(id="devices", looked_at=looked, result="unknown",
            evidence="only root and the container's user may see its descriptors",
            hint=f"sudo rocmrun doctor --container {record.name}")  # fmt: skip
    return _held(seen, looked)


def _held(seen: Observation, looked: str) -> Check:
    processes = seen.last.processes
    held = frozenset().union(*(process.minors for process in processes))
    given = {gpu.render_minor for gpu in seen.gpus if gpu.render_minor is not None}
    unused = ", ".join(f"renderD{minor}" for minor in sorted(given - held))
    kfd = sum(process.holds_kfd for process in processes)
    if not kfd and not held:
        what = "no process holds /dev/kfd or a render node"
        if work := _work(seen):
            return Check(id="devices", looked_at=looked, result="warn",
                evidence=f"{what} while {work}: the work runs on the CPU",
                hint=_prove(seen), kind="cpu-fallback")  # fmt: skip
        return Check(id="devices", looked_at=looked, result="unknown", hint=_prove(seen),
            evidence=f"{what}, and it hardly works: it may not have begun")  # fmt: skip
    nodes = [f"renderD{minor}" for minor in sorted(held)]
    evidence = f"{_processes(kfd)} with /dev/kfd open; open: {', '.join(nodes) or 'no render node'}"
    if unused:
        return Check(id="devices", looked_at=looked, result="warn",
            evidence=f"{evidence}; given and not held: {unused}", hint=_prove(seen))  # fmt: skip
    return Check(id="devices", looked_at=looked, result="ok", evidence=evidence)


def _work(seen: Observation) -> str:
    """Return what shows that the container works on CPUs; "" for one that hardly does."""
    if seen.cpus is not None and seen.cpus >= WORKING_CPUS:
        return f"{seen.cpus:.1f} CPUs are busy"
    # On a machine that is full, work gets little of a CPU.
    wanting = seen.wanting
    return f"{_named(wanting)} has work for a CPU all the time" if wanting else ""


def _named(rate: Rate) -> str:
    return f"process {rate.process.pid} ({rate.process.name})"


def _prove(seen: Observation) -> str:
    return f"rocmrun probe {seen.record.profile}" if seen.record.profile else ""


def _processes(count: int) -> str:
    return f"{count} process" + ("" if count == 1 else "es")


def _bottleneck(seen: Observation) -> Iterator[Check]:
    """Yield what holds the GPUs up, from all that was seen together."""
    busy = [seen.spread(place, lambda each: each.busy_percent) for place in range(len(seen.gpus))]
    known = [each for each in busy if each is not None]
    if not known:
        return
    looked = "GPUs, CPUs and quota together"
    idle = [gpu for gpu, each in zip(seen.gpus, busy, strict=True) if is_idle(each)]
    if not idle:
        yield Check(id="bottleneck", looked_at=looked, result="ok", evidence="the GPUs are at work")
        return
    names = ", ".join(str(gpu.index) for gpu in idle)
    if len(idle) < len(known):
        most = max(each.mean for each in known)
        yield Check(id="bottleneck", looked_at=looked, result="warn",
            evidence=f"GPU {names} idles while another is {most:.0f} % busy")  # fmt: skip
        return
    measured = max(known, key=lambda each: each.most)
    what = f"the GPU idles ({words(measured, '%')} in {len(seen.samples)} samples)"
    yield _idle(seen, looked, what)


def _idle(seen: Observation, looked: str, what: str) -> Check:
    share = seen.throttled_percent
    if share is not None and share >= THROTTLED_PERCENT:
        return Check(id="bottleneck", looked_at=looked, result="warn", kind="cpu-quota-throttling",
            evidence=f"{what} while the CPU quota stops the container in {share:.0f} % of its periods")  # fmt: skip
    full = [rate for rate in seen.rates if rate.cpus >= FULL_CPU]
    if full:
        return Check(id="bottleneck", looked_at=looked, result="warn",
            evidence=f"{what} while {_busiest(full[0])}: data that is prepared there, compilation, or work on the CPU",
            hint=f"py-spy dump --pid {full[0].process.pid}")  # fmt: skip
    if work := _work(seen):
        short = seen.cpus is not None and seen.cpus < WORKING_CPUS
        more = ", and gets little of one: other work on this machine takes them" if short else ""
        return Check(id="bottleneck", looked_at=looked, result="warn", evidence=f"{what} while {work}{more}")  # fmt: skip
    return Check(id="bottleneck", looked_at=looked, result="ok",
        evidence=f"{what}, and so do the CPUs: it waits for requests, data, or another process")  # fmt: skip


def _busiest(rate: Rate) -> str:
    who = _named(rate)
    if rate.cpus < 2 * FULL_CPU:
        return f"one CPU is at {100 * rate.cpus:.0f} % for {who}"
    return f"{who} keeps {rate.cpus:.1f} CPUs busy"
