"""Selectors name GPUs exactly, or say what there is."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.host import DeviceNode, Gpu
from rocmrun.core.selection import FORMS, is_selector, select_gpus
from rocmrun.errors import DevicesMissing, GpuSelection, UsageError
from rocmrun.system.sysfs import read_host
from tests.hosts import (
    IGPU_AND_DGPU,
    MI210_X8,
    MI300A,
    MIXED_ARCHITECTURES,
    STRIX_HALO,
    build_host,
    mi300x_partitions,
)


def gpu(index: int, **facts: object) -> Gpu:
    """Return a discrete GPU with a render node; *facts* change it."""
    minor = 128 + index
    path = f"/dev/dri/renderD{minor}"
    node = DeviceNode(path=path, host_path=path, mode=0o660, uid=0, gid=992, major=226, minor=minor)
    plain = Gpu(
        index=index,
        node=index + 1,
        gfx="gfx942",
        apu=False,
        pci_address=f"0000:{16 * (index + 1):02x}:00.0",
        unique_id=f"{0xABC0 + index:016x}",
        numa_node=index // 2,
        render_minor=minor,
        render_node=node,
    )
    return replace(plain, **facts)  # type: ignore[arg-type]  # the test names Gpu's own fields


FOUR = tuple(gpu(index) for index in range(4))
IGPU = gpu(4, gfx="gfx1036", apu=True, pci_address="0000:7c:00.0", unique_id=None)


def indices(selectors: Sequence[str], gpus: Sequence[Gpu]) -> list[int]:
    return [selected.index for selected in select_gpus(selectors, gpus).selected]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("index:2", [2]),
        ("pci:0000:20:00.0", [1]),
        ("pci:20:00.0", [1]),
        ("pci:0:20:0.0", [1]),
        ("uuid:GPU-000000000000abc3", [3]),
        ("uuid:000000000000ABC3", [3]),
        ("uuid:0xabc3", [3]),
        ("numa:1", [2, 3]),
        ("arch:gfx942", [0, 1, 2, 3]),
        ("render:129", [1]),
        ("discrete", [0, 1, 2, 3]),
        ("all", [0, 1, 2, 3]),
        ("none", []),
    ],
)
def test_each_form_names_its_gpus(selector: str, expected: list[int]) -> None:
    """Every spelling of the same thing is taken."""
    assert indices([selector], FOUR) == expected


def test_several_selectors_add_up_in_kfd_order() -> None:
    """Each GPU once, whatever the order of asking."""
    assert indices(["render:131", "index:0", "pci:10:00.0"], FOUR) == [0, 3]


def test_no_selector_selects_nothing() -> None:
    """An empty list asks for no GPU."""
    assert indices([], FOUR) == []


@pytest.mark.parametrize(
    "selector",
    [
        "",
        "0",
        "gpu:0",
        "index:",
        "index:x",
        "index:-1",
        "index:1e1",
        "pci:63",
        "uuid:GPU-xyz",
        "arch:mi300",
        "arch:gfx942:sramecc+",
        "render:renderD128",
        "partition:0",
        "All",
        "discrete:1",
    ],
)
def test_a_wrong_form_is_a_usage_error_with_the_right_ones(selector: str) -> None:
    """Nothing is guessed from a misspelt selector."""
    with pytest.raises(UsageError, match="is no GPU selector") as caught:
        select_gpus([selector], FOUR)

    assert caught.value.details == FORMS


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("all", True), ("discrete", True), ("pci:63:00.0", True), ("numa:x", False), ("gpu:0", False)],
)
def test_forms_are_known_without_a_host(text: str, *, is_one: bool) -> None:
    """So that a profile can be checked anywhere."""
    assert is_selector(text) is is_one


def test_none_stands_alone() -> None:
    """It contradicts any other selector."""
    with pytest.raises(UsageError, match="none"):
        select_gpus(["none", "index:0"], FOUR)


@pytest.mark.parametrize(
    "selector",
    [
        "index:9",
        "pci:99:00.0",
        "pci:0001:10:00.0",
        "uuid:1",
        "numa:7",
        "arch:gfx90a",
        "render:200",
        "partition:0.0",
    ],
)
def test_an_unknown_gpu_lists_what_exists(selector: str) -> None:
    """With every name that would have worked."""
    with pytest.raises(GpuSelection, match=selector.replace(".", r"\.")) as caught:
        select_gpus([selector], FOUR)

    assert caught.value.details[0] == (
        "index:0 arch:gfx942 pci:0000:10:00.0 render:128 uuid:GPU-000000000000abc0 numa:0"
    )
    assert len(caught.value.details) == 4


def test_a_long_list_is_cut() -> None:
    """64 partitions do not flood the terminal."""
    with pytest.raises(GpuSelection) as caught:
        select_gpus(["index:99"], [gpu(index) for index in range(64)])

    assert len(caught.value.details) == 17
    assert caught.value.details[-1] == "and 48 more"


def test_an_address_without_domain_may_be_ambiguous() -> None:
    """Two domains, one bus number: the error lists both."""
    twins = (gpu(0, pci_address="0000:01:00.0"), gpu(1, pci_address="0001:01:00.0"))

    with pytest.raises(GpuSelection, match="more than one") as caught:
        select_gpus(["pci:01:00.0"], twins)

    assert len(caught.value.details) == 2
    assert indices(["pci:0001:01:00.0"], twins) == [1]


def test_an_id_that_two_cards_carry_is_ambiguous() -> None:
    """Ids are not keys by themselves."""
    twins = (gpu(0, unique_id="00000000000000aa"), gpu(1, unique_id="00000000000000aa"))

    with pytest.raises(GpuSelection, match="more than one"):
        select_gpus(["uuid:aa"], twins)


def test_partitions_are_named_by_gpu_and_number(tmp_path: Path) -> None:
    """GPU counts physical ones; an address or id names a GPU with all its partitions."""
    gpus = read_host(build_host(tmp_path, mi300x_partitions(2), links=False)).gpus

    assert indices(["partition:0.3"], gpus) == [3]
    assert indices(["partition:1.7"], gpus) == [15]
    assert indices(["pci:27:00.0"], gpus) == list(range(8, 16))
    assert indices(["uuid:0xa105"], gpus) == list(range(8))
    with pytest.raises(GpuSelection):
        select_gpus(["partition:2.0"], gpus)
    with pytest.raises(GpuSelection):
        select_gpus(["partition:0.8"], gpus)


def test_a_client_igpu_stays_outside_beside_a_card(tmp_path: Path) -> None:
    """Left out by `all` and named; taken when it is asked for."""
    gpus = read_host(build_host(tmp_path, IGPU_AND_DGPU)).gpus

    selection = select_gpus(["all"], gpus)

    assert [selected.index for selected in selection.selected] == [0]
    ((igpu, reason),) = selection.left_out
    assert (igpu.gfx, reason) == ("gfx1036", "client iGPU; select pci:0000:7c:00.0 to use it")
    both = select_gpus(["all", "index:1"], gpus)
    assert ([found.index for found in both.selected], both.left_out) == ([0, 1], ())


def test_apus_are_selected_where_there_is_nothing_else(tmp_path: Path) -> None:
    """A laptop's own GPU, and MI300A, which is an APU but no client iGPU."""
    laptop = read_host(build_host(tmp_path / "a", STRIX_HALO)).gpus
    mi300a = read_host(build_host(tmp_path / "b", MI300A, cpu_nodes=4)).gpus

    assert indices(["all"], laptop) == [0]
    assert indices(["all"], mi300a) == [0, 1, 2, 3]
    assert indices(["discrete"], mi300a) == [0, 1, 2, 3]
    with pytest.raises(GpuSelection, match="discrete"):
        select_gpus(["discrete"], laptop)


