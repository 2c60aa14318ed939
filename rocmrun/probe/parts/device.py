"""One device, exercised by a process that sees no other."""

from __future__ import annotations

import resource
import time
from typing import Any

from rocmrun.probe.parts.arithmetic import FORMATS, check_matmul, rate, synchronize
from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.identity import check_identity


def stage_device(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Exercise the one device that this process can see."""
    torch = state["torch"]
    on_gpu = job["accelerator"] != "cpu"
    device = "cuda:0" if on_gpu else "cpu"
    with reporter.check("device", "identity") as check:
        check_identity(check, torch, job, on_gpu=on_gpu)
    if on_gpu and check.evidence.get("visible") == 0:
        return
    make_exact(torch)
    with reporter.check("device", "allocate") as check:
        check_allocate(check, torch, device, 4 * job["size"] ** 2)
    if job["level"] != "quick":
        with reporter.check("device", "copy") as check:
            check_copy(check, torch, device, 4 * job["size"] ** 2)
    for name in FORMATS:
        check_matmul(reporter, torch, device, name, job["size"])
    with reporter.check("device", "peak_memory") as check:
        check_peak_memory(check, torch, on_gpu=on_gpu)


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
    # Not use_deterministic_algorithms: that imports torch._inductor, which takes a second.
    torch.set_deterministic_debug_mode("warn")


def check_allocate(check: Check, torch: Any, device: str, size: int) -> None:
    """Fill memory with a pattern and read it back on the device."""
    pattern = 0xA5
    memory = torch.full((size,), pattern, dtype=torch.uint8, device=device)
    wrong = int((memory != pattern).sum().item())
    check.evidence.update(bytes=size, wrong=wrong)
    if wrong:
        msg = f"{wrong} of {size} bytes do not hold what was written"
        raise CheckFailed(msg)


def check_copy(check: Check, torch: Any, device: str, size: int) -> None:
    """Copy memory to the device and back, and compare."""
    if device == "cpu":
        check.skip("a cpu has no memory of its own to copy to")
        return
    host = torch.arange(size // 4, dtype=torch.int32)
    begin = time.monotonic()
    there = host.to(device)
    synchronize(torch, device)
    middle = time.monotonic()
    back = there.cpu()
    end = time.monotonic()
    wrong = int((back != host).sum().item())
    check.evidence.update(
        bytes=size,
        wrong=wrong,
        to_device_gb_per_s=rate(size, middle - begin),
        to_host_gb_per_s=rate(size, end - middle),
    )
    if wrong:
        msg = f"{wrong} of {size // 4} values changed on the way to the device and back"
        raise CheckFailed(msg)


def check_peak_memory(check: Check, torch: Any, *, on_gpu: bool) -> None:
    """Record the most memory that the stage took."""
    check.evidence["host_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if on_gpu:
        check.evidence["device_bytes"] = torch.cuda.max_memory_allocated()
        free, total = torch.cuda.mem_get_info()
        check.evidence.update(free_bytes=free, total_bytes=total)
