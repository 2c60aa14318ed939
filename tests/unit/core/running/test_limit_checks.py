"""Limits of a container: how near it is, and how each is raised."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.running.cgroup import CgroupUse
from rocmrun.core.running.checks import container_checks
from rocmrun.core.running.observation import Observation
from tests.builders import GIB, gpu, host
from tests.unit.core.running.observations import check, record, seen, use, with_use


def foreign(observation: Observation) -> Observation:
    """Make the container one that rocmrun did not start."""
    return replace(observation, record=record(profile=""))


def test_a_quota_that_stops_the_container() -> None:
    """By the periods between the samples, not by those since the start."""
    first = {"cpu_limit": 0.1, "throttled_seconds": 100.0}
    last = {"cpu_limit": 0.1, "throttled": 63, "throttled_seconds": 106.3}
    found = check(with_use(last, first), "cpu-quota")

    assert (found.result, found.kind) == ("warn", "cpu-quota-throttling")
    assert found.evidence == "stopped in 63 % of the quota's periods, 6.3 s in all; 0.20 of 0.1 CPUs used"  # fmt: skip
    assert "cpus under [container] in profile vllm-serve" in found.hint


@pytest.mark.parametrize(
    ("last", "result", "evidence"),
    [
        ({"throttled": 24}, "ok", "stopped in 24 % of the quota's periods; 0.20 of 4 CPUs used"),
        ({"periods": 100}, "ok", "0.20 of 4 CPUs used; no period of the quota was begun"),
        ({"cpu_seconds": None, "periods": 100}, "ok", "it may use 4 CPUs; no period of the quota was begun"),
        ({"cpu_limit": None}, "ok", "no quota, 0.20 CPUs used"),
        ({"cpu_limit": None, "cpu_seconds": None, "periods": None}, "unknown", "its files cannot be read"),
    ],
)  # fmt: skip
def test_a_quota_that_does_not(last: dict[str, Any], result: str, evidence: str) -> None:
    """A few stops are no more than a burst; no quota stops nothing."""
    found = check(with_use(last), "cpu-quota")

    assert (found.result, found.evidence) == (result, evidence)


def test_another_programs_container_is_changed_by_the_engine() -> None:
    """No profile stands behind it."""
    found = check(foreign(with_use({"throttled": 90})), "cpu-quota")

    assert "docker update --cpus N vllm" in found.hint


def test_memory_near_its_limit() -> None:
    """What the kernel can drop at any time is not counted."""
    cached = check(with_use({"memory_bytes": 8 * GIB - 1, "cache_bytes": 7 * GIB}), "memory")
    near = check(with_use({"memory_bytes": 8 * GIB - 1, "cache_bytes": 0, "limit_hits": 9}), "memory")  # fmt: skip
    free = check(with_use({"memory_limit": None}), "memory")

    assert cached.result == "ok"
    assert (near.result, near.kind) == ("warn", "oom-cgroup-137")
    assert near.evidence == "8 GiB in use of 8 GiB, and 0 B of file cache; it was at the limit 9 times"  # fmt: skip
    assert (free.result, free.evidence) == ("ok", "1 GiB in use without a limit, and 1 GiB of file cache")  # fmt: skip


def test_killed_processes_count_also_when_there_is_room_again() -> None:
    """The kernel counts them for as long as the group is there."""
    found = check(with_use({"oom_kills": 2}), "memory")

    assert (found.result, found.kind) == ("warn", "oom-cgroup-137")
    assert "the kernel killed 2 of its processes" in found.evidence


@pytest.mark.parametrize(
    ("last", "result", "evidence"),
    [
        ({"pids": 48, "pids_limit": 50}, "warn", "48 processes and threads of at most 50"),
        ({"pids_refused": 3}, "warn", "20 processes and threads of at most 4096; the limit refused 3 new ones"),
        ({"pids_limit": None}, "ok", "20 processes and threads without a limit"),
    ],
)  # fmt: skip
def test_processes_near_their_limit(last: dict[str, Any], result: str, evidence: str) -> None:
    """Refused forks count also later."""
    found = check(with_use(last), "pids")

    assert (found.result, found.evidence) == (result, evidence)
    assert found.kind == ("pids-limit" if result == "warn" else "")


@pytest.mark.parametrize("check_id", ["memory", "pids"])
def test_a_controller_that_is_not_there_is_unknown(check_id: str) -> None:
    """Not zero."""
    assert check(with_use({"memory_bytes": None, "pids": None}), check_id).result == "unknown"


def test_a_group_that_cannot_be_read_is_unknown_with_its_reason() -> None:
    """All of its limits at once."""
    found = container_checks(seen(uses=(CgroupUse(problem="not here"),) * 2))
    unknown = {each.id: each.evidence for each in found if each.result == "unknown"}

    assert unknown == {"cpu-quota": "not here", "memory": "not here", "pids": "not here"}


@pytest.mark.parametrize(
    ("profile", "hint"), [("serve", "shm_size under [container]"), ("", "docker run --shm-size")]
)
def test_shared_memory_that_is_full(profile: str, hint: str) -> None:
    """A data loader dies of SIGBUS then."""
    full = replace(seen(shm=(60 << 20, 64 << 20)), record=record(profile=profile))

    assert check(full, "shm").hint == hint
    assert (check(full, "shm").result, check(full, "shm").kind) == ("warn", "shm-too-small")
    assert check(seen(shm=(0, 64 << 20)), "shm").result == "ok"


def test_shared_memory_that_may_not_be_looked_at() -> None:
    """It takes root, or the container's user."""
    found = check(seen(shm=None), "shm")

    assert (found.result, found.hint) == ("unknown", "sudo rocmrun doctor --container vllm")


def test_cpus_that_are_far_from_the_gpu() -> None:
    """None on its NUMA node: every copy crosses the link between processors."""
    far = replace(with_use({"cpus": "16-31"}), gpus=(gpu(0, numa_node=0),))
    mixed = with_use({"cpus": "0-31"})
    near = with_use({"cpus": "0-15"})

    assert check(far, "cpu-place").result == "warn"
    assert check(far, "cpu-place").evidence == "none of its CPUs (16-31) is near GPU 0 on node 0"
    assert 'numa = "gpu" under [container]' in check(far, "cpu-place").hint
    assert "--cpuset-cpus 0-15" in check(foreign(far), "cpu-place").hint
    assert check(mixed, "cpu-place").evidence == "CPUs 0-31; GPUs on node 0; 16 of the CPUs are on others"  # fmt: skip
    assert check(near, "cpu-place").evidence == "CPUs 0-15; GPUs on node 0"


def test_where_there_is_one_numa_node_nothing_is_far() -> None:
    """Nor where the GPU's is not known."""
    one = replace(seen(), host=host(1, numa_nodes=host().numa_nodes[:1]))
    unknown = replace(seen(), gpus=(gpu(0, numa_node=None),))

    for observation in (one, unknown, with_use({"cpus": ""})):
        assert "cpu-place" not in {each.id for each in container_checks(observation)}


def test_the_first_sample_is_what_counters_start_from() -> None:
    """A counter that was reset does not become negative."""
    reset = seen(uses=(use(throttled=50, periods=100), use(throttled=0, periods=200)))

    assert reset.throttled_percent == 0
