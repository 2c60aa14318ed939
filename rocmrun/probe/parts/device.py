"""One device, exercised by a process that sees no other."""

from __future__ import annotations

from typing import Any

from rocmrun.probe.parts.checks import Reporter
from rocmrun.probe.parts.compiled import check_compile
from rocmrun.probe.parts.identity import check_identity
from rocmrun.probe.parts.kernels import check_attention, check_convolution, check_reduction
from rocmrun.probe.parts.memory import (
    check_allocate,
    check_bandwidth,
    check_copy,
    check_cpu_fallback,
    check_memory_pattern,
    check_peak_memory,
    fitting_rows,
)
from rocmrun.probe.parts.offers import offered
from rocmrun.probe.parts.products import FORMATS, QUICK_FORMATS, Operands, check_matmul
from rocmrun.probe.parts.speed import peaks_of_device


def stage_device(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Exercise the one device that this process can see."""
    torch = state["torch"]
    on_gpu = job["accelerator"] != "cpu"
    device = "cuda:0" if on_gpu else "cpu"
    with reporter.check("device", "identity") as check:
        check_identity(check, torch, job, on_gpu=on_gpu)
    if on_gpu and check.evidence.get("visible") == 0:
        return
    peaks = peaks_of_device(job, check.evidence.get("claims") or [])
    make_exact(torch)
    if on_gpu:
        job = {**job, "size": fitting_rows(torch, job["size"])}
    with reporter.check("device", "allocate") as check:
        check_allocate(check, torch, device, 4 * job["size"] ** 2)
    if job["level"] != "quick":
        exercise_memory(job, reporter, torch, device, peaks)
    operands = Operands(torch, device, job["size"])
    for name in formats_of(job["level"], on_gpu=on_gpu):
        check_matmul(reporter, operands, name, job, peaks)
    del operands
    if job["level"] != "quick":
        check_convolution(reporter, torch, device)
        check_reduction(reporter, torch, device)
        check_attention(reporter, torch, device)
    if job["level"] == "full" or (job["level"] == "standard" and on_gpu):
        with reporter.check("device", "compile") as check:
            check_compile(check, torch, device)
    with reporter.check("device", "peak_memory") as check:
        check_peak_memory(check, torch, on_gpu=on_gpu)
    if on_gpu:
        with reporter.check("device", "cpu_fallback") as check:
            check_cpu_fallback(check, torch, job["size"])


def make_exact(torch: Any) -> None:
    """Ask torch for plain arithmetic: no TF32, no half-precision sums, the same result twice."""
    torch.set_float32_matmul_precision("highest")
    matmul = torch.backends.cuda.matmul
    for name in (
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    ):
        if hasattr(matmul, name):
            setattr(matmul, name, False)
    if hasattr(torch.backends, "cudnn"):
        torch.backends.cudnn.allow_tf32 = False
    # Not use_deterministic_algorithms: that imports torch._inductor, which takes a second.
    torch.set_deterministic_debug_mode("warn")
    # Which would also write every new tensor full of NaN before its use.
    filling = offered(torch, "utils.deterministic")
    if hasattr(filling, "fill_uninitialized_memory"):
        filling.fill_uninitialized_memory = False


def exercise_memory(
    job: dict[str, Any], reporter: Reporter, torch: Any, device: str, peaks: Any
) -> None:
    """Copy to the device and back, sweep its memory, and measure how fast that is."""
    with reporter.check("device", "copy") as check:
        check_copy(check, torch, device, 4 * job["size"] ** 2)
    with reporter.check("device", "memory_pattern") as check:
        check_memory_pattern(check, torch, device, job)
    release = offered(torch, "cuda.empty_cache")
    if device != "cpu" and release:
        release()  # the next checks, and the siblings on this GPU, need room
    with reporter.check("device", "memory_bandwidth") as check:
        check_bandwidth(check, torch, device, job["level"], peaks)


def formats_of(level: str, *, on_gpu: bool) -> tuple[str, ...]:
    """Return the formats to multiply in; a CPU's float64 is what everything is compared with."""
    return tuple(FORMATS) if on_gpu and level != "quick" else QUICK_FORMATS
