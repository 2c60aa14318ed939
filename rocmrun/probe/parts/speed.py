"""How fast something runs, and whether that is slow for what it runs on."""

from __future__ import annotations

import time
from typing import Any, Callable, NamedTuple

from rocmrun.probe.parts.arithmetic import synchronize
from rocmrun.probe.parts.checks import Check

# Seconds that one measurement lasts; the best of three counts, so that a busy host is not a slow GPU.
WINDOWS = {"quick": 0.005, "standard": 0.1, "full": 0.1}
MEASUREMENTS = 3
LONG_RUN_SECONDS = 0.5  # one of these is a measurement by itself
# Shorter runs say more of the host, which has to start them, than of the GPU.
JUDGED_FROM_SECONDS = {"quick": 1e-3, "standard": 1e-4, "full": 1e-4}
# Up to this length, the GPU must also have been waited for: a host that took that much of the time
# to start the runs kept the GPU hungry.
LONG_ENOUGH_SECONDS = 1e-3
HOST_SHARE = 0.7
# No more runs than the queues of a device hold: a host that waits for room in one seems busy.
MOST_RUNS = 400
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


class Timing(NamedTuple):
    """How long one run took, and whether the host needed most of that to start it."""

    seconds: float
    host_bound: bool = False


def time_runs(torch: Any, device: str, level: str, work: Callable[[], Any]) -> Timing:
    """Return how long one run of *work* takes at best, after one to warm up. A CPU runs it once."""

    def lasted(runs: int) -> Timing:
        synchronize(torch, device)
        begin = time.monotonic()
        for _ in range(runs):
            work()
        started = time.monotonic() - begin
        synchronize(torch, device)
        whole = time.monotonic() - begin
        return Timing(whole / runs, host_bound=started > HOST_SHARE * whole)

    once = lasted(1)
    if device == "cpu":
        return once
    once = lasted(1)
    if once.seconds > LONG_RUN_SECONDS:
        return once
    runs = max(1, min(MOST_RUNS, int(WINDOWS[level] / max(once.seconds, 1e-7))))
    return min(once, *(lasted(runs) for _ in range(MEASUREMENTS)))


def record_speed(check: Check, level: str, figure: str, value: float, timing: Timing) -> None:
    """Keep a speed under the name *figure*, so that the device's siblings can be compared with it."""
    seconds = timing.seconds
    check.evidence.update({"figure": figure, figure: value, "seconds_a_run": seconds})
    hungry = timing.host_bound and seconds < LONG_ENOUGH_SECONDS
    check.evidence["long_enough"] = seconds >= JUDGED_FROM_SECONDS[level] and not hungry
    if hungry:
        check.evidence["waited_for_host"] = True


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
    if rows >= JUDGED_FROM_ROWS and "waited_for_host" not in check.evidence:
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
