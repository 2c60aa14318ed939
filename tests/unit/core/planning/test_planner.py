"""Planning: users, limits, networks, and what holds for every plan."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from rocmrun.core.caller import Caller
from rocmrun.core.create_request import create_request
from rocmrun.core.plan import PlannedPort, canonical_json
from rocmrun.core.planning.draft import PlanRequest
from rocmrun.core.planning.planner import make_plan
from rocmrun.core.ungranted import ungranted
from rocmrun.errors import PlanRefused, ProfileInvalid, RocmrunError
from tests.builders import (
    CALLER,
    ENGINE,
    GIB,
    IMAGE,
    granted,
    host,
    plan,
    privileges,
    request,
)
from tests.strategies import examples, plans, requests

CPU = {"gpus": {"select": ["none"]}, "accelerator": "cpu"}


def outcome(asked: PlanRequest) -> str:
    """Return the plan as bytes, or what was said instead."""
    try:
        made = make_plan(asked)
    except RocmrunError as error:
        return f"{error.slug} {error.message} {error.details} {error.hint}"
    return f"{made.hash} {canonical_json([made.notes, granted(made)])}"


@examples(60)
@given(requests())
def test_equal_requests_give_equal_plans(asked: PlanRequest) -> None:
    """Refusals too."""
    assert outcome(asked) == outcome(replace(asked))


@examples(100)
@given(plans())
def test_what_a_plan_lists_is_sorted_and_there_once(plan: Any) -> None:
    for listed in (
        plan.groups, plan.devices, plan.mounts, plan.tmpfs, plan.env, plan.env_from, plan.ports,
        plan.ulimits, plan.sysctls, plan.cap_add, plan.grants, plan.labels, plan.render_minors,
    ):  # fmt: skip
        assert list(listed) == sorted(set(listed))
    for targets in (
        [m.target for m in (*plan.mounts, *plan.tmpfs)],
        [d.path for d in plan.devices],
    ):
        assert len(targets) == len(set(targets))


@examples(60)
@given(plans())
def test_what_a_plan_says_can_be_read(plan: Any) -> None:
    """Every right has a reason and somebody who asked for it; no note is empty."""
    assert all(grant.reason and grant.asked_by for grant in plan.grants)
    assert all(note for note in plan.notes)
    assert all(item.what and item.reason for item in plan.left_out)


def test_a_profile_that_asks_for_nothing_gets_the_baseline() -> None:
    made = plan()

    assert granted(made) == [
        "device:/dev/dri/renderD128:rw",
        "device:/dev/kfd:rw",
        "group:44",
        "group:992",
        "mount:/home/rocmrun:rw",
        "shm:2147483648",
        "tmpfs-exec:/tmp",
        "ulimit:nofile=65536",
    ]
    assert (made.user, made.network, made.ipc, made.pid) == (
        "1000:1000",
        "none",
        "private",
        "private",
    )
    assert (made.cap_add, made.seccomp, made.read_only_root, made.no_new_privileges, made.masks) == (
        (), None, True, True, True,
    )  # fmt: skip
    assert (made.hostname, made.extra_hosts) == ("rocmrun", ("rocmrun:127.0.0.1",))
    assert made.notes == ()


def test_plain_root_becomes_nobody() -> None:
    root = Caller(uid=0, gid=0, cache_root="/var/cache/rocmrun")

    assert plan(caller=root).user == "65532:65532"


@pytest.mark.parametrize(
    ("user", "image_user", "image_ids", "expected"),
    [
        ("caller", "5", None, "1000:1000"),
        ("1234:99", "", None, "1234:99"),
        ("image", "1234:99", None, "1234:99"),
        ("image", "1234", None, "1234:1234"),
        ("image", "jovyan", (1000, 100), "1000:100"),
        # Offline nobody can look the name up: the caller's ids stand in.
        ("image", "jovyan", None, "1000:1000"),
    ],
)
def test_who_runs_inside(
    user: str, image_user: str, image_ids: tuple[int, int] | None, expected: str
) -> None:
    made = plan(
        {"container": {"user": user}},
        image_facts=replace(IMAGE, user=image_user),
        image_ids=image_ids,
    )

    assert made.user == expected
    assert "user:root" not in granted(made)


@pytest.mark.parametrize(
    ("user", "image_user"), [("0:0", "5"), ("0:5", "5"), ("image", ""), ("image", "0:0")]
)
def test_root_is_refused_where_it_is_not_granted(user: str, image_user: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        plan({"container": {"user": user}}, image_facts=replace(IMAGE, user=image_user))

    assert "root" in caught.value.message
    assert "user:root" in (caught.value.hint or "")


def test_an_image_that_nobody_looked_at_is_taken_for_one_of_root() -> None:
    with pytest.raises(PlanRefused):
        plan({"container": {"user": "image"}}, image_facts=None)


def test_root_that_is_granted_is_root() -> None:
    made = plan(privileges("user:root"))

    assert made.user == "0:0"
    assert "user:root" in granted(made)


def test_group_root_as_primary_group_is_a_right() -> None:
    made = plan({"container": {"user": "1000:0"}})

    assert "group:0" in granted(made)


@pytest.mark.parametrize(
    ("limit", "total", "expected"),
    [
        ("50%", 64 * GIB, 32 * GIB),
        ("8GiB", 64 * GIB, 8 * GIB),
        ("8GiB", None, 8 * GIB),
        ("10000000", 64 * GIB, 9_998_336),
        ("50%", None, None),
    ],
)
def test_memory_is_limited_in_whole_pages(
    limit: str, total: int | None, expected: int | None
) -> None:
    made = plan({"container": {"memory": limit}}, host=host(memory_bytes=total))

    assert made.memory_bytes == expected
    assert bool(made.notes) == (expected is None)


@pytest.mark.parametrize("limit", ["1KiB", "4095", "6291455"])
def test_a_limit_below_what_engines_accept_is_no_limit(limit: str) -> None:
    """Rounded down to whole pages it could become 0, which engines take for "unlimited"."""
    with pytest.raises(ProfileInvalid, match="less than a container can have"):
        plan({"container": {"memory": limit}})


def test_an_engine_that_cannot_limit_memory_is_named() -> None:
    made = plan(engine=replace(ENGINE, memory_limit=False))

    assert made.memory_bytes is None
    assert "cannot limit memory" in made.notes[0]


@pytest.mark.parametrize(
    ("gpus", "memory", "expected"),
    [(0, "64GiB", 1), (1, "64GiB", 2), (8, "64GiB", 9), (8, "4GiB", 2)],
)
def test_shared_memory_grows_with_the_gpus_up_to_half_of_the_memory(
    gpus: int, memory: str, expected: int
) -> None:
    tables = {"container": {"memory": memory}, **({} if gpus else CPU)}

    assert plan(tables, host=host(gpus)).shm_size_bytes == expected * GIB


def test_shared_memory_of_the_host_has_no_size() -> None:
    made = plan(privileges("ipc:host"))

    assert (made.ipc, made.shm_size_bytes) == ("host", 0)
    assert "ipc:host" in granted(made)
    assert not [right for right in granted(made) if right.startswith("shm:")]


def test_a_published_port_says_who_can_reach_it_and_who_asked() -> None:
    made = plan(
        {"container": {"network": "bridge", "ports": ["0.0.0.0:80:8080/udp", "127.9.9.9:1:1"]}},
        provenance={"container.ports": "profile base", "container.ports[1]": "command line"},
    )

    assert made.ports == (
        PlannedPort(address="0.0.0.0", host_port=80, container_port=8080, protocol="udp"),
        PlannedPort(address="127.9.9.9", host_port=1, container_port=1),
    )
    by_right = {grant.what: grant for grant in made.grants}
    everywhere, here = by_right["port:0.0.0.0:80:8080/udp"], by_right["port:127.9.9.9:1:1/tcp"]
    assert (everywhere.reason, everywhere.asked_by) == (
        "reachable from the network", "profile base: container.ports[0]",
    )  # fmt: skip
    assert (here.reason, here.asked_by) == (
        "reachable from this host alone", "command line: container.ports[1]",
    )  # fmt: skip
    assert (made.hostname, made.extra_hosts) == (None, ())


def test_the_network_of_the_host_is_a_privilege() -> None:
    made = plan({"container": {"network": "host"}, **privileges("network:host")})

    assert made.network == "host"
    assert "network:host" in granted(made)


def test_a_privilege_that_is_not_used_is_not_granted() -> None:
    """The grant allows network = "host"; the profile does not say it."""
    assert "network:host" not in granted(plan(privileges("network:host")))


def test_a_variable_of_the_caller_is_a_grant_and_its_value_is_nowhere() -> None:
    made = plan(
        {"container": {"env_from": ["HF_TOKEN", "A", "HF_TOKEN"]}},
        provenance={"container.env_from": "profile job", "container.env_from[1]": "command line"},
    )

    assert made.env_from == ("A", "HF_TOKEN")
    assert [(g.what, g.asked_by) for g in made.grants if g.what.startswith("env-from")] == [
        ("env-from:A", "command line: container.env_from[1]"),
        ("env-from:HF_TOKEN", "profile job: container.env_from[0]"),
    ]


@pytest.mark.parametrize("name", ["HOME", "TMPDIR", "NCCL_IB_DISABLE", "HF_HUB_OFFLINE"])
def test_a_variable_of_the_caller_may_be_one_that_the_plan_sets(name: str) -> None:
    """The plan's value stays for the probe, and for a caller who has none."""
    made = plan({"container": {"env_from": [name]}})

    assert name in dict(made.env)
    assert made.env_from == (name,)
    assert f"env-from:{name}" in granted(made)
    assert ungranted(create_request(made, role="workload", secrets={name: "x"}), made) == ()


