"""The exposure score: the arithmetic, the floors, each row's values, and what no change may do."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.create_request import create_request
from rocmrun.core.exposure.capabilities import WEIGHED, WEIGHTLESS
from rocmrun.core.exposure.container_rights import (
    DEFAULT_CAPABILITIES,
    ContainerRights,
    Surroundings,
)
from rocmrun.core.exposure.row import Finding
from rocmrun.core.exposure.rows import ROWS
from rocmrun.core.exposure.score import (
    VERSION,
    Exposure,
    Row,
    band,
    score_inspected,
    score_plan,
    score_request,
)
from rocmrun.core.grants import CAPABILITIES
from rocmrun.core.plan import Plan
from tests.builders import ENGINE, host, plan, privileges
from tests.exposures import (
    AMD_RECIPE,
    CONFINED,
    DOCKER_DEFAULT,
    HOST,
    MINIMAL,
    PRIVILEGED,
    REFERENCE,
    changed,
)
from tests.strategies import examples, plans


def score(request: dict[str, Any], surroundings: Surroundings = CONFINED) -> Exposure:
    return score_request(request, surroundings)


def row(exposure: Exposure, name: str) -> Row:
    (found,) = (row for row in exposure.rows if row.id == name)
    return found


def badness(request: dict[str, Any], name: str, surroundings: Surroundings = CONFINED) -> float:
    (kind,) = (kind for kind in ROWS if kind.id == name)
    finding = kind.assess(ContainerRights.of(request, surroundings))
    assert isinstance(finding, Finding)
    return finding.badness


@pytest.mark.parametrize(
    ("request_", "total", "word"),
    [
        (DOCKER_DEFAULT, 4.9, "Docker default"),
        (AMD_RECIPE, 6.6, "exposed"),
        (changed(AMD_RECIPE, NetworkMode="host"), 6.9, "exposed"),
        (MINIMAL, 0.7, "tight"),
        (changed(MINIMAL, CapAdd=["SYS_NICE"]), 0.8, "tight"),
        (changed(MINIMAL, CapAdd=["CAP_SYS_PTRACE"]), 1.0, "tight"),
        (changed(MINIMAL, SecurityOpt=["no-new-privileges", "seccomp=unconfined"]), 2.0, "good"),
        (PRIVILEGED, 10.0, "host-equivalent"),
    ],
)
def test_reference_points(request_: dict[str, Any], total: float, word: str) -> None:
    """The trial values that the table was made with."""
    found = score(request_)

    assert (found.total, found.band, found.version) == (total, word, VERSION)


def test_the_baseline_is_tight() -> None:
    assert (REFERENCE["baseline"]().total, REFERENCE["baseline"]().band) == (0.9, "tight")


def test_gains_of_the_usual_recipe() -> None:
    """What dropping one right of it would win, the cheapest first."""
    gains = {row.id: row.gain for row in score(AMD_RECIPE).rows if row.gain >= 0.18}

    assert gains == {
        "user_root": 0.71, "seccomp": 0.71, "cap_ptrace": 0.36, "no_new_privileges": 0.31,
        "ipc": 0.27, "cap_setid": 0.22, "network": 0.21, "devices": 0.21, "cap_dac": 0.19,
        "rootfs": 0.18,
    }  # fmt: skip


def test_contributions_add_up_to_the_total_and_are_sorted() -> None:
    for request in (DOCKER_DEFAULT, AMD_RECIPE, MINIMAL, PRIVILEGED):
        found = score(request)
        parts = [row.contribution for row in found.rows]

        assert sum(parts) == pytest.approx(found.total, abs=0.15)
        assert parts == sorted(parts, reverse=True)


@pytest.mark.parametrize(
    ("total", "word"),
    [(0, "tight"), (1, "tight"), (1.1, "good"), (3, "good"), (3.1, "Docker default"), (5, "Docker default"),
     (5.1, "exposed"), (7, "exposed"), (7.1, "unsafe"), (8.9, "unsafe"), (9, "host-equivalent"), (10, "host-equivalent")],
)  # fmt: skip
def test_bands(total: float, word: str) -> None:
    assert word == band(total)


ROOT = {**MINIMAL, "User": "0:0"}


@pytest.mark.parametrize(
    ("request_", "floor"),
    [
        (changed(MINIMAL, Privileged=True), 10),
        (changed(MINIMAL, Binds=["/var/run/docker.sock:/s:ro"]), 10),
        (changed(MINIMAL, Mounts=[{"Type": "bind", "Source": "/run", "Target": "/r"}]), 10),
        (changed(MINIMAL, Mounts=[{"Type": "bind", "Source": "/", "Target": "/h"}]), 10),
        (changed(ROOT, CapAdd=["SYS_MODULE"]), 10),
        (changed(ROOT, DeviceCgroupRules=["c *:* rwm"]), 10),
        (changed(ROOT, DeviceCgroupRules=["a"]), 10),
        (changed(MINIMAL, Devices=[{"PathOnHost": "/dev/mem"}]), 9.5),
        (changed(MINIMAL, Devices=[{"PathOnHost": "/dev/sda"}]), 9.5),
        (changed(ROOT, CapAdd=["SYS_ADMIN"]), 9),
        (changed(ROOT, CapAdd=["SYS_RAWIO"]), 9),
        (changed(ROOT, CapAdd=["BPF"]), 9),
        (changed(ROOT, PidMode="host"), 9),
        (changed(ROOT, CapAdd=["DAC_READ_SEARCH"]), 8.5),
        (changed(ROOT, MaskedPaths=[], ReadonlyPaths=[]), 8),
    ],
)
def test_floors(request_: dict[str, Any], floor: float) -> None:
    found = score(request_)

    assert found.total == floor
    assert found.floor is not None
    assert found.floor.value == floor


@pytest.mark.parametrize(
    "request_",
    [
        changed(MINIMAL, CapAdd=["SYS_ADMIN", "SYS_MODULE", "BPF", "DAC_READ_SEARCH"]),
        changed(MINIMAL, PidMode="host"),
        changed(MINIMAL, MaskedPaths=[], ReadonlyPaths=[]),
        changed(MINIMAL, DeviceCgroupRules=["c *:* rwm"]),
        DOCKER_DEFAULT,
    ],
)
def test_no_floor_without_root(request_: dict[str, Any]) -> None:
    """What is a floor for root only unlocks or shows something to another user."""
    assert score(request_).floor is None


def test_the_right_behind_a_floor_is_the_one_to_drop() -> None:
    """Others gain nothing while it holds."""
    found = score(changed(MINIMAL, Binds=["/var/run/docker.sock:/s"]))

    assert row(found, "engine_socket").gain > 6
    assert row(found, "seccomp").gain == 0


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        ({}, "seccomp", 0.2),
        ({"SecurityOpt": ["seccomp=unconfined"]}, "seccomp", 1),
        ({"CapAdd": ["SYS_ADMIN"]}, "seccomp", 0.8),
        ({"SecurityOpt": ['seccomp={"defaultAction":"SCMP_ACT_ERRNO"}']}, "seccomp", 0.1),
        ({"SecurityOpt": ['seccomp={"defaultAction":"SCMP_ACT_ALLOW"}']}, "seccomp", 1),
        ({"SecurityOpt": ["seccomp={"]}, "seccomp", 1),
        ({"PidMode": "container:x"}, "pid", 0.3),
        ({"PidMode": "host"}, "pid", 1),
        ({"NetworkMode": "host"}, "network", 1),
        ({"NetworkMode": "container:x"}, "network", 0.4),
        ({"NetworkMode": "mine"}, "network", 0.4),
        ({"NetworkMode": "none"}, "network", 0),
        ({"Binds": ["/etc:/etc:rw"]}, "binds", 1),
        ({"Binds": ["/etc:/etc:ro"]}, "binds", 0.4),
        ({"Binds": ["/srv/models:/m", "/srv/x:/x:ro"]}, "binds", 0.2),
        ({"Binds": ["data:/d"]}, "binds", 0.2),
        ({"SecurityOpt": ["apparmor=unconfined"]}, "lsm", 1),
        ({"SecurityOpt": ["label:disable"]}, "lsm", 1),
        ({"SecurityOpt": ["label=type:x"]}, "lsm", 0),
        ({"Devices": [{"PathOnHost": "/dev/kfd"}]}, "devices", 0.3),
        ({"Devices": [{"PathOnHost": "/dev/dri/card0"}]}, "devices", 0.6),
        ({"Devices": [{"PathOnHost": "/dev/kfd"}, {"PathOnHost": "/dev/infiniband/uverbs0"}]}, "devices", 0.5),
        ({"Devices": [{"PathOnHost": "/dev/fuse"}]}, "devices", 1),
        ({"DeviceRequests": [{"Driver": "cdi"}]}, "devices", 0.6),
        ({"DeviceCgroupRules": ["c 226:* rw"]}, "device_rules", 0.6),
        ({"DeviceCgroupRules": ["c 226:128 rw"]}, "device_rules", 0.3),
        ({"MaskedPaths": [], "ReadonlyPaths": []}, "masks", 1),
        ({"MaskedPaths": ["/proc/kcore"]}, "masks", 0.5),
        ({"ReadonlyPaths": ["/proc/sys"]}, "masks", 0.5),
        ({"IpcMode": "host"}, "ipc", 1),
        ({"IpcMode": "shareable"}, "ipc", 0.3),
        ({"GroupAdd": ["docker"]}, "groups", 1),
        ({"GroupAdd": ["992"]}, "groups", 0.1),
        ({"Binds": ["/srv:/srv:rshared"]}, "propagation", 1),
        ({"Tmpfs": {"/tmp": "rw,exec"}, "ReadonlyRootfs": True}, "rootfs", 0.2),
        ({"PidsLimit": -1}, "pids", 1),
        ({"Memory": 1}, "memory", 0),
        ({"CgroupnsMode": "host"}, "cgroup", 1),
        ({"Sysctls": {"net.core.somaxconn": "1"}}, "sysctls", 1),
        ({"UTSMode": "host"}, "uts", 1),
        ({"OomScoreAdj": -5}, "oom", 1),
        ({"OomKillDisable": True}, "oom", 1),
        ({"Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}]}, "memlock", 1),
        ({"CapAdd": ["IPC_LOCK"]}, "memlock", 1),
        ({"LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}}}, "log", 0),
        ({"LogConfig": {"Type": "journald"}}, "log", 0),
        ({"RestartPolicy": {"Name": "always"}}, "restart", 1),
        ({"RestartPolicy": {"Name": "on-failure"}}, "restart", 0),
        ({"CapDrop": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID"]}, "cap_dac", 0),
        ({"CapAdd": ["NET_ADMIN"]}, "cap_net", 1),
        ({"CapAdd": ["ALL"], "CapDrop": ["NET_ADMIN"]}, "cap_net", 0.5),
        ({"CapAdd": ["PERFMON"]}, "cap_perf", 1),
    ],
)  # fmt: skip
def test_rows(fields: dict[str, Any], name: str, expected: float) -> None:
    """A root container of Docker's defaults, with this in place."""
    assert badness(changed(DOCKER_DEFAULT, **fields), name) == pytest.approx(expected)


