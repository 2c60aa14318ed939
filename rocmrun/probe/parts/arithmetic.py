"""Matrix products against a float64 reference."""

from __future__ import annotations

import math
import time
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter

# Every kernel computes its result in tiles of 64 rows or more, so one row in 64 touches them all.
SAMPLE_EVERY = 64
SAMPLED_ABOVE = 1024  # rows; up to here the reference costs next to nothing
# format: (unit roundoff of the accumulator, epsilon of the stored result). All of torch's kernels
# sum half formats in fp32 once reduced-precision reductions are off.
FORMATS = {
    "fp32": (2.0**-24, 2.0**-23),
    "fp16": (2.0**-24, 2.0**-10),
    "bf16": (2.0**-24, 2.0**-7),
}

TORCH_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
CONFIDENCE = 4.0
BOUND_SOURCE = (
    "4*sqrt(K)*u*(|A||B|) + eps*|C|: Higham and Mary, A New Approach to Probabilistic Rounding "
    "Error Analysis, SIAM J. Sci. Comput. 41 (2019), plus the rounding of the stored result"
)


def synchronize(torch: Any, device: str) -> None:
    """Wait until the device has done what it was given."""
    if device != "cpu":
        torch.cuda.synchronize()


def rate(amount: float, seconds: float) -> float:
    """Return thousands of millions a second."""
    return round(amount / max(seconds, 1e-9) / 1e9, 3)


def check_matmul(reporter: Reporter, torch: Any, device: str, name: str, size: int) -> None:
    """Multiply two matrices: against a float64 reference, for speed, and once more for equality.

    With K the inner dimension, u the unit roundoff of the accumulator and eps the epsilon of the
    stored format, each element must satisfy

        |computed - exact| <= 4 * sqrt(K) * u * (|A| |B|) + eps * |exact|

    The first term is Higham and Mary's bound for a sum of K products in any order, whose rounding
    errors are independent with mean zero; 4 standard deviations of a worst case leave a factor of
    hundreds over what is seen, and still tell fp32 from TF32 at these sizes. The second is the
    rounding of the result, by nearest or by truncation. The entries are at least 1/4 in magnitude:
    matrix units that flush subnormal numbers change nothing.
    """
    dtype = getattr(torch, TORCH_TYPES[name])
    product = None
    with reporter.check("device", f"matmul_{name}") as check:
        left, right = (matrix(torch, size, seed).to(dtype) for seed in (1, 2))
        there_left, there_right = left.to(device), right.to(device)
        product = there_left @ there_right
        synchronize(torch, device)
        check.evidence["size"] = size
        finite = int(torch.isfinite(product).sum().item())
        if finite != size * size:
            msg = f"{size * size - finite} of {size * size} results are not finite"
            raise CheckFailed(msg)
        compare_rows(check, torch, left, right, product, name)
        check.evidence["gflops"] = speed(torch, there_left, there_right, device)
    if product is None or check.status == "fail":
        return
    with reporter.check("device", f"repeat_{name}") as check:
        synchronize(torch, device)
        bits = torch.int32 if name == "fp32" else torch.int16
        changed = int((product.view(bits) != (there_left @ there_right).view(bits)).sum().item())
        check.evidence.update(size=size, changed=changed)
        if changed:
            msg = f"{changed} of {size * size} results differ between two runs on the same input"
            raise CheckFailed(msg)


def matrix(torch: Any, size: int, seed: int) -> Any:
    """Return a square fp32 matrix with entries in +-[0.25, 1), the same on every machine."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    uniform = torch.rand(size, size, generator=generator) * 1.5 - 0.75
    return uniform + uniform.sign() * 0.25


def compare_rows(check: Check, torch: Any, left: Any, right: Any, product: Any, name: str) -> None:
    """Compare a sample of whole rows, spread over all of them, with the float64 reference."""
    size = left.shape[0]
    step = SAMPLE_EVERY if size > SAMPLED_ABOVE else 1
    # The odd remainder moves the sample within its tile from one tile to the next.
    rows = torch.tensor(
        [min(start + start // step * 7 % step, size - 1) for start in range(0, size, step)]
    )
    sample, other = left[rows].double(), right.double()
    exact = sample @ other
    unit, epsilon = FORMATS[name]
    bound = (sample.abs() @ other.abs()) * (
        CONFIDENCE * math.sqrt(size) * unit
    ) + exact.abs() * epsilon
    error = (product[rows.to(product.device)].cpu().double() - exact).abs()
    share = error / bound
    wrong = int((share > 1.0).sum().item())
    worst = float(share.max().item())
    check.evidence.update(rows=len(rows), wrong=wrong, worst_share_of_bound=worst)
    check.evidence["largest_error"] = float(error.max().item())
    check.threshold, check.threshold_source = 1.0, BOUND_SOURCE
    if wrong:
        msg = f"{wrong} of {len(rows) * size} results are wrong, the worst by {worst:.3g} times the error bound"
        raise CheckFailed(msg)


def speed(torch: Any, left: Any, right: Any, device: str) -> float:
    """Return GFLOP/s over a few products: recorded, not judged."""
    repeats = 1 if device == "cpu" else 5
    begin = time.monotonic()
    for _ in range(repeats):
        torch.matmul(left, right)
    synchronize(torch, device)
    return rate(2 * left.shape[0] ** 3 * repeats, time.monotonic() - begin)
