"""Who may open what inside, by mode, owner, user, groups and engine; tests/docker/test_access.py asks a kernel."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.access import AccessForecast, forecast_access
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.path_facts import PathFacts
from rocmrun.core.plan import Plan, PlannedMount
from rocmrun.errors import DevicePermission, MountUnreadable
from tests.builders import ENGINE, KFD_GROUP, RENDER_GROUP, gpu, host, node, plan

ROOTLESS = replace(
    ENGINE,
    address="unix:///run/user/1000/docker.sock",
    security_options=("name=seccomp,profile=default", "name=rootless"),
)
REMAPPED = replace(ENGINE, security_options=("name=seccomp,profile=default", "name=userns"))
SOURCE = "/srv/models"


def forecast(
    made: Plan, *, facts: PathFacts | None = None, engine: EngineFacts | None = ENGINE, **where: Any
) -> AccessForecast:
    paths = {facts.path: facts} if facts else {}
    return forecast_access(made, where.get("host", host()), engine, paths, caller_uid=1000)


def source(
    mode: int,
    uid: int = 0,
    gid: int = 0,
    *,
    kind: Any = "directory",
    parent: int = 0o755,
    acl: bool = False,
) -> PathFacts:
    components = (("/", 0o755, 0, 0), ("/srv", parent, 0, 0), (SOURCE, mode, uid, gid))
    return PathFacts(path=SOURCE, kind=kind, real_path=SOURCE, components=components, acl=acl)  # fmt: skip


def mounting(*, read_only: bool = True, **changes: Any) -> Plan:
    mount = PlannedMount(target="/models", source=SOURCE, read_only=read_only)
    return plan().with_changes(mounts=(mount,), **changes)


def mount_of(facts: PathFacts, *, engine: EngineFacts | None = ENGINE, **changes: Any) -> Any:
    (found,) = forecast(mounting(**changes), facts=facts, engine=engine).mounts
    return found


def answers(found: AccessForecast) -> dict[str, str]:
    return {node.path: node.errno for node in found.nodes}


def test_the_planners_own_groups_open_every_node() -> None:
    found = forecast(plan())

    assert answers(found) == {"/dev/dri/renderD128": "0", "/dev/kfd": "0"}
    assert (found.uid, found.groups) == (1000, (KFD_GROUP, RENDER_GROUP, 1000))
    found.refuse()


def test_without_a_group_one_node_breaks_every_gpu() -> None:
    found = forecast(plan().with_changes(groups=(RENDER_GROUP,)))
    (closed,) = (node for node in found.nodes if node.errno != "0")

    assert (closed.path, closed.errno, closed.owner, closed.mode) == ("/dev/kfd", "EACCES", "0:44", "0660")  # fmt: skip
    assert "EACCES on one node breaks every GPU" in closed.sentence
    with pytest.raises(DevicePermission, match="uid 1000 may not open /dev/kfd"):
        found.refuse()


def test_a_node_for_reading_alone_hides_its_gpu() -> None:
    made = plan()
    devices = tuple(replace(d, permissions="r") if "render" in d.path else d for d in made.devices)
    found = forecast(made.with_changes(devices=devices))

    assert answers(found)["/dev/dri/renderD128"] == "EPERM"
    assert "hides this GPU" in found.nodes[0].sentence
    found.refuse()


def test_a_rootless_engine_has_no_device_cgroup_and_maps_every_owner() -> None:
    made = plan()
    devices = tuple(replace(d, permissions="r") for d in made.devices)
    open_host = host(
        [gpu(render_node=node("/dev/dri/renderD128", mode=0o666))], kfd=node("/dev/kfd")
    )
    found = forecast(made.with_changes(devices=devices), engine=ROOTLESS, host=open_host)

    assert answers(found) == {"/dev/dri/renderD128": "0", "/dev/kfd": "EACCES"}
    assert "maps ids" in found.nodes[1].sentence
    assert answers(forecast(made, engine=REMAPPED))["/dev/kfd"] == "EACCES"


def test_nodes_that_are_not_passed_are_hidden() -> None:
    made = plan({"gpus": {"select": ["index:0"]}}, host=host(2))
    found = forecast(made, host=host(2))

    assert found.hidden == ("/dev/dri/renderD129",)
    assert answers(forecast(made, host=host(0)))["/dev/kfd"] == "ENOENT"


def test_an_acl_is_named_and_does_not_count_for_a_node() -> None:
    """The engine copies the mode, whose group bits are the ACL's mask, and not the ACL."""
    marked = host([gpu(render_node=node("/dev/dri/renderD128", acl=True))])
    found = forecast(plan(host=marked), host=marked)

    assert answers(found)["/dev/dri/renderD128"] == "0"
    assert "ACL does not count" in found.nodes[0].sentence


@pytest.mark.parametrize(
    ("facts", "read_only", "expected"),
    [
        (source(0o755), True, "0"),
        (source(0o755), False, "EACCES"),
        (source(0o777), False, "0"),
        (source(0o750, gid=RENDER_GROUP), True, "0"),
        (source(0o750, gid=RENDER_GROUP), False, "EACCES"),
        (source(0o750, gid=2000), True, "EACCES"),
        (source(0o700, uid=1000), False, "0"),
        (source(0o070, uid=1000, gid=RENDER_GROUP), True, "EACCES"),
        (source(0o744), True, "EACCES"),
        (source(0o711), True, "EACCES"),
        (source(0o644, kind="file"), True, "0"),
        (source(0o644, kind="file"), False, "EACCES"),
        (source(0o755, parent=0o700), True, "0"),
    ],
)
def test_a_mount_source(facts: PathFacts, read_only: bool, expected: str) -> None:  # noqa: FBT001
    """The class that fits decides; parents are the engine's to walk, which is root."""
    assert mount_of(facts, read_only=read_only).errno == expected