def test_a_capability_of_an_ordinary_user_counts_where_it_can_be_regained() -> None:
    """Half without no-new-privileges, nothing with it; effective for root."""
    user = {"User": "1000", "HostConfig": {"CapDrop": ["ALL"], "CapAdd": ["SYS_ADMIN"]}}
    sealed = changed(user, SecurityOpt=["no-new-privileges"])
    root = {**sealed, "User": "0"}

    contributions = [row(score(each), "cap_admin").contribution for each in (root, user, sealed)]

    assert contributions[0] > contributions[1] > contributions[2] == 0
    assert "has no effect for a user that is not root" in row(score(sealed), "cap_admin").sentence
    assert "through a setuid program" in row(score(user), "cap_admin").sentence


def test_an_lsm_that_the_host_lacks_is_not_applicable() -> None:
    no_lsm, unknown = Surroundings(lsm=False), Surroundings()

    assert not row(score(AMD_RECIPE, no_lsm), "lsm").applies
    assert not row(score(MINIMAL, unknown), "lsm").applies
    assert row(score(MINIMAL, Surroundings(lsm=True, engine_lsm=False)), "lsm").contribution > 0


def test_remapped_root_is_less_bad_and_opting_out_counts() -> None:
    remapped = Surroundings(lsm=True, engine_lsm=True, remapped=True)

    assert score(DOCKER_DEFAULT, remapped).total < score(DOCKER_DEFAULT).total
    opted_out = row(score(changed(MINIMAL, UsernsMode="host"), remapped), "user_namespace")
    assert (opted_out.applies, opted_out.contribution > 0) == (True, True)
    assert not row(score(MINIMAL), "user_namespace").applies


