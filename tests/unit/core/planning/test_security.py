"""Rights beyond the baseline: each one asked for, each one with its reason, and none twice."""

from typing import Any

import pytest

from rocmrun.core.path_facts import PathFacts
from rocmrun.core.plan import PlannedUlimit
from rocmrun.errors import PlanRefused, UsageError
from tests.builders import SECCOMP, granted, host, plan, privileges

MODELS = {"mounts": [{"source": "/srv/models", "target": "/models"}]}
MODELS_FACTS = {
    "/srv/models": PathFacts(
        path="/srv/models",
        kind="directory",
        components=(("/srv", 0o755, 0, 0), ("/srv/models", 0o750, 0, 2000)),
    )
}


def reason(made: Any, what: str) -> str:
    (grant,) = [grant for grant in made.grants if grant.what == what]
    return str(grant.reason)


def test_a_capability_says_that_it_is_never_effective_for_a_user() -> None:
    """Docker gives it no effect but the system calls that its seccomp rules unlock."""
    made = plan(privileges("cap:SYS_PTRACE"))

    assert made.cap_add == ("SYS_PTRACE",)
    assert "for uid 1000 never effective" in reason(made, "cap:SYS_PTRACE")


def test_a_capability_of_root_is_effective() -> None:
    made = plan(privileges("cap:SYS_PTRACE", "user:root"))

    assert reason(made, "cap:SYS_PTRACE") == "the test asks (effective)"


@pytest.mark.parametrize(
    ("rule", "capability", "call"),
    [("+mempolicy", "SYS_NICE", "mbind"), ("+pidfd", "SYS_PTRACE", "pidfd_getfd")],
)
def test_a_narrow_rule_is_made_with_a_capability_and_says_so(
    rule: str, capability: str, call: str
) -> None:
    made = plan(privileges(f"seccomp:{rule}"))

    assert (made.cap_add, made.seccomp) == ((capability,), None)
    assert capability in reason(made, f"seccomp:{rule}")
    assert call in reason(made, f"seccomp:{rule}")
    assert f"cap:{capability}" not in granted(made)


def test_a_narrow_rule_for_root_would_be_wide() -> None:
    with pytest.raises(PlanRefused) as caught:
        plan(privileges("seccomp:+mempolicy", "user:root"))

    assert "for root SYS_NICE would be effective" in caught.value.message


def test_seccomp_is_the_engines_own_unconfined_or_a_value() -> None:
    files = {"/etc/s.json": SECCOMP}

    assert plan().seccomp is None
    assert plan(privileges("seccomp:unconfined")).seccomp == "unconfined"
    assert plan(privileges("seccomp:/etc/s.json"), seccomp_files=files).seccomp == SECCOMP
    both = plan(privileges("seccomp:/etc/s.json", "seccomp:+pidfd"), seccomp_files=files)
    assert (both.seccomp, both.cap_add) == (SECCOMP, ("SYS_PTRACE",))


def test_two_seccomp_profiles_are_one_too_many() -> None:
    with pytest.raises(UsageError, match="two seccomp profiles"):
        plan(privileges("seccomp:unconfined", "seccomp:/etc/s.json"))


@pytest.mark.parametrize(
    ("grant", "field", "value"),
    [
        ("apparmor:unconfined", "apparmor", "unconfined"),
        ("label:disable", "selinux_label", "disable"),
        ("nnp:off", "no_new_privileges", False),
        ("rootfs:rw", "read_only_root", False),
        ("masks:off", "masks", False),
        ("ipc:shareable", "ipc", "shareable"),
        ("pid:host", "pid", "host"),
    ],
)
def test_one_word_grants_change_their_field(grant: str, field: str, value: object) -> None:
    assert getattr(plan(), field) != value

    made = plan(privileges(grant))

    assert getattr(made, field) == value
    assert grant in granted(made)


def test_of_two_words_for_one_thing_the_last_counts_and_is_granted() -> None:
    """[debug] comes after [[privileges]]."""
    made = plan({**privileges("ipc:shareable"), "debug": {"privileges": ["ipc:host"]}}, debug=True)

    assert made.ipc == "host"
    assert [right for right in granted(made) if right.startswith("ipc:")] == ["ipc:host"]


