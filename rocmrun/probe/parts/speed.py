"""How fast something runs, and whether that is slow for what it runs on."""

from __future__ import annotations

import time
from typing import Any, Callable

from rocmrun.probe.parts.arithmetic import synchronize
from rocmrun.probe.parts.checks import Check

# Seconds that one measurement lasts; the best of three counts, so that a busy host is not a slow GPU.
WINDOWS = {"quick": 0.005, "standard": 0.1, "full": 0.1}
MEASUREMENTS = 3
LONG_RUN_SECONDS = 0.5  # one of these is a measurement by itself
# Shorter runs say more of the host, which has to start them, than of the GPU.
JUDGED_FROM_SECONDS = {"quick": 1e-3, "standard": 1e-4, "full": 1e-4}
# AMD's floors are for products of about this size and its own tuned kernels; a smaller product, or
# another library, may stay below without anything being wrong: hence the half.
JUDGED_FROM_ROWS = 4096
SHARE_OF_FLOOR = 0.5
# The least that AMD publishes of its current GPUs as reachable, of which again half is asked.
LEAST_REACHED = 0.44
LEAST_REACHED_SOURCE = (
    "AMD's blog on max-achievable FLOPS (February 2025): 44 to 70 % of the peak are reached"
)
SHARE_OF_BANDWIDTH = 0.4
MEMORY_SPEED_SOURCE = (
    "this project's choice: a copy that reaches less than 40 % of the peak is slow"
)


def seconds_of(torch: Any, device: str, level: str, work: Callable[[], Any]) -> float:
    """Return how long one run of *work* takes at best, after one to warm up. A CPU runs it once."""

    def lasted(runs: int) -> float:
        synchronize(torch, device)
        begin = time.monotonic()
        for _ in range(runs):
            work()
        synchronize(torch, device)
        return (time.monotonic() - begin) / runs

    once = lasted(1)
    if device == "cpu":
        return once
    once = lasted(1)
    if once > LONG_RUN_SECONDS:
        return once
    runs = max(1, min(2000, int(WINDOWS[level] / max(once, 1e-7))))
    return min(once, *(lasted(runs) for _ in range(MEASUREMENTS)))


def record_speed(check: Check, level: str, figure: str, value: float, seconds: float) -> None:
    """Keep a speed under the name *figure*, so that the device's siblings can be compared with it."""
    check.evidence.update({"figure": figure, figure: value, "seconds_a_run": seconds})
    check.evidence["long_enough"] = seconds >= JUDGED_FROM_SECONDS[level]


def judge_product(check: Check, name: str, rows: int, peaks: dict[str, Any] | None) -> None:
    """Compare the TFLOP/s of a product with what the table of GPUs says of the model."""
    speed = check.evidence["tflops"]
    peak = (peaks or {}).get("tflops", {}).get(name)
    if not peaks or not peak:
        return
    check.evidence.update(
        peak_tflops=peak, share_of_peak=round(speed / peak, 3), peak_source=peaks["source"]
    )
    floor = peaks.get("floor_tflops", {}).get(name)
    if floor:
        least, source = floor * SHARE_OF_FLOOR, f"half of {floor} TFLOP/s: {peaks['floor_source']}"
    elif name in ("fp16", "bf16"):
        least = peak * LEAST_REACHED * SHARE_OF_FLOOR
        source = f"half of 44 % of {peak} TFLOP/s ({peaks['source']}): {LEAST_REACHED_SOURCE}"
    else:
        return
    if rows >= JUDGED_FROM_ROWS:
        judge(check, speed, least, "TFLOP/s", source)


def judge_memory_speed(check: Check, peaks: dict[str, Any] | None) -> None:
    """Compare the GB/s of a copy within the device with the model's."""
    peak = (peaks or {}).get("memory_gb_per_s")
    if not peaks or not peak:
        return
    speed = check.evidence["copy_gb_per_s"]
    check.evidence.update(
        peak_gb_per_s=peak, share_of_peak=round(speed / peak, 3), peak_source=peaks["source"]
    )
    judge(
        check, speed, peak * SHARE_OF_BANDWIDTH, "GB/s", f"{MEMORY_SPEED_SOURCE}; {peaks['source']}"
    )


def judge(check: Check, speed: float, least: float, unit: str, source: str) -> None:
    """Degrade a check whose speed is below *least*; being slow is never a failure."""
    check.threshold, check.threshold_source = round(least, 3), source
    if speed < least:
        check.degrade(f"slow: {speed:.4g} {unit} where {least:.4g} are expected of this model")


def peaks_of_device(job: dict[str, Any], claims: list[int]) -> dict[str, Any] | None:
    """Return what the plan says of the GPU that this device is; None where that is not known."""
    planned = job.get("planned") or []
    position = claims[0] if claims else job.get("index", 0)
    peaks: dict[str, Any] | None = (
        planned[position].get("peaks") if position < len(planned) else None
    )
    return peaks
