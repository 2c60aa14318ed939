"""What Podman does whatever it is asked stands in the plan, bounded; and what it means otherwise is said."""

from dataclasses import replace

import pytest

from rocmrun.core.create_request import create_request
from rocmrun.core.docker_run.line import docker_run_arguments
from rocmrun.core.exposure.container_rights import ContainerRights, Surroundings
from rocmrun.core.plan import PlannedUlimit
from rocmrun.core.probing.protocol import expectation
from rocmrun.core.ungranted import ungranted
from rocmrun.errors import EngineUnsuitable, PlanRefused
from tests.builders import PODMAN, granted, host, plan, privileges

ON_CGROUP_V1 = replace(PODMAN, cgroup_version=1)


def test_what_podman_mounts_by_itself_gets_a_bound() -> None:
    """With a writable root it mounts nothing; Docker never does."""
    made = plan(engine=PODMAN)
    config = create_request(made, role="workload")["HostConfig"]

    assert {"tmpfs:/run", "tmpfs:/var/tmp"} <= set(granted(made))
    assert config["Tmpfs"]["/run"] == (
        "rw,nosuid,nodev,noexec,size=67108864,mode=1777,U,notmpcopyup"
    )
    assert "tmpfs:/run" not in granted(plan(privileges("rootfs:rw"), engine=PODMAN))
    assert "tmpfs:/run" not in granted(plan())


def test_a_place_of_the_profiles_own_stays_its_own() -> None:
    made = plan({"container": {"tmpfs": {"/var/tmp": "1GiB"}}}, engine=PODMAN)

    assert [tmpfs.size_bytes for tmpfs in made.tmpfs if tmpfs.target == "/var/tmp"] == [1 << 30]


def test_the_limit_of_processes_is_asked_for_before_podman_does() -> None:
    """As many as the host has; a grant of the profile replaces it."""
    made = plan(engine=PODMAN, host=host(nproc_limit=4_194_304))
    own = plan(privileges("ulimit:nproc=500"), engine=PODMAN)

    assert PlannedUlimit(name="nproc", soft=4_194_304, hard=4_194_304) in made.ulimits
    assert "ulimit:nproc=4194304" in granted(made)
    assert [what for what in granted(own) if "nproc" in what] == ["ulimit:nproc=500"]
    assert [limit.name for limit in plan().ulimits] == ["core", "nofile"]


def test_a_cgroup_namespace_is_podmans_to_make() -> None:
    """On cgroup v1 it makes none: that is a grant, and the probe is told."""
    made, other = plan(engine=ON_CGROUP_V1), plan(engine=PODMAN)

    assert create_request(made, role="workload")["HostConfig"]["CgroupnsMode"] == "host"
    assert "cgroupns:host" in granted(made)
    assert expectation(made)["granted"]["cgroup"] == "host"
    assert create_request(other, role="workload")["HostConfig"]["CgroupnsMode"] == "private"
    assert "cgroupns:host" not in granted(other)


@pytest.mark.parametrize("engine", [PODMAN, ON_CGROUP_V1])
def test_nothing_is_without_a_grant(engine: object) -> None:
    made = plan(privileges("cap:SYS_PTRACE", "seccomp:+mempolicy"), engine=engine)

    assert ungranted(create_request(made, role="workload"), made) == ()


def test_the_line_is_podmans() -> None:
    words = docker_run_arguments(plan(engine=ON_CGROUP_V1))

    assert words[:2] == ("podman", "run")
    assert words[words.index("--cgroupns") + 1] == "host"


def test_an_added_capability_is_in_force() -> None:
    """Said in the plan, expected by the probe, and weighed."""
    made = plan(privileges("cap:SYS_PTRACE"), engine=PODMAN)
    rights = ContainerRights.of(
        create_request(made, role="workload"), Surroundings.of(host(), PODMAN)
    )

    (reason,) = [grant.reason for grant in made.grants if grant.what == "cap:SYS_PTRACE"]
    assert "effective for uid 1000 too" in reason
    assert expectation(made)["cap_eff"] == f"{1 << 19:016x}"
    assert rights.effective == {"SYS_PTRACE"}


def test_a_narrow_rule_adds_nothing() -> None:
    """Its capability would be in force, and Podman's own filter allows the calls."""
    made = plan(privileges("seccomp:+mempolicy", "seccomp:+pidfd"), engine=PODMAN)

    assert made.cap_add == ()
    (reason,) = [grant.reason for grant in made.grants if grant.what == "seccomp:+mempolicy"]
    assert "adds nothing" in reason


def test_capabilities_that_are_the_host_are_refused_for_every_user() -> None:
    with pytest.raises(PlanRefused) as refused:
        plan(privileges("cap:SYS_ADMIN"), engine=PODMAN)

    assert "Podman makes it effective for every user" in refused.value.details[0]
    assert plan(privileges("cap:SYS_ADMIN")).cap_add == ("SYS_ADMIN",)


def test_what_its_socket_ignores_is_refused() -> None:
    with pytest.raises(EngineUnsuitable) as refused:
        plan(privileges("masks:off"), engine=PODMAN)

    assert "masks:off has no effect" in refused.value.message
