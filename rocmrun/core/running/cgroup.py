"""What a control group's files say of a container's limits and use, in versions 1 and 2. Reads nothing itself.

The files: the kernel's admin-guide/cgroup-v2.rst, and cgroup-v1/{memory,pids,cpusets}.rst with scheduler/sched-bwc.rst.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rocmrun.core.os_text import number

# What version 1 prints for "no limit" is near 2^63, rounded to pages.
_NO_LIMIT = 2**60
V2_FILES = (
    "cpu.max", "cpu.stat", "cpuset.cpus.effective", "memory.current", "memory.max",
    "memory.stat", "memory.events", "pids.current", "pids.max", "pids.events",
)  # fmt: skip
# Controller → files, since each is mounted by itself.
V1_FILES: Mapping[str, tuple[str, ...]] = {
    "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat"),
    "cpuacct": ("cpuacct.usage",),
    "cpuset": ("cpuset.effective_cpus",),
    "memory": (
        "memory.usage_in_bytes", "memory.limit_in_bytes", "memory.stat", "memory.oom_control",
        "memory.failcnt",
    ),
    "pids": ("pids.current", "pids.max", "pids.events"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupUse:
    """Limits and counters of a control group at one moment; None is not known, or no limit for `…_limit`.

    Attributes:
        cpu_limit: The quota in CPUs.
        periods: How many periods of the quota its processes ran in.
        throttled: In how many of them they were stopped.
        throttled_seconds: For how long, summed over CPUs.
        cpus: The CPUs that it may use, as the kernel lists them.
        memory_bytes: What counts against the limit.
        cache_bytes: The part of it that the kernel can drop: files that nobody used of late.
        limit_hits: How often memory was at its limit.
        oom_kills: How many of its processes the kernel killed for it.
        pids_refused: How many forks the limit refused.
        problem: Why nothing is known.
    """

    version: int | None = None
    cpu_limit: float | None = None
    periods: int | None = None
    throttled: int | None = None
    throttled_seconds: float | None = None
    cpu_seconds: float | None = None
    cpus: str = ""
    memory_bytes: int | None = None
    memory_limit: int | None = None
    cache_bytes: int | None = None
    limit_hits: int | None = None
    oom_kills: int | None = None
    pids: int | None = None
    pids_limit: int | None = None
    pids_refused: int | None = None
    problem: str = ""


def use_v2(files: Mapping[str, str]) -> CgroupUse:
    """Return what the files of a group of version 2 say (name → text)."""
    cpu, events = _table(files.get("cpu.stat")), _table(files.get("memory.events"))
    throttled = cpu.get("throttled_usec")
    used = cpu.get("usage_usec")
    return CgroupUse(
        version=2,
        cpu_limit=_quota(*files.get("cpu.max", "").partition(" ")[::2]),
        periods=cpu.get("nr_periods"),
        throttled=cpu.get("nr_throttled"),
        throttled_seconds=None if throttled is None else throttled / 1e6,
        cpu_seconds=None if used is None else used / 1e6,
        cpus=files.get("cpuset.cpus.effective", "").strip(),
        memory_bytes=_number(files.get("memory.current")),
        memory_limit=_number(files.get("memory.max")),
        cache_bytes=_table(files.get("memory.stat")).get("inactive_file"),
        limit_hits=events.get("max"),
        oom_kills=events.get("oom_kill"),
        pids=_number(files.get("pids.current")),
        pids_limit=_number(files.get("pids.max")),
        pids_refused=_table(files.get("pids.events")).get("max"),
    )


def use_v1(files: Mapping[str, str]) -> CgroupUse:
    """Return what the files of version 1 say, from all controllers together (name → text)."""
    cpu, memory = _table(files.get("cpu.stat")), _table(files.get("memory.stat"))
    throttled, used = cpu.get("throttled_time"), _number(files.get("cpuacct.usage"))
    limit = _number(files.get("memory.limit_in_bytes"))
    return CgroupUse(
        version=1,
        cpu_limit=_quota(files.get("cpu.cfs_quota_us", ""), files.get("cpu.cfs_period_us", "")),
        periods=cpu.get("nr_periods"),
        throttled=cpu.get("nr_throttled"),
        throttled_seconds=None if throttled is None else throttled / 1e9,
        cpu_seconds=None if used is None else used / 1e9,
        cpus=files.get("cpuset.effective_cpus", "").strip(),
        memory_bytes=_number(files.get("memory.usage_in_bytes")),
        memory_limit=limit if limit is not None and limit < _NO_LIMIT else None,
        cache_bytes=memory.get("total_inactive_file"),
        limit_hits=_number(files.get("memory.failcnt")),
        oom_kills=_table(files.get("memory.oom_control")).get("oom_kill"),
        pids=_number(files.get("pids.current")),
        pids_limit=_number(files.get("pids.max")),
        pids_refused=_table(files.get("pids.events")).get("max"),
    )


def _quota(quota: str, period: str) -> float | None:
    asked, length = _number(quota), _number(period)
    return asked / length if asked and length else None


def _table(text: str | None) -> dict[str, int]:
    rows = (line.split() for line in (text or "").splitlines())
    pairs = ((row[0], number(row[1])) for row in rows if len(row) == 2)  # noqa: PLR2004  # name, value
    return {name: value for name, value in pairs if value is not None}


def _number(text: str | None) -> int | None:
    return number(text.strip()) if text else None
