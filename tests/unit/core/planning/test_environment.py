"""The environment: writable places, one name, the right GPUs, and the profile's own words last."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core import baseline
from rocmrun.core.run import PathOwner
from tests.builders import IMAGE, host, node, plan, privileges

CPU = {"gpus": {"select": ["none"]}, "accelerator": "cpu"}


def environment(profile: dict[str, Any] | None = None, **changes: Any) -> dict[str, str]:
    return dict(plan(profile, **changes).env)


def baking(**variables: str) -> Any:
    return replace(IMAGE, env=tuple(variables.items()))


def test_every_cache_is_below_home() -> None:
    values = environment()

    assert values["HOME"] == "/home/rocmrun"
    assert {values[name] for name in baseline.CACHE_VARIABLES} == {
        f"/home/rocmrun/{path}" for path in baseline.CACHE_VARIABLES.values()
    }
    assert (values["TMPDIR"], values["USER"], values["LOGNAME"]) == ("/tmp", "rocmrun", "rocmrun")


def test_without_a_network_libraries_are_told_to_stay_on_loopback() -> None:
    """Without these torchrun hangs and hubs are asked until they time out."""
    assert baseline.OFFLINE_VARIABLES.items() <= environment().items()

    connected = environment({"container": {"network": "bridge"}})
    assert not baseline.OFFLINE_VARIABLES.keys() & connected.keys()


def test_infiniband_is_switched_off_where_none_is_passed() -> None:
    uverbs = host(1, devices=(node("/dev/infiniband/uverbs0"),))

    assert environment()["NCCL_IB_DISABLE"] == "1"
    granted = environment(privileges("device:/dev/infiniband/uverbs0:rw"), host=uverbs)
    assert "NCCL_IB_DISABLE" not in granted


@pytest.mark.parametrize("name", baseline.INDEX_VARIABLES)
@pytest.mark.parametrize("baked", ["", "0", "3,1", "GPU-abc"])
def test_a_baked_list_of_gpus_becomes_the_list_of_what_is_passed(name: str, baked: str) -> None:
    """It cannot be unset from outside, and an empty one hides every GPU."""
    made = plan(host=host(2), image_facts=baking(**{name: baked}))

    assert dict(made.env)[name] == "0,1"
    assert made.notes == (
        f'the image bakes {name}="{baked}": set to "0,1", the devices that are passed',
    )


def test_a_list_that_is_right_already_needs_no_word() -> None:
    assert plan(host=host(2), image_facts=baking(HIP_VISIBLE_DEVICES="0,1")).notes == ()


def test_a_job_without_gpus_sees_none() -> None:
    assert (
        environment(CPU, image_facts=baking(HIP_VISIBLE_DEVICES="0"))["HIP_VISIBLE_DEVICES"] == "-1"
    )


def test_nvidia_nodes_are_counted_as_devices() -> None:
    nodes = tuple(node(f"/dev/nvidia{number}", mode=0o666) for number in (0, 1, "ctl"))
    tables = {
        **CPU,
        "accelerator": "cuda",
        "devices": [{"path": "/dev/nvidia*", "reason": "the GPUs"}],
    }

    values = environment(
        tables, host=host(0, devices=nodes), image_facts=baking(CUDA_VISIBLE_DEVICES="")
    )

    assert values["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_what_vendors_runtimes_read_is_switched_off() -> None:
    """They would add devices that the plan does not name."""
    values = environment(
        image_facts=baking(AMD_VISIBLE_DEVICES="all", NVIDIA_VISIBLE_DEVICES="all")
    )

    assert (values["AMD_VISIBLE_DEVICES"], values["NVIDIA_VISIBLE_DEVICES"]) == ("none", "void")


def test_nothing_is_said_about_variables_that_the_image_does_not_bake() -> None:
    names = {*baseline.INDEX_VARIABLES, *baseline.RUNTIME_VARIABLES, "PATH"}

    assert not names & environment().keys()
    assert not names & environment(image_facts=None).keys()


@pytest.mark.parametrize(
    ("baked", "expected"),
    [
        ("/root/.local/bin:/usr/bin:/root", "/usr/bin"),
        ("/usr/bin:/rooted/bin", None),
        ("", None),
    ],
)
def test_path_loses_what_the_user_cannot_enter(baked: str, expected: str | None) -> None:
    made = plan(image_facts=baking(PATH=baked))

    assert dict(made.env).get("PATH") == expected
    assert bool(made.notes) == (expected is not None)


def test_root_keeps_its_own_path() -> None:
    assert "PATH" not in environment(privileges("user:root"), image_facts=baking(PATH="/root/bin"))


def test_the_profile_has_the_last_word() -> None:
    values = environment(
        {"container": {"env": {"HOME": "/x", "HIP_VISIBLE_DEVICES": "1", "A": ""}}},
        image_facts=baking(HIP_VISIBLE_DEVICES="0"),
    )

    assert (values["HOME"], values["HIP_VISIBLE_DEVICES"], values["A"]) == ("/x", "1", "")


@pytest.mark.parametrize(
    ("owners", "kept"),
    [
        ([(0o755, 0, 0)], True),
        ([(0o700, 0, 0)], False),
        ([(0o755, 0, 0), (0o750, 0, 1000)], True),
        ([(0o755, 0, 0), (0o750, 0, 44)], True),
        ([(0o755, 0, 0), (0o750, 0, 7)], False),
        ([(0o700, 1000, 0)], True),
        ([(0o077, 1000, 0)], False),
        ([], True),
    ],
)
def test_an_entry_of_the_path_stays_where_the_user_may_enter(
    owners: list[tuple[int, int, int]], *, kept: bool
) -> None:
    """By the owner, the groups that the plan gives, or everybody: as the kernel asks, class by class."""
    way = tuple(PathOwner(mode=mode, uid=uid, gid=gid) for mode, uid, gid in owners)

    made = plan(image_facts=baking(PATH="/opt/x:/usr/bin"), search_path={"/opt/x": way})

    assert dict(made.env).get("PATH") == (None if kept else "/usr/bin")
    assert any("cannot enter: /opt/x" in note for note in made.notes) == (not kept)


def test_what_was_looked_up_counts_also_below_root() -> None:
    """An image may have opened /root on purpose."""
    opened = {"/root/bin": (PathOwner(mode=0o755, uid=0, gid=0),)}

    assert "PATH" not in environment(image_facts=baking(PATH="/root/bin"), search_path=opened)
