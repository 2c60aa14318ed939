"""What a GPU can do at most, from the package's table, and where each number comes from. Nothing is guessed."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rocmrun.core.plan import PlannedGpu

Format = Literal["fp64", "fp32", "fp16", "bf16", "fp8"]
FORMATS: tuple[Format, ...] = ("fp64", "fp32", "fp16", "bf16", "fp8")


class GpuModel(BaseModel):
    """One model. Figures are of the whole package, dense, and None where no source has one.

    Attributes:
        pci_revisions: Which revisions of the PCI device are this model; none is any.
        kind: "instinct", "radeon", "radeon-pro" or "apu".
        vf: Whether it is a virtual function of the model.
        memory_bw_gbs: Device memory bandwidth in GB/s.
        peak_tflops: By format, in TFLOP/s.
        amd_gemm_floor_tflops: What AMD's validation suite asks of a matrix product, and its source.
        devices_per_package: How many devices the driver makes of one package (MI250: 2).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pci_device_id: str
    pci_revisions: tuple[str, ...]
    names: tuple[str, ...]
    gfx: str
    arch: str
    kind: str = Field(alias="class")
    code_name: str
    gfx_source: str
    generic_target: str | None
    vf: bool
    apu: bool = False
    vram_gib: float | None
    memory_bw_gbs: float | None
    peak_tflops: dict[Format, float | None]
    peak_fp64_matrix_tflops: float | None = None
    peak_tf32_tflops: float | None = None
    compute_units: int | None
    boost_mhz: float | None
    peak_source: str | None
    peak_confidence: Literal["high", "medium", "low", "none"]
    amd_gemm_floor_tflops: dict[str, float | str] = {}
    devices_per_package: int = 1
    name_source: str
    pci_ids_name: str | None = None
    note: str | None = None


class Source(BaseModel):
    """Where facts of the table come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    ref: str


class GpuTable(BaseModel):
    """Models by PCI device and revision."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal["rocmrun gpu table v1"] = Field(alias="schema")
    key: str
    rules: tuple[str, ...]
    sources: tuple[Source, ...]
    gpus: tuple[GpuModel, ...]

    def models(self, device_id: str | None, revision: str | None) -> list[GpuModel]:
        """Return every model that a PCI device and revision can be."""
        return [
            model
            for model in self.gpus
            if model.pci_device_id == device_id
            and (not model.pci_revisions or revision in model.pci_revisions)
        ]


def parse_gpu_table(text: str) -> GpuTable:
    """Return the table."""
    return GpuTable.model_validate_json(text)


def peaks_of(gpu: PlannedGpu, table: GpuTable) -> dict[str, Any] | None:
    """Return what *gpu* can do at most, as the probe is told it; None when that is not known.

    A partition and a half of a package get their share, by compute units.
    """
    model = _model_of(gpu, table)
    share = None if model is None else _share_of_package(gpu, model)
    if model is None or share is None:
        return None
    floors = model.amd_gemm_floor_tflops
    return {
        "model": " / ".join(model.names),
        "share_of_package": round(share, 4),
        "tflops": _scaled({name: model.peak_tflops.get(name) for name in FORMATS}, share),
        "floor_tflops": _scaled({name: floors.get(name) for name in FORMATS}, share),
        "memory_gb_per_s": _scaled({"": model.memory_bw_gbs}, share).get(""),
        "source": f"{model.peak_source or 'no source'} (confidence {model.peak_confidence})",
        "floor_source": str(floors.get("source", "")),
    }


def _model_of(gpu: PlannedGpu, table: GpuTable) -> GpuModel | None:
    """Return the one model that the PCI device and revision name."""
    found = table.models(gpu.device_id, gpu.revision)
    # Two models under one id and revision: either could be meant, so neither is.
    return found[0] if len(found) == 1 else None


def _share_of_package(gpu: PlannedGpu, model: GpuModel) -> float | None:
    if gpu.compute_units and model.compute_units:
        return min(1.0, gpu.compute_units / model.compute_units)
    return None if gpu.partition is not None else 1 / model.devices_per_package


def _scaled(figures: dict[Any, Any], share: float) -> dict[str, float]:
    return {
        name: round(figure * share, 2)
        for name, figure in figures.items()
        if isinstance(figure, int | float)
    }
