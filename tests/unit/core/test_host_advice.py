"""Advice about kernel and host comes only for the GPUs that AMD gives it for."""

import pytest

from rocmrun.core.host import DeviceNode, Gpu, HostFacts
from rocmrun.core.host_advice import advice, gpu_class, rdma_advice
from tests.builders import gpu, host


def told(facts: HostFacts) -> str:
    return "\n".join(evidence for evidence, _, _ in advice(facts))


def of(gfx: str, count: int = 1, *, apu: bool = False, **changes: object) -> HostFacts:
    gpus: list[Gpu] = [gpu(index, gfx=gfx, apu=apu) for index in range(count)]
    return host(gpus, **{"cmdline": "root=/dev/sda", "numa_balancing": True, **changes})


@pytest.mark.parametrize(
    ("gfx", "apu", "name"),
    [("gfx942", False, "MI300X"), ("gfx942", True, "MI300A"), ("gfx90a", False, "MI100/MI200"),
     ("gfx1100", False, "Radeon"), ("gfx1151", True, ""), ("gfx950", False, ""), ("gfx906", False, "")],
)  # fmt: skip
def test_classes_are_amds(gfx: str, *, apu: bool, name: str) -> None:
    """What its pages do not name has no class, and so no advice."""
    assert gpu_class(gpu(gfx=gfx, apu=apu)) == name


def test_an_mi300x_gets_all_three() -> None:
    """NUMA balancing, iommu=pt and pci=realloc=off."""
    said = told(of("gfx942"))

    assert "NUMA balancing" in said
    assert "iommu=pt" in said
    assert "pci=realloc=off" in said


def test_what_is_set_is_not_asked_for() -> None:
    """A host that follows AMD's page hears nothing."""
    assert told(of("gfx942", cmdline="iommu=pt pci=realloc=off", numa_balancing=False)) == ""


def test_an_mi300a_is_not_asked_for_iommu() -> None:
    """AMD leaves it off there."""
    assert "iommu" not in told(of("gfx942", apu=True))


def test_an_mi200_is_asked_for_iommu_alone() -> None:
    """Neither balancing nor PCI windows are on its page."""
    assert told(of("gfx90a")).count("\n") == 0
    assert "iommu=pt" in told(of("gfx90a"))


def test_one_radeon_gets_no_advice_and_two_one() -> None:
    """With several GPUs AMD's pages disagree: having neither setting is worth a word."""
    assert told(of("gfx1100")) == ""
    assert "IOMMU" in told(of("gfx1100", 2))
    assert told(of("gfx1100", 2, cmdline="amd_iommu=on")) == ""


def test_the_opposite_of_what_amd_asks_for_is_named() -> None:
    """pci=realloc is popular advice."""
    assert "opposite" in told(of("gfx942", cmdline="pci=realloc iommu=pt"))


def test_a_command_line_that_was_not_read_says_nothing() -> None:
    """Unknown is no fault."""
    assert told(of("gfx942", cmdline=None, numa_balancing=None)) == ""


def test_a_link_below_its_width_is_named() -> None:
    """Slow is not always software."""
    slow = host([gpu(0, gfx="gfx1100", link_width=4, link_width_max=16)], cmdline="")

    assert "4 of 16 lanes" in told(slow)


def node(path: str) -> DeviceNode:
    return DeviceNode(path=path, host_path=path, mode=0o666, uid=0, gid=0, major=231, minor=192)


ADAPTERS = (node("/dev/infiniband/uverbs0"), node("/dev/infiniband/uverbs1"))


@pytest.mark.parametrize(
    ("memlock", "words"),
    [
        (None, "the engine's default is 8 MiB"),
        (64 * 2**20, "is 64 MiB"),
        (32 * 2**30, ""),
        (-1, ""),
    ],
)
def test_rdma_wants_locked_memory(memlock: int | None, words: str) -> None:
    """No limit of the plan's own means the engine's, which is small."""
    said = [evidence for evidence, _, _ in rdma_advice(ADAPTERS, memlock)]

    assert len(said) == bool(words)
    assert all(
        words in evidence and "uverbs0 is passed, and 1 more" in evidence for evidence in said
    )


@pytest.mark.parametrize("devices", [(), (node("/dev/dri/card0"),)])
def test_without_rdma_a_limit_is_nobodys_business(devices: tuple[DeviceNode, ...]) -> None:
    """GPUs pin memory themselves."""
    assert list(rdma_advice(devices, None)) == []


def test_the_hint_is_the_grant_and_the_kind_has_a_page() -> None:
    """What rdma-train has."""
    (found,) = rdma_advice(ADAPTERS, None)

    assert "ulimit:memlock=-1" in found[1]
    assert found[2] == "memlock"
