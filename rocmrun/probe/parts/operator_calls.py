"""One cheap call of each known extension, against what it should give."""

from __future__ import annotations

import importlib
import importlib.util
import math
import tempfile
from pathlib import Path
from typing import Any, Callable

from rocmrun.probe.parts.checks import Check, CheckFailed

# The weights of a softmax add up to 1 and the values are at most 1 in magnitude: rounding the weights
# and the result to fp16 (2**-11 each, relative) moves a result by 2**-10 at most; the rest is room for
# the exponentials, which kernels approximate.
EXTENSION_ATTENTION_BOUND = 2.0**-8
EXTENSION_ATTENTION_SOURCE = (
    "weights and results rounded to fp16, 2**-11 each, of values up to 1; four times that"
)
# bitsandbytes' 8-bit code has its widest steps between 0.1 and 1 of a block's largest value: 64 of them.
QUANTISED_BOUND = 0.9 / 64
QUANTISED_SOURCE = "the widest step of the dynamic 8-bit code, 0.9/64 of a block's largest value"
TRITON_KERNEL = """
import triton
import triton.language as tl


@triton.jit
def add(left, right, result, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    total = tl.load(left + index, mask=inside) + tl.load(right + index, mask=inside)
    tl.store(result + index, total, mask=inside)
"""


def bounded_error(check: Check, error: float, bound: float, source: str) -> None:
    """Fail unless *error* is within *bound*; NaN is not."""
    check.evidence["largest_error"] = error
    check.threshold, check.threshold_source = bound, source
    if not error <= bound:
        msg = f"the result is off by {error:.3g}, more than {bound:.3g}"
        raise CheckFailed(msg)


def half_attention_inputs(torch: Any) -> list[Any]:
    """Return query, key and value as (batch, sequence, heads, width), in [-1, 1)."""
    generator = torch.Generator()
    generator.manual_seed(3)
    shape = (1, 128, 4, 64)
    return [(torch.rand(*shape, generator=generator) * 2 - 1).half() for _ in range(3)]


def attention_in_float64(torch: Any, query: Any, key: Any, value: Any) -> Any:
    """Return the attention in float64, on the host."""
    q, k, v = (tensor.double().transpose(1, 2) for tensor in (query, key, value))
    weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ v).transpose(1, 2)


def check_extension_attention(
    check: Check, torch: Any, attention: Callable[..., Any], device: str
) -> None:
    """Compare an attention of this layout with the exact one."""
    inputs = half_attention_inputs(torch)
    result = attention(*(tensor.to(device) for tensor in inputs)).cpu().double()
    error = float((result - attention_in_float64(torch, *inputs)).abs().max().item())
    bounded_error(check, error, EXTENSION_ATTENTION_BOUND, EXTENSION_ATTENTION_SOURCE)


def call_flash_attn(check: Check, torch: Any, module: Any, device: str) -> str:
    """Call flash_attn_func."""
    check_extension_attention(check, torch, module.flash_attn_func, device)
    return "flash_attn_func"


def call_xformers(check: Check, torch: Any, _module: Any, device: str) -> str:
    """Call memory_efficient_attention."""
    operators = importlib.import_module("xformers.ops")
    check_extension_attention(check, torch, operators.memory_efficient_attention, device)
    return "ops.memory_efficient_attention"


def call_bitsandbytes(check: Check, torch: Any, module: Any, device: str) -> str:
    """Quantise to 8 bits and back."""
    functional = module.functional
    values = (torch.arange(4096, dtype=torch.float32) / 2048 - 1).to(device)
    quantised, state = functional.quantize_blockwise(values)
    error = float((functional.dequantize_blockwise(quantised, state) - values).abs().max().item())
    bounded_error(check, error, QUANTISED_BOUND, QUANTISED_SOURCE)
    return "functional.quantize_blockwise"


def call_triton(check: Check, torch: Any, _module: Any, device: str) -> str:
    """Compile and run a vector addition; Triton reads a kernel's source from its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "triton_add.py"
        path.write_text(TRITON_KERNEL)
        spec = importlib.util.spec_from_file_location("triton_add", path)
        assert spec is not None
        assert spec.loader is not None
        kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(kernels)
        left = torch.arange(5000, dtype=torch.float32).to(device)
        right, result = left * 2, torch.zeros_like(left)
        kernels.add[(5,)](left, right, result, 5000, BLOCK=1024)
        wrong = int((result != left * 3).sum().item())
    check.evidence["wrong"] = wrong
    if wrong:
        msg = f"{wrong} of 5000 sums are wrong"
        raise CheckFailed(msg)
    return "a vector addition"


def call_torchvision(check: Check, torch: Any, module: Any, device: str) -> str:
    """Drop the one of three boxes that another covers."""
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]]).to(device)
    kept = module.ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]).to(device), 0.5).cpu().tolist()
    check.evidence["kept"] = kept
    if kept != [0, 2]:
        msg = f"boxes {kept} were kept, not [0, 2]"
        raise CheckFailed(msg)
    return "ops.nms"


def call_vllm(check: Check, _torch: Any, _module: Any, _device: str) -> str:
    """Ask which platform vLLM would serve on; it looks for ROCm through amdsmi, not through torch."""
    return judged_platform(check, importlib.import_module("vllm.platforms").current_platform)


def judged_platform(check: Check, platform: Any) -> str:
    """Fail unless vLLM's platform is one with GPUs."""
    check.evidence["platform"] = type(platform).__name__
    if not platform.is_cuda_alike():
        msg = f"vLLM finds no GPU here: its platform is {type(platform).__name__}"
        raise CheckFailed(msg)
    return "platforms.current_platform"


# (check, torch, module, device) -> what was called. The others are imported and no more: aiter compiles for
# minutes when it is first called, and of the user's own nothing is known.
CALLS: dict[str, Callable[[Check, Any, Any, str], str]] = {
    "flash_attn": call_flash_attn,
    "xformers": call_xformers,
    "bitsandbytes": call_bitsandbytes,
    "triton": call_triton,
    "torchvision": call_torchvision,
    "vllm": call_vllm,
}
# Those that compute on a processor as well.
CALLED_ON_CPU = ("bitsandbytes", "torchvision")
