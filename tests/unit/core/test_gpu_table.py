"""The table of GPUs that the package ships: whole, sourced, and read for one device at a time."""

import re
from typing import Any

import pytest

from rocmrun.core.gpu_table import GpuTable, parse_gpu_table, peaks_of
from rocmrun.core.plan import PlannedGpu
from rocmrun.system.package_data import read_gpu_table


@pytest.fixture(scope="module")
def table() -> GpuTable:
    """Every key of every row is one that the model knows, and has its type."""
    return parse_gpu_table(read_gpu_table())


def a_gpu(**facts: Any) -> PlannedGpu:
    known: dict[str, Any] = {"device_id": "0x74a1", "revision": "0x00", **facts}
    return PlannedGpu(
        index=0,
        gfx="gfx942",
        pci_address="0000:63:00.0",
        render_minor=128,
        unique_id=None,
        numa_node=0,
        partition=known.pop("partition", None),
        **known,
    )


def test_every_figure_names_its_source(table: GpuTable) -> None:
    unsourced = [
        model.pci_device_id
        for model in table.gpus
        if (any(model.peak_tflops.values()) and not model.peak_source)
        or (model.amd_gemm_floor_tflops and not model.amd_gemm_floor_tflops.get("source"))
    ]

    assert unsourced == []
    assert all(source.ref for source in table.sources)


def test_ids_are_spelled_as_the_host_is_read(table: GpuTable) -> None:
    ids = {model.pci_device_id for model in table.gpus}
    revisions = {revision for model in table.gpus for revision in model.pci_revisions}

    assert [name for name in ids if not re.fullmatch("0x[0-9a-f]{4}", name)] == []
    assert [name for name in revisions if not re.fullmatch("0x[0-9a-f]{2}", name)] == []


def test_a_whole_gpu_has_the_figures_of_its_model(table: GpuTable) -> None:
    peaks = peaks_of(a_gpu(compute_units=304), table)

    assert peaks is not None
    assert (peaks["model"], peaks["share_of_package"]) == ("AMD Instinct MI300X", 1.0)
    assert (peaks["tflops"]["bf16"], peaks["floor_tflops"]["fp16"]) == (1307.4, 639)
    assert peaks["memory_gb_per_s"] == 5300
    assert "AMD mi300 architecture page" in peaks["source"]
    assert "ROCmValidationSuite" in peaks["floor_source"]


def test_a_partition_has_its_share(table: GpuTable) -> None:
    """CPX: 38 of 304 compute units, an eighth of everything."""
    peaks = peaks_of(a_gpu(compute_units=38, partition=3), table)

    assert peaks is not None
    assert (peaks["share_of_package"], peaks["memory_gb_per_s"]) == (0.125, 662.5)
    assert peaks_of(a_gpu(partition=3), table) is None  # a share that nobody can tell


def test_one_of_two_devices_of_a_package_has_half(table: GpuTable) -> None:
    """MI250X: the published figures are of both dies."""
    peaks = peaks_of(a_gpu(device_id="0x7408"), table)

    assert peaks is not None
    assert (peaks["tflops"]["fp16"], peaks["floor_tflops"]) == (191.5, {})


@pytest.mark.parametrize(
    "facts",
    [
        {"device_id": "0xffff"},
        {"device_id": None},
        {"device_id": "0x744c", "revision": "0x77"},  # a known id, no known revision
        {"device_id": "0x743f", "revision": "0xc3"},  # two models under one id and revision
    ],
)
def test_what_is_not_one_known_model_has_no_figures(table: GpuTable, facts: dict[str, Any]) -> None:
    assert peaks_of(a_gpu(**facts), table) is None
