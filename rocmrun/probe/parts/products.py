"""Matrix products against a float64 reference."""

from __future__ import annotations

import time
from typing import Any

from rocmrun.probe.parts.arithmetic import (
    SUM_SOURCE,
    compare,
    compare_bits,
    growth_of,
    rate,
    synchronize,
)
from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.offers import lacks, refusal
from rocmrun.probe.parts.speed import Timing, judge_product, record_speed, time_runs

# Every kernel computes its result in tiles of 64 rows or more, so one row in 64 touches them all.
SAMPLE_EVERY = 64
SAMPLED_ABOVE = 1024  # rows; up to here the reference costs next to nothing
# format: (its inputs, unit roundoff of the accumulator, epsilon of the stored result). All of
# torch's kernels sum half formats in fp32 once reduced-precision reductions are off.
FORMATS = {
    "fp32": ("fine", 2.0**-24, 2.0**-23),
    "fp64": ("fine", 2.0**-53, 2.0**-52),
    "fp16": ("half", 2.0**-24, 2.0**-10),
    "bf16": ("half", 2.0**-24, 2.0**-7),
    "fp8": ("eighth", 2.0**-24, 2.0**-7),  # stored as bf16
}
QUICK_FORMATS = ("fp32", "fp16", "bf16")
TORCH_TYPES = {"fp32": "float32", "fp64": "float64", "fp16": "float16", "bf16": "bfloat16"}
# AMD's GPUs with matrix instructions for fp8, and which of the two encodings they take.
# Source: ROCm documentation, "Data types and precision support" (FNUZ on CDNA3, OCP on CDNA4, RDNA4).
FP8_TYPES = {
    "gfx942": "float8_e4m3fnuz",
    "gfx950": "float8_e4m3fn",
    "gfx1200": "float8_e4m3fn",
    "gfx1201": "float8_e4m3fn",
}
FP8_ROWS = 16  # torch's _scaled_mm takes multiples of it
FP8_CAPABILITY = (8, 9)  # of NVIDIA's: Ada, Hopper and later
PRODUCT_SOURCE = (
    f"4*sqrt(K)*u*(|A||B|) + eps*|C|: {SUM_SOURCE}, plus the rounding of the stored result"
)
# NVIDIA's fp8 units keep 13 bits behind the leading one while they add 128 products in four steps.
NARROW_GROWTH = 4 * 2.0**-13
NARROW_SOURCE = (
    "4*2^-13*(|A||B|) + eps*|C|: DeepSeek-V3 Technical Report (arXiv:2412.19437), section 3.3.2, on "
    "what Hopper's fp8 units keep between promotions to fp32"
)