def test_mixed_architectures_are_chosen_by_target(tmp_path: Path) -> None:
    """`all` takes every one of them: the support verdict is no filter."""
    gpus = read_host(build_host(tmp_path, MIXED_ARCHITECTURES)).gpus

    assert indices(["all"], gpus) == [0, 1, 2]
    assert indices(["arch:gfx1100"], gpus) == [1]
    assert indices(["arch:gfx90a", "arch:gfx942"], gpus) == [0, 2]


def test_an_index_is_hips_and_not_pcis(tmp_path: Path) -> None:
    """On a box whose KFD order is 63, 43, 03, … index 0 is 63:00.0."""
    gpus = read_host(build_host(tmp_path, MI210_X8, cpu_nodes=2)).gpus

    assert select_gpus(["index:0"], gpus).selected == select_gpus(["pci:63:00.0"], gpus).selected


def test_all_leaves_out_what_cannot_be_passed() -> None:
    """Hidden, without a minor, without a node: each with its own reason."""
    gpus = (
        FOUR[0],
        Gpu(index=1, node=2, permitted=False),
        gpu(2, render_minor=None, render_node=None),
        gpu(3, render_node=None),
    )

    selection = select_gpus(["all"], gpus)

    assert [found.index for found in selection.selected] == [0]
    assert [reason for _, reason in selection.left_out] == [
        "hidden from this process by its device cgroup",
        "the kernel names no render node for it",
        "/dev/dri/renderD131 is not there",
    ]


def test_all_of_nothing_usable_fails() -> None:
    """A job that asked for every GPU must not run without one."""
    with pytest.raises(DevicesMissing) as caught:
        select_gpus(["all"], [gpu(0, render_node=None)])

    assert caught.value.details == (
        "GPU 0 (gfx942, 0000:10:00.0): /dev/dri/renderD128 is not there",
    )


def test_all_of_no_gpu_is_none() -> None:
    """Whether that is right is for the profile's accelerator to say."""
    assert indices(["all"], []) == []
    with pytest.raises(GpuSelection, match="index:0") as caught:
        select_gpus(["index:0"], [])
    assert caught.value.details == ("this host shows no AMD GPU",)


def test_a_hidden_gpu_cannot_be_named() -> None:
    """Its index exists, but nothing opens it."""
    with pytest.raises(GpuSelection, match="device cgroup"):
        select_gpus(["index:1"], [FOUR[0], Gpu(index=1, node=2, permitted=False)])


def test_a_named_gpu_without_a_node_is_returned() -> None:
    """So that the plan can say what to do about the node."""
    assert indices(["index:0"], [gpu(0, render_node=None)]) == [0]


def test_an_igpu_alone_with_a_card_that_cannot_be_passed_is_taken() -> None:
    """There is nothing else to use."""
    assert indices(["all"], (gpu(0, render_node=None), IGPU)) == [4]


@given(st.text())
def test_any_selector_is_answered(selector: str) -> None:
    """GPUs, or one of our own errors."""
    try:
        selection = select_gpus([selector], (*FOUR, IGPU))
    except (UsageError, GpuSelection) as error:
        assert error.details  # noqa: PT017  # random text is mostly an error; both outcomes are right
    else:
        assert set(selection.selected) <= {*FOUR, IGPU}
