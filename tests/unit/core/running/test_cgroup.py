"""Control groups of both versions: the same limits and counters."""

import pytest

from rocmrun.core.running.cgroup import CgroupUse, use_v1, use_v2

V2 = {
    "cpu.max": "10000 100000\n",
    "cpu.stat": "usage_usec 2500000\nuser_usec 1\nnr_periods 100\nnr_throttled 63\nthrottled_usec 5000000\n",
    "cpuset.cpus.effective": "0-3\n",
    "memory.current": "1000\n",
    "memory.max": "4000\n",
    "memory.stat": "anon 700\ninactive_file 200\n",
    "memory.events": "low 0\nhigh 0\nmax 5\noom 1\noom_kill 2\n",
    "pids.current": "7\n",
    "pids.max": "50\n",
    "pids.events": "max 3\n",
}
V1 = {
    "cpu.cfs_quota_us": "10000\n",
    "cpu.cfs_period_us": "100000\n",
    "cpu.stat": "nr_periods 100\nnr_throttled 63\nthrottled_time 5000000000\n",
    "cpuacct.usage": "2500000000\n",
    "cpuset.effective_cpus": "0-3\n",
    "memory.usage_in_bytes": "1000\n",
    "memory.limit_in_bytes": "4000\n",
    "memory.stat": "cache 9\ntotal_inactive_file 200\n",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    "memory.failcnt": "5\n",
    "pids.current": "7\n",
    "pids.max": "50\n",
    "pids.events": "max 3\n",
}
USE = {
    "cpu_limit": 0.1, "periods": 100, "throttled": 63, "throttled_seconds": 5.0, "cpu_seconds": 2.5,
    "cpus": "0-3", "memory_bytes": 1000, "memory_limit": 4000,
    "cache_bytes": 200, "limit_hits": 5, "oom_kills": 2, "pids": 7, "pids_limit": 50,
    "pids_refused": 3,
}  # fmt: skip


def test_both_versions_say_the_same() -> None:
    """In units of their own."""
    assert use_v2(V2) == CgroupUse(version=2, **USE)  # type: ignore[arg-type]  # the table is of mixed types
    assert use_v1(V1) == CgroupUse(version=1, **USE)  # type: ignore[arg-type]


def test_no_limit_is_none() -> None:
    """Each version has a word of its own for it."""
    two = use_v2({"cpu.max": "max 100000\n", "memory.max": "max\n", "pids.max": "max\n"})
    one = use_v1({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n", "memory.limit_in_bytes": "9223372036854771712\n"})  # fmt: skip

    assert (two.cpu_limit, two.memory_limit, two.pids_limit) == (None, None, None)
    assert (one.cpu_limit, one.memory_limit, one.pids_limit) == (None, None, None)


@pytest.mark.parametrize("use", [use_v1, use_v2])
def test_files_that_are_not_there_are_not_zero(use: object) -> None:
    """A kernel without a controller."""
    assert callable(use)
    found = use({})

    assert (found.periods, found.throttled_seconds, found.cpu_seconds, found.memory_bytes) == (None,) * 4  # fmt: skip