def test_every_component_is_listed_with_who_must_pass_it() -> None:
    found = mount_of(source(0o700))

    assert [(part.path, part.asks, part.needs, part.errno) for part in found.components] == [
        ("/", "engine", "x", "0"),
        ("/srv", "engine", "x", "0"),
        (SOURCE, "container", "rx", "EACCES"),
    ]
    assert found.component == SOURCE


@pytest.mark.parametrize(
    ("facts", "read_only", "fixes"),
    [
        (source(0o750, gid=2000), True, ('[container] groups = ["path:/models"]', "setfacl -R -m u:1000:rX /srv/models")),
        (source(0o700, uid=7, gid=8), True, ('[container] user = "7:8"', "setfacl -R -m u:1000:rX /srv/models")),
        (source(0o755, uid=7, gid=8), False, ('mode = "ro" for /models, if it is only read', '[container] user = "7:8"', "setfacl -R -m u:1000:rwX /srv/models")),
        (source(0o770), False, ("setfacl -R -m u:1000:rwX /srv/models",)),
    ],
)  # fmt: skip
def test_fixes_give_this_user_this_right(
    facts: PathFacts, read_only: bool, fixes: tuple[str, ...]  # noqa: FBT001
) -> None:  # fmt: skip
    """The narrowest first; root, as user or group, and a mode for everybody are never among them."""
    assert mount_of(facts, read_only=read_only).fixes == fixes


def test_the_first_fix_works() -> None:
    facts = source(0o750, gid=2000)

    assert mount_of(facts, groups=(2000,)).errno == "0"


def test_an_acl_decides_over_a_source_and_is_not_guessed() -> None:
    assert mount_of(source(0o770, acl=True)).errno is None
    assert "has an ACL" in mount_of(source(0o770, acl=True)).sentence
    assert mount_of(source(0o700, uid=1000, acl=True)).errno == "0"


def test_capabilities_count_for_root_alone() -> None:
    facts = source(0o700, uid=7)

    assert mount_of(facts, uid=0, gid=0).errno == "EACCES"
    assert mount_of(facts, uid=0, gid=0, cap_add=("DAC_OVERRIDE",)).errno == "0"
    assert mount_of(facts, uid=0, gid=0, cap_add=("DAC_READ_SEARCH",)).errno == "0"
    assert (
        mount_of(facts, uid=0, gid=0, cap_add=("DAC_READ_SEARCH",), read_only=False).errno
        == "EACCES"
    )
    assert mount_of(facts, cap_add=("DAC_OVERRIDE",)).errno == "EACCES"  # fmt: skip


def test_a_rootless_engine_walks_as_its_user() -> None:
    """It must enter every parent; who owns the source by way of mapped ids is not known."""
    closed = source(0o755, parent=0o700)
    found = mount_of(closed, engine=ROOTLESS)

    assert (found.errno, found.component) == ("EACCES", "/srv")
    assert "the rootless engine may not enter it" in found.sentence
    assert found.fixes == ("give the engine's user the right to enter: setfacl -m u:USER:x /srv",)
    assert mount_of(source(0o755, parent=0o710), engine=ROOTLESS).errno is None
    assert mount_of(source(0o755), engine=ROOTLESS).errno == "0"
    assert mount_of(source(0o700, uid=100999), engine=ROOTLESS).errno is None
    assert mount_of(source(0o700), engine=REMAPPED).errno is None
    elsewhere = replace(ROOTLESS, address="tcp://127.0.0.1:1")
    assert mount_of(closed, engine=elsewhere).component == "/srv"


def test_unreadable_mounts_are_refused_at_once_with_component_and_fix() -> None:
    other = PathFacts(path="/data", kind="directory", components=(("/data", 0o700, 0, 0),))
    mounts = (
        PlannedMount(target="/data", source="/data"),
        PlannedMount(target="/models", source=SOURCE),
    )
    made = plan().with_changes(mounts=mounts)
    paths = {"/data": other, SOURCE: source(0o750, gid=2000)}
    found = forecast_access(made, host(), ENGINE, paths, caller_uid=1000)

    with pytest.raises(MountUnreadable) as caught:
        found.refuse()

    assert caught.value.exit_code == 8
    assert [detail.split(":")[0] for detail in caught.value.details] == [
        "/data → /data",
        "/srv/models → /models",
    ]
    assert "/srv/models needs rx, mode 0750" in caught.value.details[1]
    assert caught.value.hint == "setfacl -R -m u:1000:rX /data"


def test_the_cache_volumes_and_unknown_sources_are_not_judged() -> None:
    """The cache is made for the user; a volume is the engine's; what was not looked at is not known."""
    volume = PlannedMount(target="/v", source=SOURCE, kind="volume")

    assert forecast(plan(), facts=source(0o700)).mounts == ()
    assert forecast(plan().with_changes(mounts=(volume,)), facts=source(0o700)).mounts == ()
    assert forecast(mounting()).mounts == ()


def test_the_forecast_is_plain_json() -> None:
    found = forecast(mounting(), facts=source(0o700)).to_json()

    assert found["nodes"][1]["errno"] == "0"
    assert found["mounts"][0]["components"][2]["errno"] == "EACCES"
