"""The table of a host's GPUs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rocmrun.console.host import host_lines
from rocmrun.core.host import HostFacts
from rocmrun.system.sysfs import read_host
from tests.hosts import MI210_X8, STRIX_HALO, FakeGpu, build_host, mi300x_partitions, refusing


def shown(host: HostFacts) -> list[str]:
    """Return the lines with single blanks."""
    return [" ".join(line.split()) for line in host_lines(host)]


def read(root: Path, gpus: Sequence[FakeGpu]) -> HostFacts:
    return read_host(build_host(root, gpus, cpu_nodes=2))


def test_the_numberings_stand_side_by_side(tmp_path: Path) -> None:
    """With a warning, since HIP's and amd-smi's differ here."""
    lines = shown(read(tmp_path, MI210_X8))

    assert "HIP amd-smi PCI address render node gfx VRAM NUMA owner and mode" in lines
    assert any(line.startswith("0 3 0000:63:00.0 renderD128 gfx90a 64 GiB 0 ") for line in lines)
    assert any(
        line.startswith("note: HIP and amd-smi number the GPUs differently") for line in lines
    )


def test_equal_orders_need_no_warning(tmp_path: Path) -> None:
    """One GPU has one order."""
    lines = shown(read(tmp_path, STRIX_HALO))

    assert any("gfx1151 APU 512 MiB" in line for line in lines)
    assert not any(line.startswith("note:") for line in lines)


def test_partitions_are_counted_against_addresses(tmp_path: Path) -> None:
    """Several rows of one card are said to be so."""
    lines = shown(read(tmp_path, mi300x_partitions(1, 4)))

    assert "note: 4 KFD GPU nodes, 1 PCI addresses" in lines
    assert any("0000:05:00.0 3 renderD131" in line for line in lines)


def test_hidden_gpus_have_a_row(tmp_path: Path) -> None:
    """Present, not permitted."""
    root = build_host(tmp_path, MI210_X8[:2])

    lines = shown(read_host(root, read=refusing("nodes/1/")))

    assert "- - - - - - - KFD node 1: hidden by the device cgroup" in lines


def test_no_gpu_says_what_was_looked_at(tmp_path: Path) -> None:
    """A card bound to another driver is named with it."""
    root = build_host(tmp_path, [FakeGpu(driver="vfio-pci", minor=0)])
    host = replace(read_host(root), gpus=())

    lines = shown(host)

    assert "no AMD GPU found. Looked at:" in lines
    assert "PCI bus 0000:05:00.0 0x74a1, driver vfio-pci" in lines


def test_wsl_is_told_apart() -> None:
    """It has no KFD; nothing is missing that could be installed."""
    assert any("this is WSL" in line for line in shown(HostFacts(wsl=True)))


def test_holders_are_named(tmp_path: Path) -> None:
    """Another process works on the GPU."""
    root = build_host(tmp_path, STRIX_HALO, holders={4321: [0]})

    assert "note: GPU 0 (gfx1151, 0000:c5:00.0) is held by process 4321" in shown(read_host(root))


def test_text_from_the_host_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    """A terminal must not obey a file of a copied tree."""
    host = replace(read(tmp_path, STRIX_HALO), os_name="[red]x[/]\x1b[31m", problems=("[b]bad",))

    lines = shown(host)

    assert any("[red]x[/]," in line for line in lines)
    assert "note: [b]bad" in lines
    assert not any("\x1b" in line for line in lines)