def test_a_restart_policy_is_a_grant() -> None:
    made = plan({"container": {"restart": "on-failure:3"}})

    assert "restart:on-failure:3" in granted(made)


def test_processors_and_memory_next_to_the_gpus() -> None:
    made = plan({"container": {"numa": "gpu"}}, host=host(1))

    assert (made.cpuset_cpus, made.cpuset_mems) == ("0-15", "0")


@pytest.mark.parametrize("numa_node", [None, 7])
def test_an_unknown_numa_node_limits_nothing_and_is_named(numa_node: int | None) -> None:
    """Also when other GPUs of the plan have a known one: part of the truth would be a wrong place."""
    first, second = host(2).gpus
    made = plan(
        {"container": {"numa": "gpu"}}, host=host([first, replace(second, numa_node=numa_node)])
    )

    assert (made.cpuset_cpus, made.cpuset_mems) == ("", "")
    assert made.notes == ('numa = "gpu" has no effect: the NUMA node of the GPUs is unknown',)


def test_a_plan_without_gpus_has_no_numa_node() -> None:
    assert plan({"container": {"numa": "gpu"}, **CPU}).cpuset_mems == ""


def test_labels_name_profile_image_and_version() -> None:
    labels = dict(plan().labels)

    assert labels["io.rocmrun.profile"] == "job"
    assert labels["io.rocmrun.digest"].startswith("sha256:7f")
    assert set(labels) == {f"io.rocmrun.{name}" for name in ("digest", "profile", "ref", "version")}


