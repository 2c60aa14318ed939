"""One device that is slow, full, somewhere else or one of very many: each has its own name in the report."""

from typing import Any

import pytest

from rocmrun.core.report.model import ProbeReport
from rocmrun.probe.parts.siblings import Siblings
from tests.unit.probe.runs import TWO_GPUS, found, run_probe

PEAKS = {
    "model": "Stub Instinct",
    "share_of_package": 1.0,
    "tflops": {"fp32": 100.0, "bf16": 1000.0},
    "floor_tflops": {"fp32": 50.0},
    "memory_gb_per_s": 5000.0,
    "source": "the table",
    "floor_source": "the suite",
}


@pytest.fixture(scope="module")
def standard() -> ProbeReport:
    """One healthy GPU at standard; the stub has next to nothing of what that level calls."""
    gpus = [{**TWO_GPUS[0], "peaks": PEAKS}]
    return run_probe(level="standard", expect={"gpus": gpus})


def test_a_device_that_is_much_slower_than_its_sibling_is_degraded() -> None:
    """With numbers, and without failing: slow is not wrong."""
    report = run_probe({"devices": 2, "fault": "slow", "device": 1}, expect={"gpus": TWO_GPUS})

    slow = found(report, "siblings", 1)
    assert slow.status == "degraded"
    assert slow.reason.startswith("slower than its siblings: speed_bf16 0.")
    assert slow.evidence["share_of_others_median"]["speed_fp32"] < 0.3
    assert (slow.threshold, "median" in slow.threshold_source) == (0.8, True)
    assert report.find("device", "siblings", 0) is None
    assert [c for c in report.failures if c.group == "device"] == []


def test_what_this_torch_lacks_is_skipped_with_its_name(standard: ProbeReport) -> None:
    """Old versions have no attention, no compiler, no fp8: that is no fault of the GPU."""
    for name, missing in (
        ("memory_pattern", "empty"),
        ("matmul_fp8", "_scaled_mm"),
        ("convolution", "nn.functional.conv2d"),
        ("reduction", "amax"),
        ("attention", "nn.functional.scaled_dot_product_attention"),
        ("compile", "compile"),
    ):
        check = found(standard, name, 0)
        assert (check.status, check.reason) == ("skipped", f"this torch has no {missing}")


def test_formats_beyond_quick_are_multiplied_too(standard: ProbeReport) -> None:
    for name in ("matmul_fp64", "repeat_fp64", "speed_fp64"):
        assert found(standard, name, 0).status == "pass"


def test_a_speed_stands_beside_the_peak_of_the_model(standard: ProbeReport) -> None:
    """A product of eight rows says nothing of the peak: recorded, and not judged."""
    check = found(standard, "speed_fp32", 0)

    assert check.evidence["peak_tflops"] == 100.0
    assert check.evidence["peak_source"] == "the table"
    assert (check.status, check.threshold) == ("pass", None)


def test_64_partitions_run_in_waves() -> None:
    """More than fit into memory at once: each has its result, and partitions of one GPU may say one address."""
    count = 64
    gpu = {"gfx": "gfx942", "pci_address": "0000:63:00.0", "unique_id": "f330dc0000000063"}
    partitions = [{**gpu, "index": index, "partition": index} for index in range(count)]
    addresses = {str(index): 0x63 for index in range(count)}
    report = run_probe(
        {"devices": count, "addresses": addresses}, expect={"gpus": partitions}, size=2
    )

    assert [c for c in report.failures if c.group in ("build", "device")] == []
    for index in range(count):
        assert found(report, "repeat_bf16", index).status == "pass"
    together = report.find("collectives", "all_reduce")
    assert together is not None
    assert "64 ranks at a time do not fit into memory" in together.reason


def measured(speed: float, *, long_enough: bool = True) -> dict[str, Any]:
    evidence = {"figure": "tflops", "tflops": speed, "long_enough": long_enough}
    return {"name": "speed_bf16", "evidence": evidence}


def judged(*speeds: float, models: str = "") -> list[tuple[int, str]]:
    siblings = Siblings()
    for device, speed in enumerate(speeds):
        model = models[device] if models else "MI300X"
        siblings.note({"name": "identity", "evidence": {"name": model}}, device)
        siblings.note(measured(speed), device)
    return [(check["device"], check["status"]) for check in siblings.judged()]


@pytest.mark.parametrize(
    ("speeds", "slow"),
    [
        ([500, 500, 170, 500], [2]),
        ([500, 170], [1]),  # of two, each is compared with the other
        ([500, 410, 420, 500], []),
        ([500, 100, 100, 500, 500], [1, 2]),
    ],
)
def test_siblings_are_compared_with_the_median_of_the_others(
    speeds: list[float], slow: list[int]
) -> None:
    assert [device for device, status in judged(*speeds) if status == "degraded"] == slow


def test_another_model_is_no_sibling() -> None:
    assert judged(500, 100, models="AB") == []


@pytest.mark.parametrize(("memory", "compared"), [(190, True), (24, False)])
def test_a_partition_is_no_sibling_of_a_whole_gpu(memory: int, compared: bool) -> None:  # noqa: FBT001  # a case
    """The name is the same; memory that is set aside may differ a little."""
    siblings = Siblings()
    for device, gib in enumerate((192, memory)):
        evidence = {"name": "MI300X", "total_memory_bytes": gib << 30}
        siblings.note({"name": "identity", "evidence": evidence}, device)
        siblings.note(measured(500.0), device)

    assert bool(siblings.judged()) is compared


def test_a_run_that_was_too_short_is_not_judged() -> None:
    siblings = Siblings()
    for device, speed in enumerate((500.0, 100.0)):
        siblings.note({"name": "identity", "evidence": {"name": "MI300X"}}, device)
        siblings.note(measured(speed, long_enough=False), device)

    assert siblings.judged() == []
