"""The calls of known extensions: what they compare, and that a wrong result is found.

What needs real arithmetic is tested on real GPUs; here the extensions are stand-ins.
"""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.operator_calls import (
    bounded_error,
    call_bitsandbytes,
    call_torchvision,
    judged_platform,
)


@pytest.fixture
def check() -> Check:
    return Reporter(os.open(os.devnull, os.O_WRONLY)).check("operators", "any")


class Numbers:
    """As much of a tensor as the calls use."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def to(self, _device: str) -> "Numbers":
        return self

    def cpu(self) -> "Numbers":
        return self

    def abs(self) -> "Numbers":
        return Numbers([abs(value) for value in self.values])

    def max(self) -> "Numbers":
        return Numbers([max(self.values)])

    def item(self) -> Any:
        return self.values[0]

    def tolist(self) -> list[Any]:
        return self.values

    def __truediv__(self, other: float) -> "Numbers":
        return Numbers([value / other for value in self.values])

    def __sub__(self, other: Any) -> "Numbers":
        others = other.values if isinstance(other, Numbers) else [other] * len(self.values)
        return Numbers([a - b for a, b in zip(self.values, others, strict=True)])


TORCH = SimpleNamespace(
    tensor=Numbers, float32=None, arange=lambda count, **_: Numbers(list(range(count)))
)


@pytest.mark.parametrize("error", [0.02, float("inf"), float("nan")])
def test_an_error_above_its_bound_fails(check: Check, error: float) -> None:
    """NaN is above every bound."""
    with pytest.raises(CheckFailed, match="the result is off by"):
        bounded_error(check, error, 0.01, "somebody")
    assert (check.threshold, check.threshold_source) == (0.01, "somebody")


def test_an_error_within_its_bound_passes(check: Check) -> None:
    bounded_error(check, 0.01, 0.01, "somebody")

    assert check.evidence["largest_error"] == 0.01


def test_boxes_that_overlap_are_dropped(check: Check) -> None:
    module = SimpleNamespace(ops=SimpleNamespace(nms=lambda *_: Numbers([0, 2])))
    assert call_torchvision(check, TORCH, module, "cuda") == "ops.nms"

    module.ops.nms = lambda *_: Numbers([0, 1, 2])
    with pytest.raises(CheckFailed, match=r"boxes \[0, 1, 2\] were kept, not \[0, 2\]"):
        call_torchvision(check, TORCH, module, "cuda")


def quantised(step: float) -> Any:
    """Return a bitsandbytes whose code has steps of this size."""

    def there(values: Numbers) -> tuple[Numbers, None]:
        return Numbers([round(value / step) for value in values.values]), None

    def back(codes: Numbers, _state: None) -> Numbers:
        return Numbers([code * step for code in codes.values])

    functional = SimpleNamespace(quantize_blockwise=there, dequantize_blockwise=back)
    return SimpleNamespace(functional=functional)


def test_a_quantisation_is_as_fine_as_its_code(check: Check) -> None:
    """Half of the widest step is right, a code with a quarter of the values is not."""
    assert (
        call_bitsandbytes(check, TORCH, quantised(0.9 / 64), "cuda")
        == "functional.quantize_blockwise"
    )

    with pytest.raises(CheckFailed):
        call_bitsandbytes(check, TORCH, quantised(4 * 0.9 / 64), "cuda")


def test_a_platform_without_gpus_is_a_failure(check: Check) -> None:
    """vLLM imports on a machine where it finds nothing, and then serves on nothing."""

    class UnspecifiedPlatform:
        def is_cuda_alike(self) -> bool:
            return False

    class RocmPlatform(UnspecifiedPlatform):
        def is_cuda_alike(self) -> bool:
            return True

    assert judged_platform(check, RocmPlatform()) == "platforms.current_platform"
    with pytest.raises(CheckFailed, match="its platform is UnspecifiedPlatform"):
        judged_platform(check, UnspecifiedPlatform())
