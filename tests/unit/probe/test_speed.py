"""When a speed is called slow: against AMD's floor, against the peak, and never where nothing is known."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from rocmrun.probe.parts.checks import Check, Reporter
from rocmrun.probe.parts.speed import (
    Timing,
    judge_memory_speed,
    judge_product,
    peaks_of_device,
    record_speed,
    time_runs,
)

MI300X: dict[str, Any] = {
    "tflops": {"fp16": 1307.4, "bf16": 1307.4, "fp32": 163.4, "fp64": 81.7},
    "floor_tflops": {"fp16": 639, "fp32": 100},
    "memory_gb_per_s": 5300,
    "source": "AMD mi300 architecture page (confidence high)",
    "floor_source": "ROCmValidationSuite",
}


def product(name: str, tflops: float, *, rows: int = 8192, peaks: Any = MI300X) -> Check:
    check = Check(Reporter(-1), "device", f"speed_{name}", quiet=True)
    check.evidence["tflops"] = tflops
    judge_product(check, name, rows, peaks)
    return check


@pytest.mark.parametrize(
    ("name", "tflops", "status"),
    [
        ("fp16", 320.0, "pass"),  # half of AMD's floor is 319.5
        ("fp16", 319.0, "degraded"),
        ("bf16", 288.0, "pass"),  # no floor: 22 % of the peak are 287.6
        ("bf16", 287.0, "degraded"),
        ("fp32", 49.0, "degraded"),
        ("fp64", 1.0, "pass"),  # no floor, and nobody published what is reached
        ("fp8", 1.0, "pass"),  # no figure at all
    ],
)
def test_a_product_is_compared_with_what_is_published(
    name: str, tflops: float, status: str
) -> None:
    assert product(name, tflops).status == status


def test_the_reason_has_both_numbers_and_the_threshold_its_source() -> None:
    check = product("fp16", 100.0)

    assert check.reason == "slow: 100 TFLOP/s where 319.5 are expected of this model"
    assert check.threshold == 319.5
    assert check.threshold_source == "half of 639 TFLOP/s: ROCmValidationSuite"
    assert check.evidence["share_of_peak"] == 0.076


def test_a_small_product_is_recorded_only() -> None:
    """It never reaches what large ones do."""
    check = product("fp16", 1.0, rows=2048)

    assert (check.status, check.threshold, check.evidence["peak_tflops"]) == ("pass", None, 1307.4)


@pytest.mark.parametrize("peaks", [None, {**MI300X, "tflops": {}}])
def test_without_figures_nothing_is_judged(peaks: Any) -> None:
    assert product("fp16", 0.001, peaks=peaks).status == "pass"


@pytest.mark.parametrize(("speed", "status"), [(2200.0, "pass"), (2000.0, "degraded")])
def test_memory_is_compared_with_its_peak(speed: float, status: str) -> None:
    """40 % of 5300 GB/s are 2120."""
    check = Check(Reporter(-1), "device", "memory_bandwidth", quiet=True)
    check.evidence["copy_gb_per_s"] = speed
    judge_memory_speed(check, MI300X)

    assert check.status == status


def test_a_device_has_the_figures_of_the_gpu_that_it_claims_to_be() -> None:
    """HIP's order is not always the plan's."""
    job = {"planned": [{"peaks": {"a": 1}}, {"peaks": None}], "index": 1}

    assert peaks_of_device(job, [0]) == {"a": 1}
    assert peaks_of_device(job, []) is None
    assert peaks_of_device({"planned": None, "index": 0}, []) is None


def queue(*, starting: float, running: float) -> tuple[Any, Any]:
    """Return a torch whose device works off a queue, and what puts a run into it."""
    ready = time.monotonic()

    def run() -> None:
        nonlocal ready
        time.sleep(starting)
        ready = max(ready, time.monotonic()) + running

    def synchronize() -> None:
        time.sleep(max(0.0, ready - time.monotonic()))

    return SimpleNamespace(cuda=SimpleNamespace(synchronize=synchronize)), run


@pytest.mark.parametrize(
    ("starting", "running", "host_bound"), [(0.0, 0.002, False), (0.004, 0.0005, True)]
)
def test_a_host_that_is_slower_than_the_gpu_is_seen(
    starting: float,
    running: float,
    host_bound: bool,  # noqa: FBT001  # a case
) -> None:
    torch, run = queue(starting=starting, running=running)

    timing = time_runs(torch, "cuda:0", "standard", run)

    assert timing.host_bound is host_bound
    assert timing.seconds >= max(starting, running) * 0.9


@pytest.mark.parametrize(
    ("timing", "judged"),
    [
        (Timing(0.0005), True),
        (Timing(0.0005, host_bound=True), False),
        (Timing(0.002, host_bound=True), True),  # no host takes that long to start one
        (Timing(0.00005), False),
    ],
)
def test_what_waited_for_its_host_is_recorded_only(
    timing: Timing,
    judged: bool,  # noqa: FBT001  # a case
) -> None:
    check = Check(Reporter(-1), "device", "speed_fp16", quiet=True)

    record_speed(check, "standard", "tflops", 100.0, timing)
    judge_product(check, "fp16", 8192, MI300X)

    assert check.evidence["long_enough"] is judged
    assert check.status == ("pass" if timing.host_bound and not judged else "degraded")
