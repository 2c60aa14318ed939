"""The checks of a container's limits: processor quota, CPUs near the GPUs, memory, processes, shared memory."""

from collections.abc import Iterator

from rocmrun.core.doctor import Check
from rocmrun.core.os_text import cpu_numbers
from rocmrun.core.running.cgroup import CgroupUse
from rocmrun.core.running.observation import Observation
from rocmrun.core.text import human_size

# From which share of the periods throttling is worth a word: the default of kubernetes-mixin's alert
# CPUThrottlingHigh (github.com/kubernetes-monitoring/kubernetes-mixin, cpuThrottlingPercent).
THROTTLED_PERCENT = 25
# A bound of ours: what is used beyond this share of a limit is near it.
NEAR = 0.9
_CGROUP = "its control group"


def limit_checks(seen: Observation) -> Iterator[Check]:
    """Yield one check for each limit."""
    use = seen.last.cgroup
    if use.problem:
        for check_id in ("cpu-quota", "memory", "pids"):
            yield Check(id=check_id, looked_at=_CGROUP, result="unknown", evidence=use.problem)
    else:
        yield _quota(seen, use)
        yield from _near_gpus(seen, use)
        yield _memory(seen, use)
        yield _pids(seen, use)
    yield _shm(seen)


def raising(seen: Observation, key: str, option: str) -> str:
    """Return how a limit is raised: in the profile of one of ours, by the engine for any other."""
    if seen.record.profile:
        return f"{key} under [container] in profile {seen.record.profile}"
    return f"docker update {option} {seen.record.name}"


def _quota(seen: Observation, use: CgroupUse) -> Check:
    looked = "cpu quota and cpu.stat"
    used = "" if seen.cpus is None else f", {seen.cpus:.2f} CPUs used"
    if use.cpu_limit is None:
        known = use.cpu_seconds is not None or use.periods is not None
        return Check(id="cpu-quota", looked_at=looked, result="ok" if known else "unknown",
            evidence=f"no quota{used}" if known else "its files cannot be read")  # fmt: skip
    share = seen.throttled_percent
    limit = (
        f"it may use {use.cpu_limit:g} CPUs"
        if seen.cpus is None
        else f"{seen.cpus:.2f} of {use.cpu_limit:g} CPUs used"
    )
    if share is None:
        return Check(id="cpu-quota", looked_at=looked, result="ok", evidence=f"{limit}; no period of the quota was begun")  # fmt: skip
    held = seen.grown(lambda each: each.throttled_seconds)
    # Summed over CPUs, so that it can be more than the time that passed.
    lost = f", {held:.1f} s in all" if held else ""
    evidence = f"stopped in {share:.0f} % of the quota's periods{lost}; {limit}"
    if share < THROTTLED_PERCENT:
        return Check(id="cpu-quota", looked_at=looked, result="ok", evidence=evidence)
    return Check(
        id="cpu-quota",
        looked_at=looked,
        result="warn",
        evidence=evidence,
        hint=f"fewer threads (OMP_NUM_THREADS), or {raising(seen, 'cpus', '--cpus N')}",
        kind="cpu-quota-throttling",
    )


def _near_gpus(seen: Observation, use: CgroupUse) -> Iterator[Check]:
    """Yield whether its CPUs are on the NUMA nodes of its GPUs, where there are several nodes."""
    allowed = cpu_numbers(use.cpus)
    nodes = {node.node: cpus for node in seen.host.numa_nodes if (cpus := cpu_numbers(node.cpus))}
    placed = [
        (gpu, gpu.numa_node)
        for gpu in seen.gpus
        if gpu.numa_node is not None and gpu.numa_node in nodes
    ]
    if len(nodes) == 1 or not placed or not allowed:
        return
    looked = "its CPUs against the GPUs' NUMA nodes"
    far = [(gpu, node) for gpu, node in placed if not allowed & nodes[node]]
    if far:
        where = ", ".join(f"GPU {gpu.index} on node {node}" for gpu, node in far)
        near = next(node.cpus for node in seen.host.numa_nodes if node.node == far[0][1])
        yield Check(
            id="cpu-place",
            looked_at=looked,
            result="warn",
            evidence=f"none of its CPUs ({use.cpus}) is near {where}",
            hint=raising(seen, 'numa = "gpu"', f"--cpuset-cpus {near}"),
        )
        return
    wanted = sorted({node for _, node in placed})
    others = allowed - frozenset().union(*(nodes[node] for node in wanted))
    evidence = f"CPUs {use.cpus}; GPUs on node {', '.join(map(str, wanted))}"
    yield Check(
        id="cpu-place",
        looked_at=looked,
        result="ok",
        evidence=f"{evidence}; {len(others)} of the CPUs are on others" if others else evidence,
    )


def _memory(seen: Observation, use: CgroupUse) -> Check:
    looked = "memory use, limit and events"
    if use.memory_bytes is None:
        return Check(id="memory", looked_at=looked, result="unknown", evidence="its files cannot be read")  # fmt: skip
    needed = max(0, use.memory_bytes - (use.cache_bytes or 0))
    limit = f"of {human_size(use.memory_limit)}" if use.memory_limit else "without a limit"
    cache = human_size(use.cache_bytes or 0)
    evidence = f"{human_size(needed)} in use {limit}, and {cache} of file cache"
    near = bool(use.memory_limit) and needed >= NEAR * (use.memory_limit or 0)
    if use.oom_kills:
        evidence += f"; the kernel killed {use.oom_kills} of its processes at the limit"
    elif near and use.limit_hits:
        evidence += f"; it was at the limit {use.limit_hits} times"
    wrong = near or bool(use.oom_kills)
    return Check(
        id="memory",
        looked_at=looked,
        result="warn" if wrong else "ok",
        evidence=evidence,
        hint=raising(seen, "memory", "--memory SIZE") if wrong else "",
        kind="oom-cgroup-137" if wrong else "",
    )


def _pids(seen: Observation, use: CgroupUse) -> Check:
    looked = "pids.current, pids.max and pids.events"
    if use.pids is None:
        return Check(id="pids", looked_at=looked, result="unknown", evidence="its files cannot be read")  # fmt: skip
    limit = f"of at most {use.pids_limit}" if use.pids_limit else "without a limit"
    evidence = f"{use.pids} processes and threads {limit}"
    near = bool(use.pids_limit) and use.pids >= NEAR * (use.pids_limit or 0)
    if use.pids_refused:
        evidence += f"; the limit refused {use.pids_refused} new ones"
    wrong = near or bool(use.pids_refused)
    return Check(
        id="pids",
        looked_at=looked,
        result="warn" if wrong else "ok",
        evidence=evidence,
        hint=raising(seen, "pids", "--pids-limit N") if wrong else "",
        kind="pids-limit" if wrong else "",
    )


def _shm(seen: Observation) -> Check:
    looked = "shared memory inside"
    if seen.last.shm is None:
        return Check(id="shm", looked_at=looked, result="unknown",
            evidence="only root and the container's user may look into it",
            hint=f"sudo rocmrun doctor --container {seen.record.name}")  # fmt: skip
    used, size = seen.last.shm
    full = size > 0 and used >= NEAR * size
    where = "shm_size under [container]" if seen.record.profile else "docker run --shm-size"
    return Check(
        id="shm",
        looked_at=looked,
        result="warn" if full else "ok",
        evidence=f"{human_size(used)} of {human_size(size)} used in /dev/shm",
        hint=where if full else "",
        kind="shm-too-small" if full else "",
    )
