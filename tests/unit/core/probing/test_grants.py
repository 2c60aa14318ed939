"""What the probe is told of a plan's limits and grants."""

import pytest

from rocmrun.core.plan import PlannedDevice, PlannedMount, PlannedUlimit
from rocmrun.core.probing.grants import surroundings
from tests.unit.core.plan_values import a_plan

CACHE = PlannedMount(target="/home/rocmrun", source="/cache", read_only=False, cache=True)


def test_the_baseline_grants_its_nodes_and_nothing_shared() -> None:
    granted = surroundings(a_plan())["granted"]

    assert granted["devices"] == {
        "/dev/dri/renderD131": "rw",
        "/dev/infiniband/uverbs0": "rw",
        "/dev/kfd": "rw",
    }
    words = ("network", "ipc", "pid", "masks", "seccomp", "security_label")
    assert [granted[word] for word in words] == [
        "none",
        "private",
        "private",
        True,
        "default",
        False,
    ]


def test_home_is_where_the_probe_has_it() -> None:
    """In memory, whatever the workload has there; a HOME of the profile's own is read-only to the probe."""
    cached = surroundings(a_plan(mounts=(CACHE,), env=(("HOME", "/home/rocmrun"),)))
    own = PlannedMount(target="/mine", source="/mine", read_only=False)
    mounted = surroundings(a_plan(mounts=(own,), env=(("HOME", "/mine"),)))

    assert (cached["home"], cached["home_writable"]) == ("/home/rocmrun", True)
    assert cached["granted"]["mounts"] == {}
    assert cached["granted"]["tmpfs"]["/home/rocmrun"] == "exec"
    assert (mounted["home"], mounted["home_writable"]) == ("/mine", False)


def test_limits_and_variables_are_the_plans() -> None:
    ulimits = (PlannedUlimit(name="nofile", soft=1024, hard=65536),)
    env = (("HIP_VISIBLE_DEVICES", "0"), ("OTHER", "1"))
    told = surroundings(a_plan(memory_bytes=1 << 30, cpus=1.5, ulimits=ulimits, env=env))

    assert told["limits"] == {
        "memory_bytes": 1 << 30,
        "pids": 4096,
        "cpus": 1.5,
        "cpuset_cpus": None,
    }
    assert told["ulimits"] == {"nofile": [1024, 65536]}
    assert told["visibility"] == {"HIP_VISIBLE_DEVICES": "0"}


@pytest.mark.parametrize(
    ("seccomp", "word"), [(None, "default"), ("unconfined", "unconfined"), ("{}", "own")]
)
def test_a_filter_is_the_engines_none_or_the_profiles(seccomp: str | None, word: str) -> None:
    assert surroundings(a_plan(seccomp=seccomp))["granted"]["seccomp"] == word


@pytest.mark.parametrize("change", [{"apparmor": "unconfined"}, {"selinux_label": "disable"}])
def test_a_label_that_is_taken_away_is_a_grant(change: dict[str, str]) -> None:
    assert surroundings(a_plan(**change))["granted"]["security_label"] is True


def test_a_node_that_is_read_only_stays_so() -> None:
    node = PlannedDevice(path="/dev/x", host_path="/dev/x", permissions="r")

    assert surroundings(a_plan(devices=(node,)))["granted"]["devices"] == {"/dev/x": "r"}