def test_open_files_are_many_and_core_dumps_none() -> None:
    made = plan()

    assert made.ulimits == (
        PlannedUlimit(name="core", soft=0, hard=0),
        PlannedUlimit(name="nofile", soft=65536, hard=65536),
    )
    assert "ulimit:nofile=65536" in granted(made)


def test_open_files_stay_within_what_this_host_allows() -> None:
    made = plan(host=host(nofile_limit=20000))

    assert PlannedUlimit(name="nofile", soft=20000, hard=20000) in made.ulimits
    assert made.notes == ("nofile is 20000, not 65536: this host's hard limit allows no more",)
    assert plan(host=host(nofile_limit=1 << 20)).notes == ()


def test_a_ulimit_of_the_profile_takes_the_place_of_the_baselines() -> None:
    made = plan(privileges("ulimit:memlock=-1", "ulimit:nofile=100:200"))

    assert made.ulimits == (
        PlannedUlimit(name="core", soft=0, hard=0),
        PlannedUlimit(name="memlock", soft=-1, hard=-1),
        PlannedUlimit(name="nofile", soft=100, hard=200),
    )
    assert [right for right in granted(made) if "ulimit" in right] == [
        "ulimit:memlock=-1",
        "ulimit:nofile=100:200",
    ]


def test_of_two_values_of_a_sysctl_the_last_counts_and_is_granted() -> None:
    made = plan(privileges("sysctl:net.core.somaxconn=1", "sysctl:net.core.somaxconn=2"))

    assert made.sysctls == (("net.core.somaxconn", "2"),)
    assert [right for right in granted(made) if "sysctl" in right] == [
        "sysctl:net.core.somaxconn=2"
    ]


def test_a_group_is_named_by_number_or_by_what_it_owns() -> None:
    made = plan(
        {
            **MODELS,
            "container": {"groups": [7, "path:/models"]},
            **privileges("group:5", "group:7"),
        },
        paths=MODELS_FACTS,
    )

    assert made.groups == (5, 7, 44, 992, 2000)
    assert reason(made, "group:2000") == "owns /srv/models, mounted at /models"
    assert reason(made, "group:7") == "named by its number"
    assert reason(made, "group:5") == "the test asks"


def test_one_group_twice_is_one() -> None:
    made = plan({"container": {"groups": [7, 7]}})

    assert granted(made).count("group:7") == 1


@pytest.mark.parametrize(
    "facts", [{}, {"/srv/models": PathFacts(path="/srv/models", kind="missing")}]
)
def test_a_group_of_a_path_that_nobody_looked_at_is_refused(facts: dict[str, PathFacts]) -> None:
    tables = {
        "mounts": [{"type": "volume", "source": "data", "target": "/models"}],
        "container": {"groups": ["path:/models"]},
    }

    with pytest.raises(UsageError, match="no bind mount with the target /models"):
        plan(tables, paths=facts)


def test_every_privilege_says_which_entry_asked() -> None:
    made = plan(privileges("nnp:off", "masks:off"))

    asked = {grant.what: grant.asked_by for grant in made.grants}
    assert asked["nnp:off"] == "profile job: privileges[0]"
    assert asked["masks:off"] == "profile job: privileges[1]"


@pytest.mark.parametrize("grant", ["ipc:host", "pid:host"])
def test_a_namespace_of_the_host_takes_the_selinux_label_with_it(grant: str) -> None:
    """Docker does so by itself; a plan says it, with the one that brought it."""
    made = plan(privileges(grant))

    assert made.selinux_label == "disable"
    (label,) = [entry for entry in made.grants if entry.what == "label:disable"]
    assert label.asked_by == "profile job: privileges[0]"
    assert grant in label.reason


def test_a_label_that_is_asked_for_is_granted_once() -> None:
    made = plan(privileges("pid:host", "label:disable"))

    assert reason(made, "label:disable") == "the test asks"
    assert plan(privileges("ipc:shareable")).selinux_label is None