def test_an_internal_network_is_known_where_it_is_named() -> None:
    inside = Surroundings(lsm=True, engine_lsm=True, internal_networks=frozenset({"mine"}))

    assert badness(changed(DOCKER_DEFAULT, NetworkMode="mine"), "network", inside) == 0.15  # fmt: skip


def test_a_wide_profile_is_no_better_than_the_engines() -> None:
    calls = [f"call{n}" for n in range(400)]
    profile = {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": calls, "action": "SCMP_ACT_ALLOW"}]}  # fmt: skip
    wide = changed(DOCKER_DEFAULT, SecurityOpt=[f"seccomp={json.dumps(profile)}"])

    assert badness(wide, "seccomp") == 0.2


def test_the_cache_of_a_plan_is_its_own() -> None:
    """The same directory, mounted by a container that rocmrun did not make, is somebody's data."""
    made = plan()
    body = create_request(made, role="workload")
    own = score_plan(made, host(), ENGINE)

    assert "its own cache" in row(own, "binds").sentence
    assert row(score(body), "binds").contribution > row(own, "binds").contribution


def test_an_inspected_container_scores_as_its_request() -> None:
    record = {"Config": {"User": "1000:1000"}, "HostConfig": MINIMAL["HostConfig"]}

    assert score_inspected(record, CONFINED) == score(MINIMAL)


def test_cgroup_version_1_shows_the_hosts_cgroups_by_default() -> None:
    old = Surroundings.of(host(), ENGINE.__class__(kind="docker", version="", api_version="", address="", cgroup_version=1))  # fmt: skip

    assert row(score(DOCKER_DEFAULT, old), "cgroup").contribution > 0
    assert row(score(DOCKER_DEFAULT), "cgroup").contribution == 0


def test_every_capability_is_weighed_once_or_is_known_to_weigh_nothing() -> None:
    assert set(CAPABILITIES) == WEIGHED | WEIGHTLESS
    assert not WEIGHED & WEIGHTLESS
    assert set(CAPABILITIES) > DEFAULT_CAPABILITIES


def test_every_row_has_a_sentence_and_its_own_name() -> None:
    found = score(MINIMAL)

    assert len({kind.id for kind in ROWS}) == len(ROWS) == len(found.rows)
    assert all(re.fullmatch(r"\S.{8,}\S", row.sentence) for row in found.rows)


def options(request: dict[str, Any], but: str) -> list[str]:
    """Return the security options without one kind."""
    return [option for option in request["HostConfig"]["SecurityOpt"] if not option.startswith(but)]


WIDER: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "privileged": lambda c: changed(c, Privileged=True),
    "root": lambda c: {**c, "User": "0:0"},
    "host namespaces": lambda c: changed(c, **HOST, IpcMode="host"),
    "no filter": lambda c: changed(c, SecurityOpt=[*options(c, "seccomp"), "seccomp=unconfined"]),
    "new privileges": lambda c: changed(c, SecurityOpt=options(c, "no-new-privileges")),
    "all capabilities": lambda c: changed(c, CapAdd=["ALL"]),
    "writable": lambda c: changed(c, ReadonlyRootfs=False),
    "no limits": lambda c: changed(c, Memory=0, PidsLimit=0),
    "the engine's socket": lambda c: changed(c, Binds=["/run/docker.sock:/s"]),
}


@examples(60)
@given(made=plans(), name=st.sampled_from(sorted(WIDER)))
def test_a_wider_container_never_scores_lower(made: Plan, name: str) -> None:
    """A plan's request and the same with one right more."""
    request = create_request(made, role="workload")
    narrow, wide = score(request), score(WIDER[name](request))

    assert 0 <= narrow.total <= wide.total <= 10


def test_each_grant_that_weighs_something_is_seen() -> None:
    base = score_plan(plan(), host(), ENGINE).total
    for grant in ("seccomp:unconfined", "user:root", "pid:host", "ipc:host", "nnp:off", "masks:off", "rootfs:rw"):  # fmt: skip
        assert score_plan(plan(privileges(grant)), host(), ENGINE).total > base, grant


def test_group_root_counts_as_primary_group_too() -> None:
    assert badness({**MINIMAL, "User": "1000:0"}, "groups") == 1
    assert badness({**changed(MINIMAL, GroupAdd=[]), "User": "1000:1000"}, "groups") == 0


def test_it_is_plain_json() -> None:
    told = score(PRIVILEGED).to_json()

    assert (told["total"], told["floor"]["reason"]) == (10.0, "privileged")
