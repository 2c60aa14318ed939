"""What computed results are compared with, and by how much they may differ."""

from __future__ import annotations

import math
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed

CONFIDENCE = 4.0
SUM_SOURCE = (
    "Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, "
    "SIAM J. Sci. Comput. 41 (2019)"
)


def synchronize(torch: Any, device: str) -> None:
    """Wait until the device has done what it was given."""
    if device != "cpu":
        torch.cuda.synchronize()


def rate(amount: float, seconds: float, unit: float = 1e9) -> float:
    """Return how many times *unit* a second, to five digits; thousands of millions unless said."""
    return float(f"{amount / max(seconds, 1e-9) / unit:.5g}")


def growth_of(inner: int, unit: float) -> float:
    """Return what of (|A||B|) a sum of *inner* products, rounded with *unit*, may be off by."""
    return CONFIDENCE * math.sqrt(inner) * unit


def compare(check: Check, computed: Any, exact: Any, bound: Any, source: str) -> None:
    """Fail where what a device computed is further from the float64 *exact* than *bound*."""
    count = math.prod(exact.shape)
    error = (computed.cpu().double() - exact).abs()
    share = error / bound
    # Counted by what is within, so that a NaN is wrong.
    wrong = count - int((share <= 1.0).sum().item())
    worst = float(share.max().item())
    check.evidence.update(wrong=wrong, worst_share_of_bound=worst)
    check.evidence["largest_error"] = float(error.max().item())
    check.threshold, check.threshold_source = 1.0, source
    if wrong:
        msg = (
            f"{wrong} of {count} results are wrong, the worst by {worst:.3g} times the error bound"
        )
        raise CheckFailed(msg)


def compare_bits(check: Check, torch: Any, first: Any, second: Any, name: str) -> None:
    """Fail where two runs on the same input differ in a single bit."""
    count = math.prod(first.shape)
    bits = {"fp32": "int32", "fp64": "int64"}.get(name, "int16")
    dtype = getattr(torch, bits)
    changed = int((first.view(dtype) != second.view(dtype)).sum().item())
    check.evidence.update(results=count, changed=changed)
    if changed:
        msg = f"{changed} of {count} results differ between two runs on the same input"
        raise CheckFailed(msg)