def test_the_cache_of_a_plan_is_found() -> None:
    kept, none = plan(), plan({"cache": {"mode": "tmpfs"}})

    found = kept.cache
    assert found is not None
    assert found.source == "/home/me/.cache/rocmrun/job/7f7f7f7f7f7f/gfx942/1000"
    assert none.cache is None


@pytest.mark.parametrize(
    ("key", "provenance", "expected"),
    [
        ("mounts[0]", {}, "profile job: mounts[0]"),
        ("mounts[0]", {"mounts": "profile base"}, "profile base: mounts[0]"),
        ("mounts[0]", {"mounts": "profile base", "mounts[0]": "command line"},
         "command line: mounts[0]"),
        ("container.groups[0]", {"container.groups": "profile base"},
         "profile base: container.groups[0]"),
        ("devices[10]", {"devices[1]": "command line"}, "profile job: devices[10]"),
    ],
)  # fmt: skip
def test_who_asked_is_who_set_the_key_or_what_holds_it(
    key: str, provenance: dict[str, str], expected: str
) -> None:
    assert request(provenance=provenance).asked_by(key) == expected


def test_debug_applies_only_when_it_is_asked_for() -> None:
    tables = {"debug": {"privileges": ["cap:SYS_PTRACE"]}}

    assert plan(tables).cap_add == ()
    made = plan(tables, debug=True)
    (grant,) = [grant for grant in made.grants if grant.what == "cap:SYS_PTRACE"]
    assert grant.reason.startswith("asked for with --debug")
    assert grant.asked_by == "profile job: debug.privileges[0]"


def test_settings_pass_through() -> None:
    made = plan(
        {
            "container": {
                "entrypoint": ["python3"], "command": ["x.py"], "workdir": "/w", "pids": 9,
                "cpus": 1.5, "stop_timeout": 7, "log_size": "1MiB",
            },
            "probe": {"level": "full", "reuse": "never", "python": "python3.12", "timeout_seconds": 9},
        },
        interactive=True,
        tty=True,
    )  # fmt: skip

    assert (made.entrypoint, made.command, made.workdir) == (("python3",), ("x.py",), "/w")
    assert (made.pids, made.cpus, made.stop_timeout_seconds, made.log_size_bytes) == (
        9,
        1.5,
        7,
        1 << 20,
    )
    assert (made.interactive, made.tty) == (True, True)
    probe = made.probe
    assert (probe.level, probe.reuse, probe.python, probe.timeout_seconds) == (
        "full", "never", "python3.12", 9,
    )  # fmt: skip


def test_the_caller_is_who_runs_rocmrun() -> None:
    assert CALLER.container_ids == (1000, 1000)
