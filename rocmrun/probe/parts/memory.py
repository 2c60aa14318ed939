"""Device memory: whether it keeps what is written, and how fast it moves."""

from __future__ import annotations

import os
import resource
import time
from typing import Any, Callable

from rocmrun.probe.parts.arithmetic import rate, synchronize
from rocmrun.probe.parts.checks import Check, CheckFailed
from rocmrun.probe.parts.offers import lacks
from rocmrun.probe.parts.speed import judge_memory_speed, record_speed, time_runs

GIB = 1 << 30
CHUNK_BYTES = 256 << 20
WORD_BYTES = 8
SHARES = {"standard": 0.25, "full": 0.9}  # of the memory that is free
LEFT_FREE = GIB
APU_BYTES = 2 * GIB  # what an APU calls its own is the host's memory
CPU_BYTES = 16 << 20  # host memory is not what is proved: this only shows that the sweep works
SWEEP_SECONDS = {"standard": 30, "full": 180}
UNCOUNTED = ("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING")
# Matrices of 8 bytes an element that products in all formats need room for, with a margin.
MATRICES = 12
LEAST_ROWS = 1024
STREAM_BYTES = {"cpu": 16 << 20, "gpu": 256 << 20}


def fitting_rows(torch: Any, rows: int) -> int:
    """Return *rows*, halved until products of that size fit into the memory that is free."""
    free = int(torch.cuda.mem_get_info()[0])
    while rows > LEAST_ROWS and MATRICES * 8 * rows**2 > free:
        rows //= 2
    return rows


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
    """Copy memory to the device and back, pageable and pinned, and compare."""
    if device == "cpu":
        check.skip("a cpu has no memory of its own to copy to")
        return
    pageable = torch.arange(size // 4, dtype=torch.int32)
    check.evidence["bytes"] = size
    copied_both_ways(check, torch, device, pageable, "")
    if not hasattr(pageable, "pin_memory"):
        check.evidence["pinned"] = "this torch has no Tensor.pin_memory"
        return
    copied_both_ways(check, torch, device, pageable.pin_memory(), "pinned_")


def copied_both_ways(check: Check, torch: Any, device: str, host: Any, kind: str) -> None:
    """Copy *host* there and back twice; the first time also sets up what the second one uses."""
    back = host
    for _ in range(2):
        begin = time.monotonic()
        there = host.to(device)
        synchronize(torch, device)
        middle = time.monotonic()
        back = there.cpu() if not kind else into_pinned(torch, there, host)
        synchronize(torch, device)
        end = time.monotonic()
        check.evidence.update(
            {
                f"{kind}to_device_gb_per_s": rate(check.evidence["bytes"], middle - begin),
                f"{kind}to_host_gb_per_s": rate(check.evidence["bytes"], end - middle),
            }
        )
    wrong = int((back != host).sum().item())
    check.evidence["wrong"] = wrong
    if wrong:
        msg = f"{wrong} of {len(host)} values changed on the way to the device and back"
        raise CheckFailed(msg)


def into_pinned(torch: Any, there: Any, like: Any) -> Any:
    """Copy a tensor of the device into pinned memory of its own."""
    back = torch.empty_like(like).pin_memory()
    back.copy_(there)
    return back


def check_memory_pattern(check: Check, torch: Any, device: str, job: dict[str, Any]) -> None:
    """Write patterns over a share of the free memory, then read all of it back, on the device.

    The first holds each word's own address, so that two addresses of one cell, or two chunks in one
    place, overwrite each other: it is read only after everything is written.
    """
    if lacks(check, torch, "empty", "int64"):
        return
    asked = sweep_bytes(check, torch, device, job)
    if not asked:
        return
    chunks = chunks_of(check, torch, device, asked)
    held = sum(len(chunk) for chunk in chunks) * WORD_BYTES
    check.evidence.update(asked_bytes=asked, swept_bytes=held, patterns=[])
    if held < asked // 2:
        check.degrade(f"{asked} bytes were said to be free, only {held} could be allocated")
    end = time.monotonic() + SWEEP_SECONDS[job["level"]]
    for name, write, differs in patterns(torch, device) if chunks else ():
        if time.monotonic() > end:
            check.evidence["stopped"] = f"after {SWEEP_SECONDS[job['level']]} s, before {name}"
            break
        start = 0
        for chunk in chunks:
            write(chunk, start)
            start += len(chunk)
        start = 0
        for chunk in chunks:
            wrong = differs(chunk, start)
            count = int(wrong.sum().item())
            if count:
                first = (start + int(wrong.nonzero()[0].item())) * WORD_BYTES
                msg = f"{count} words of a chunk do not hold the pattern {name}, the first at byte {first} of the sweep"
                raise CheckFailed(msg)
            start += len(chunk)
        check.evidence["patterns"].append(name)


def sweep_bytes(check: Check, torch: Any, device: str, job: dict[str, Any]) -> int:
    """Return how much to sweep: a share of what is free, of which 1 GiB stays."""
    if device == "cpu":
        return CPU_BYTES
    torch.cuda.empty_cache()
    free, total = (int(value) for value in torch.cuda.mem_get_info())
    planned = job.get("planned") or []
    apu = any(gpu.get("apu") for gpu in planned[job.get("index", 0) :][:1])
    apu = apu or bool(getattr(torch.cuda.get_device_properties(0), "is_integrated", False))
    share = SHARES[str(job["level"])]
    check.evidence.update(free_bytes=free, total_bytes=total, share_of_free=share, apu=apu)
    wanted = min(int(free * share), free - LEFT_FREE)
    if apu:
        wanted = min(wanted, APU_BYTES)
    if wanted <= 0:
        check.skip(f"{free} bytes are free, and 1 GiB is to stay free")
    return max(0, wanted)


def chunks_of(check: Check, torch: Any, device: str, asked: int) -> list[Any]:
    """Return 64-bit words in chunks of *asked* bytes together, or what of that can be had."""
    chunks: list[Any] = []
    left = asked
    while left >= WORD_BYTES:
        try:
            words = min(left, CHUNK_BYTES) // WORD_BYTES
            chunks.append(torch.empty(words, dtype=torch.int64, device=device))
        except RuntimeError as error:  # somebody else took what was free a moment ago
            if "out of memory" not in str(error):
                raise
            check.evidence["out_of_memory_after_bytes"] = asked - left
            break
        left -= words * WORD_BYTES
    return chunks


def patterns(torch: Any, device: str) -> list[tuple[str, Any, Any]]:
    """Return each pattern's name, what writes it into a chunk and what tells where it is not."""

    def addresses(chunk: Any, start: int, turn: int) -> Any:
        counted = torch.arange(start, start + len(chunk), dtype=torch.int64, device=device)
        return counted if turn > 0 else -1 - counted

    def by_address(turn: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return (
            lambda chunk, start: chunk.copy_(addresses(chunk, start, turn)),
            lambda chunk, start: chunk != addresses(chunk, start, turn),
        )

    def constant(value: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return (
            lambda chunk, _start: chunk.fill_(value),
            lambda chunk, _start: chunk != value,
        )

    checkered = 0x5555555555555555
    return [
        ("address", *by_address(1)),
        ("inverted_address", *by_address(-1)),
        ("01", *constant(checkered)),
        ("10", *constant(-1 - checkered)),
        ("ones", *constant(-1)),
        ("zeros", *constant(0)),
    ]


def check_bandwidth(check: Check, torch: Any, device: str, level: str, peaks: Any) -> None:
    """Measure a copy and a triad within device memory, in bytes read and written."""
    if lacks(check, torch, "empty", "add"):
        return
    size = STREAM_BYTES["cpu" if device == "cpu" else "gpu"]
    if device != "cpu":  # three of them, and room for others
        size = min(size, int(torch.cuda.mem_get_info()[0]) // 8 // WORD_BYTES * WORD_BYTES)
    first, second, third = (
        torch.full((size // 4,), value, dtype=torch.float32, device=device)
        for value in (1.0, 2.0, 0.0)
    )
    triad = time_runs(torch, device, level, lambda: torch.add(first, second, alpha=3.0, out=third))
    wrong = int((third != first + 3 * second).sum().item())
    check.evidence.update(bytes=size, wrong=wrong, triad_gb_per_s=rate(3 * size, triad.seconds))
    copy = time_runs(torch, device, level, lambda: third.copy_(first))
    wrong += int((third != first).sum().item())
    record_speed(check, level, "copy_gb_per_s", rate(2 * size, copy.seconds), copy)
    if wrong:
        msg = f"{wrong} of {size // 4} values are not what was copied or added"
        raise CheckFailed(msg)
    judge_memory_speed(check, peaks)


def check_peak_memory(check: Check, torch: Any, *, on_gpu: bool) -> None:
    """Record the most memory that the stage took."""
    check.evidence["host_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if on_gpu:
        check.evidence["device_bytes"] = torch.cuda.max_memory_allocated()
        free, total = torch.cuda.mem_get_info()
        check.evidence.update(free_bytes=free, total_bytes=total)


def check_cpu_fallback(check: Check, torch: Any, size: int) -> None:
    """Fail where the device never held the matrices that it is said to have multiplied."""
    if lacks(check, torch, "cuda.max_memory_allocated"):
        return
    uncounted = [name for name in UNCOUNTED if os.environ.get(name)]
    if uncounted:
        check.skip(f"with {uncounted[0]} torch does not count its memory")
        return
    held, needed = torch.cuda.max_memory_allocated(), 3 * 4 * size**2
    check.evidence.update(device_bytes=held, needed_bytes=needed)
    if held < needed:
        msg = f"at most {held} bytes of the device were ever in use, three matrices of fp32 need {needed}"
        raise CheckFailed(msg)
