"""Catalogue items out of a profile and back into it."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from rocmrun.core.plan import Plan
from rocmrun.core.planning.planner import make_plan
from rocmrun.core.privilege_sides import (
    Asked,
    items_of,
    realised,
    recipe_items,
    space_of,
    with_items,
    with_tmpfs,
    without_smaller,
)
from rocmrun.core.profile.model import Profile
from rocmrun.core.profile.parse import parse_profile
from tests.builders import granted, host, node, privileges, request

MIB, GIB = 1024**2, 1024**3
NODES = (node("/dev/infiniband/uverbs0", gid=77), node("/dev/infiniband/uverbs1", gid=77))


def profile(**tables: object) -> Profile:
    return parse_profile({"image": {"ref": "example.com/rocm/torch:1"}, **tables})


def asked(found: Profile) -> Asked:
    return items_of(found, host(devices=NODES), shm_baseline=2 * GIB)


def planned(found: Profile, items: set[str]) -> Plan:
    base = request(host=host(devices=NODES))
    return make_plan(replace(base, profile=with_items(found, items, asked(found))))


def test_every_item_of_a_profile_is_found() -> None:
    """Privileges, nodes one by one, groups, the network, and a /dev/shm above the default."""
    found = asked(
        profile(
            container={"network": "bridge", "shm_size": "4GiB", "groups": [5]},
            devices=[{"path": "/dev/infiniband/uverbs*", "reason": "RDMA"}],
            **privileges("rootfs:rw", "cap:SYS_NICE"),
        )
    )

    assert (
        "cap:SYS_NICE", "device:/dev/infiniband/uverbs0:rw", "device:/dev/infiniband/uverbs1:rw",
        "group:5", "network:bridge", "rootfs:rw", f"shm:{4 * GIB}",
    ) == found.items  # fmt: skip
    assert found.reasons["rootfs:rw"] == "the test asks"


def test_a_bridge_with_ports_and_a_small_shm_are_the_jobs() -> None:
    """Neither varies: ports need the bridge, and a size below the default takes away."""
    found = profile(
        container={"network": "bridge", "ports": ["127.0.0.1:8000:8000"], "shm_size": "64MiB"}
    )

    assert asked(found).items == ()
    bare = with_items(found, (), asked(found))
    assert bare.container.network == "bridge"
    assert found.container.shm_size == bare.container.shm_size


def test_all_items_put_back_give_the_profiles_own_rights() -> None:
    """The permissive side is the profile as written."""
    tables = {
        "container": {"network": "bridge", "shm_size": "4GiB"},
        "devices": [{"path": "/dev/infiniband/uverbs0", "reason": "RDMA"}],
        **privileges("rootfs:rw", "seccomp:unconfined", "ulimit:memlock=-1"),
    }
    found = profile(**tables)

    again = planned(found, set(asked(found).items))

    assert sorted(granted(make_plan(request(tables, host=host(devices=NODES))))) == sorted(
        granted(again)
    )


def test_without_items_the_baseline_is_left() -> None:
    """Not one grant more than a profile that asks for nothing."""
    found = profile(container={"network": "host"}, **privileges("network:host", "rootfs:rw"))

    assert granted(make_plan(request(host=host(devices=NODES)))) == granted(planned(found, set()))


def test_a_tmpfs_that_is_no_part_of_the_job_is_an_item() -> None:
    """With its size, beside what the job has; a plan grants it, writable root or not."""
    found = profile(container={"tmpfs": {"/scratch": "1GiB"}})
    offered = replace(asked(found), tmpfs={"tmpfs:/app/state": 32 * MIB})

    for items in ({"tmpfs:/app/state"}, {"tmpfs:/app/state", "rootfs:rw"}):
        held = with_items(found, items, offered)
        plan = make_plan(replace(request(), profile=held))
        sizes = {path: size.text for path, size in held.container.tmpfs.items()}
        assert sizes == {"/scratch": "1GiB", "/app/state": "32MiB"}
        assert items <= set(granted(plan))
    assert with_items(found, (), offered).container.tmpfs == found.container.tmpfs


def test_a_minimal_profile_keeps_its_tmpfs_where_the_job_has_nothing() -> None:
    """The job's own mounts, its tmpfs and the baseline's come first."""
    job = profile(
        mounts=[{"source": "/srv", "target": "/data/in"}], container={"tmpfs": {"/a": "1MiB"}}
    )
    sizes = {"/a": "2MiB", "/b": "3MiB", "/data": "4MiB", "/tmp": "5MiB"}
    minimal = profile(container={"tmpfs": sizes}, **privileges("rootfs:rw"))

    found = with_tmpfs(asked(minimal), minimal, job)

    assert found.items == ("rootfs:rw", "tmpfs:/b")
    assert found.tmpfs == {"tmpfs:/b": 3 * MIB}


def test_of_several_sizes_the_largest_counts() -> None:
    """Whatever else is there stays."""
    assert without_smaller(["shm:9", "shm:10", "ipc:host"]) == {"shm:10", "ipc:host"}


def test_a_set_comes_to_its_strongest_members() -> None:
    """Of a chain one is left; for root a rule becomes its capability."""
    assert realised(["network:bridge", "network:host"]) == ("network:host",)
    assert realised(["seccomp:+mempolicy", "seccomp:unconfined"]) == ("seccomp:unconfined",)
    assert realised(["seccomp:+mempolicy", "user:root"]) == ("cap:SYS_NICE", "user:root")
    assert realised(["device:/dev/kfd:rw", "device:/dev/kfd:rwm"]) == ("device:/dev/kfd:rwm",)
    assert realised(["shm:2", "shm:4"]) == ("shm:4",)
    assert realised(["ipc:host", "ipc:shareable", "shm:4"]) == ("ipc:host",)


ITEMS = st.sets(
    st.sampled_from(
        (
            "network:bridge",
            "network:host",
            "ipc:host",
            "ipc:shareable",
            "seccomp:unconfined",
            "seccomp:+mempolicy",
            "seccomp:+pidfd",
            "cap:SYS_NICE",
            "cap:SYS_PTRACE",
            "rootfs:rw",
            "nnp:off",
            "user:root",
            "pid:host",
            "masks:off",
            "ulimit:memlock=-1",
            f"shm:{3 * GIB}",
            f"shm:{4 * GIB}",
            "group:5",
            "device:/dev/infiniband/uverbs0:rw",
            "device:/dev/infiniband/uverbs0:rwm",
        )
    )
)


@settings(max_examples=50)
@given(items=ITEMS)
def test_any_set_of_items_is_a_plan_with_exactly_these_rights(items: set[str]) -> None:
    """What is granted beyond the bare job is what the set comes to, with what belongs to it, and nothing else."""
    found = profile(container={"shm_size": "4GiB"})
    bare = set(granted(planned(found, set())))

    plan = planned(found, items)

    held = set(realised(items))
    more = {what for what in set(granted(plan)) - bare if not what.startswith("shm:")}
    with_it = {"group:77"} if any("uverbs" in item for item in held) else set()
    with_it |= {"label:disable"} if {"ipc:host", "pid:host"} & held else set()
    assert {item for item in held if not item.startswith("shm:")} <= more
    assert more <= held | with_it


def test_the_space_prefers_the_mild_and_offers_what_is_narrower() -> None:
    """Rules before the capability before no filter; half sizes; root is dropped before what cures it."""
    space = space_of(
        ["seccomp:unconfined", f"shm:{8 * GIB}", "user:root", "cap:DAC_OVERRIDE"],
        [],
        shm_baseline=2 * GIB,
    )

    assert (
        f"shm:{4 * GIB}", f"shm:{8 * GIB}", "seccomp:+mempolicy", "seccomp:+pidfd", "cap:DAC_OVERRIDE",
        "seccomp:unconfined", "user:root",
    ) == space.elements  # fmt: skip
    assert ("user:root", "cap:DAC_OVERRIDE") in space.pairs
    assert "seccomp:+mempolicy" not in space.asked


def test_what_the_minimal_side_has_is_not_searched() -> None:
    """With root on both sides a rule is no way, and no pair holds."""
    space = space_of(
        ["user:root", "seccomp:unconfined", "rootfs:rw"], ["user:root"], shm_baseline=GIB
    )

    assert {"rootfs:rw", "seccomp:unconfined", "cap:SYS_NICE", "cap:SYS_PTRACE"} == set(
        space.elements
    )
    assert frozenset() == space.pairs


def test_amds_line_brings_every_node_of_a_gpu_host() -> None:
    """Card nodes and render nodes, with mknod; without GPUs none."""
    facts = host(1, card_nodes=(node("/dev/dri/card0", gid=44),))
    gpus = make_plan(request(host=facts)).gpus

    items = recipe_items(facts, gpus)

    assert {"device:/dev/dri/card0:rwm", "device:/dev/dri/renderD128:rwm", "device:/dev/kfd:rwm"} <= set(items)  # fmt: skip
    assert not [item for item in recipe_items(facts, ()) if item.startswith("device:")]


def test_the_other_vendors_gpus_are_the_jobs() -> None:
    """Their nodes stand under [[devices]]; a probe would pass on fewer."""
    devices = [{"path": "/dev/nvidia0", "reason": "GPU"}, {"path": "/dev/infiniband/uverbs0", "reason": "RDMA"}]  # fmt: skip
    found = profile(accelerator="cuda", devices=devices)

    assert asked(found).items == ("device:/dev/infiniband/uverbs0:rw",)
    assert [d.path for d in with_items(found, (), asked(found)).devices] == ["/dev/nvidia0"]