class Operands:
    """Two matrices on the device, and float64 products of a sample of their rows.

    Formats that can hold the same numbers share them and the reference: fp32 and fp64 all bits of
    fp32, fp16 and bf16 the eight of bf16, fp8 its own four. One pair is kept at a time.
    """

    def __init__(self, torch: Any, device: str, size: int) -> None:
        self.torch, self.device, self.size = torch, device, size
        self._inputs = ""

    def prepare(self, inputs: str) -> None:
        """Make the pair of *inputs*, unless it is there."""
        if inputs == self._inputs:
            return
        self._inputs = inputs
        left, right = (self._matrix(seed) for seed in (1, 2))
        step = SAMPLE_EVERY if self.size > SAMPLED_ABOVE else 1
        # The odd remainder moves the sample within its tile from one tile to the next.
        starts = range(0, self.size, step)
        self.rows = self.torch.tensor(
            [min(start + start // step * 7 % step, self.size - 1) for start in starts]
        )
        sample, other = left[self.rows].double(), right.double()
        self.exact = sample @ other
        self.magnitude = sample.abs() @ other.abs()
        self.left, self.right = left.to(self.device), right.to(self.device)

    def _matrix(self, seed: int) -> Any:
        """Return a square fp32 matrix with entries in +-[0.25, 1], the same on every machine."""
        generator = self.torch.Generator()
        generator.manual_seed(seed)
        uniform = self.torch.rand(self.size, self.size, generator=generator) * 1.5 - 0.75
        values = uniform + uniform.sign() * 0.25
        if self._inputs == "half":
            values = values.to(self.torch.bfloat16).to(self.torch.float32)
        elif self._inputs == "eighth":
            values = (values * 16).round() / 16  # k/16 with k up to 16 needs four bits
        return values


def check_matmul(
    reporter: Reporter, operands: Operands, name: str, job: dict[str, Any], peaks: Any
) -> None:
    """Multiply two matrices: against a float64 reference, once more for equality, and for speed.

    With K the inner dimension, u the unit roundoff of the accumulator and eps the epsilon of the
    stored format, each element must satisfy

        |computed - exact| <= 4 * sqrt(K) * u * (|A| |B|) + eps * |exact|

    The first term is Higham and Mary's bound for a sum of K products in any order, whose rounding
    errors are independent with mean zero; 4 standard deviations of a worst case leave a factor of
    hundreds over what is seen, and still tell fp32 from TF32 at these sizes. The second is the
    rounding of the result, by nearest or by truncation. The entries are at least 1/4 in magnitude:
    matrix units that flush subnormal numbers change nothing.
    """
    torch, device, size = operands.torch, operands.device, operands.size
    multiply = product = None
    with reporter.check("device", f"matmul_{name}") as check:
        check.evidence["size"] = size
        multiply = product_of(check, operands, name, job["accelerator"])
        if multiply is not None:
            product = multiply()
            synchronize(torch, device)
            compare_rows(check, operands, product, name, job["accelerator"])
    if multiply is None or product is None or check.status == "fail":
        return
    with reporter.check("device", f"repeat_{name}") as check:
        begin = time.monotonic()
        again = multiply()
        synchronize(torch, device)
        timing = Timing(time.monotonic() - begin)
        compare_bits(check, torch, product, again, name)
    if check.status == "fail":
        return
    with reporter.check("device", f"speed_{name}") as check:
        if device != "cpu":
            timing = time_runs(torch, device, job["level"], multiply)
        tflops = rate(2.0 * size**3, timing.seconds, 1e12)
        record_speed(check, job["level"], "tflops", tflops, timing)
        judge_product(check, name, size, peaks)


def product_of(check: Check, operands: Operands, name: str, accelerator: str) -> Any:
    """Return what multiplies in a format; None, with the check skipped, where the device does not."""
    torch = operands.torch
    if name != "fp8":
        operands.prepare(FORMATS[name][0])
        dtype = getattr(torch, TORCH_TYPES[name])
        left, right = operands.left.to(dtype), operands.right.to(dtype)
        return lambda: torch.matmul(left, right)
    narrow = fp8_type(check, torch, accelerator)
    if narrow is None or lacks(check, torch, "_scaled_mm", narrow):
        return None
    if operands.size % FP8_ROWS:
        check.skip(f"torch multiplies fp8 in multiples of {FP8_ROWS} rows only")
        return None
    operands.prepare(FORMATS[name][0])
    left = operands.left.to(getattr(torch, narrow))
    right = operands.right.to(getattr(torch, narrow)).t().contiguous().t()
    one = torch.ones((), dtype=torch.float32, device=operands.device)

    def multiply() -> Any:
        how = {"scale_a": one, "scale_b": one, "use_fast_accum": False}
        done = torch._scaled_mm(left, right, out_dtype=torch.bfloat16, **how)  # noqa: SLF001
        return (
            done[0] if isinstance(done, tuple) else done
        )  # with the largest value up to torch 2.4

    try:
        multiply()
    except Exception as error:
        if not refusal(error):
            raise
        check.skip(f"torch: {refusal(error)}")
        return None
    return multiply


def fp8_type(check: Check, torch: Any, accelerator: str) -> str | None:
    """Return which fp8 the device multiplies; None, with the check skipped, where it has none."""
    if accelerator == "rocm":
        properties = torch.cuda.get_device_properties(0)
        gfx = str(getattr(properties, "gcnArchName", "")).partition(":")[0]
        if gfx not in FP8_TYPES:
            check.skip(f"{gfx or 'this GPU'} is not known to multiply fp8")
        return FP8_TYPES.get(gfx)
    if lacks(check, torch, "cuda.get_device_capability"):
        return None
    capability = tuple(torch.cuda.get_device_capability(0))
    if capability < FP8_CAPABILITY:
        check.skip(f"a GPU of compute capability {capability[0]}.{capability[1]} has no fp8")
        return None
    return "float8_e4m3fn"


def compare_rows(
    check: Check, operands: Operands, product: Any, name: str, accelerator: str
) -> None:
    """Compare a sample of whole rows, spread over all of them, with the float64 reference."""
    torch, size, rows = operands.torch, operands.size, operands.rows
    where = str(product.device)
    if where != operands.device:
        msg = f"the product is on {where}, not on {operands.device}: it was computed elsewhere"
        raise CheckFailed(msg)
    finite = int(torch.isfinite(product).sum().item())
    if finite != size * size:
        msg = f"{size * size - finite} of {size * size} results are not finite"
        raise CheckFailed(msg)
    _, unit, epsilon = FORMATS[name]
    growth, source = growth_of(size, unit), PRODUCT_SOURCE
    if name == "fp8" and accelerator == "cuda":
        growth, source = NARROW_GROWTH, NARROW_SOURCE
    bound = operands.magnitude * growth + operands.exact.abs() * epsilon
    compare(check, product[rows.to(operands.device)], operands.exact, bound, source)
    check.evidence["rows"] = len(rows)
