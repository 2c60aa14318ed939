"""What models are made of beside products: a convolution, reductions, attention, each against float64."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import time
from typing import Any

from rocmrun.probe.parts.arithmetic import (
    SUM_SOURCE,
    compare,
    compare_bits,
    growth_of,
    synchronize,
)
from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.offers import lacks, refusal

UNIT = 2.0**-24  # of fp32, in which all of these add up
EPSILON = {"float32": 2.0**-23, "float16": 2.0**-10}
# images, channels in, channels out, rows and columns; 3x3 kernels
CONVOLUTIONS = {"cpu": (2, 16, 16, 28), "gpu": (8, 64, 64, 56)}
REDUCTIONS = {"cpu": (256, 1024), "gpu": (2048, 4096)}
# batch, heads, tokens, width of a head
ATTENTIONS = {"cpu": (1, 4, 128, 64), "gpu": (2, 8, 512, 64)}
BACKENDS = ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION")
CONVOLUTION_SOURCE = (
    f"4*sqrt(K)*u*(|w|*|x|) + eps*|y| with K products a sum: {SUM_SOURCE}; what that leaves over "
    "what is seen also covers the transforms of Winograd's algorithm"
)
REDUCTION_SOURCE = f"4*sqrt(K)*u*sum|x| + eps*|sum|: {SUM_SOURCE}"
SDPA_SOURCE = (
    "(2*d + 3*eps + 4*sqrt(L)*u)*(P|V|) + eps*|O|, d the largest error of a score, "
    f"4*sqrt(D)*u*(|Q||K|)/sqrt(D) + 3*eps*|S|, doubled by the softmax: {SUM_SOURCE}, and the "
    "roundings to the format that a kernel may make of scores, weights and results"
)


def kind_of(device: str) -> str:
    """Return which of the sizes a device gets."""
    return "cpu" if device == "cpu" else "gpu"


def uniform(torch: Any, seed: int, *shape: int) -> Any:
    """Return fp32 numbers in +-1, the same on every machine."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    return torch.rand(*shape, generator=generator) * 2 - 1


def check_convolution(reporter: Reporter, torch: Any, device: str) -> None:
    """Convolve in fp32, and once more: torch promises equal bits in its deterministic mode."""
    images, width, out, side = CONVOLUTIONS[kind_of(device)]
    first = second = None
    with reporter.check("device", "convolution") as check:
        if lacks(check, torch, "nn.functional.conv2d"):
            return
        # A search for MIOpen's fastest kernel compiles many of them and takes minutes.
        os.environ.setdefault("MIOPEN_FIND_MODE", "FAST")
        inputs = uniform(torch, 3, images, width, side, side)
        weights = uniform(torch, 4, out, width, 3, 3)
        convolve = torch.nn.functional.conv2d
        there, there_weights = inputs.to(device), weights.to(device)
        begin = time.monotonic()
        first = convolve(there, there_weights, padding=1)
        synchronize(torch, device)
        middle = time.monotonic()
        second = convolve(there, there_weights, padding=1)
        synchronize(torch, device)
        check.evidence.update(
            first_seconds=round(middle - begin, 4),
            second_seconds=round(time.monotonic() - middle, 4),
            input=list(inputs.shape),
            weights=list(weights.shape),
        )
        exact = convolve(inputs.double(), weights.double(), padding=1)
        terms = convolve(inputs.double().abs(), weights.double().abs(), padding=1)
        bound = terms * growth_of(width * 9, UNIT) + exact.abs() * EPSILON["float32"]
        stays(check, first, device)
        compare(check, first, exact, bound, CONVOLUTION_SOURCE)
    if first is None or second is None or check.status == "fail":
        return
    with reporter.check("device", "repeat_convolution") as check:
        compare_bits(check, torch, first, second, "fp32")


def check_reduction(reporter: Reporter, torch: Any, device: str) -> None:
    """Add up rows, columns and everything, and find the largest of each row."""
    rows, columns = REDUCTIONS[kind_of(device)]
    with reporter.check("device", "reduction") as check:
        if lacks(check, torch, "amax", "sum", "cat"):
            return
        values = uniform(torch, 5, rows, columns)
        there, exact = values.to(device), values.double()
        check.evidence["shape"] = [rows, columns]
        largest = torch.amax(there, dim=1)
        stays(check, largest, device)
        wrong = int((largest.cpu() != torch.amax(values, dim=1)).sum().item())
        if wrong:
            msg = f"{wrong} of {rows} rows have another largest value"
            raise CheckFailed(msg)
        sums, exacts, bounds = [], [], []
        for dims, terms in (((1,), columns), ((0,), rows), ((0, 1), rows * columns)):
            sums.append(torch.sum(there, dim=dims).reshape(-1))
            exacts.append(torch.sum(exact, dim=dims).reshape(-1))
            bounds.append(torch.sum(exact.abs(), dim=dims).reshape(-1) * growth_of(terms, UNIT))
        whole = torch.cat(exacts)
        bound = torch.cat(bounds) + whole.abs() * EPSILON["float32"]
        compare(check, torch.cat(sums), whole, bound, REDUCTION_SOURCE)


def check_attention(reporter: Reporter, torch: Any, device: str) -> None:
    """Attend causally with each of torch's backends that works here; torch promises no equal bits."""
    batch, heads, tokens, width = ATTENTIONS[kind_of(device)]
    kind = "float32" if device == "cpu" else "float16"
    with reporter.check("device", "attention") as check:
        if lacks(check, torch, "nn.functional.scaled_dot_product_attention"):
            return
        dtype = getattr(torch, kind)
        # Rounded first, so that device and reference attend to the same numbers.
        query, key, value = (
            uniform(torch, seed, batch, heads, tokens, width).to(dtype) for seed in (6, 7, 8)
        )
        check.evidence.update(shape=[batch, heads, tokens, width], format=kind)
        exact, bound = attention_reference(torch, query, key, value, EPSILON[kind])
        there = [tensor.to(device) for tensor in (query, key, value)]
        attend_and_compare(check, torch, device, there, exact, bound)
        backends = attention_backends()
        check.evidence["backends"] = sorted(backends)
    if check.status == "fail":
        return
    for name, backend in backends.items():
        with reporter.check("device", f"attention:{name}") as check:
            only = importlib.import_module("torch.nn.attention").sdpa_kernel
            try:
                with only([backend]):
                    attend_and_compare(check, torch, device, there, exact, bound)
            except RuntimeError as error:
                if not refusal(error):
                    raise
                check.skip(f"torch: {refusal(error)}")


def attention_backends() -> dict[str, Any]:
    """Return torch's ways to compute attention by name; none where it lets nobody choose."""
    with contextlib.suppress(ImportError):
        known = importlib.import_module("torch.nn.attention").SDPBackend
        return {
            name.partition("_")[0].lower(): getattr(known, name)
            for name in BACKENDS
            if hasattr(known, name)
        }
    return {}


def attend_and_compare(
    check: Check, torch: Any, device: str, there: list[Any], exact: Any, bound: Any
) -> None:
    """Attend on the device and compare; whether a second time gives equal bits is recorded only."""
    attend = torch.nn.functional.scaled_dot_product_attention
    first = attend(*there, is_causal=True)
    second = attend(*there, is_causal=True)
    synchronize(torch, device)
    stays(check, first, device)
    check.evidence["same_bits_twice"] = int((first != second).sum().item()) == 0
    compare(check, first, exact, bound, SDPA_SOURCE)


def attention_reference(
    torch: Any, query: Any, key: Any, value: Any, epsilon: float
) -> tuple[Any, Any]:
    """Return causal attention in float64, and how far a kernel of the format may be off."""
    query, key, value = query.double(), key.double(), value.double()
    tokens, width = query.shape[-2], query.shape[-1]
    scale = 1 / math.sqrt(width)
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    scores = ((query @ key.transpose(-1, -2)) * scale).masked_fill(future, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    exact = weights @ value
    terms = (query.abs() @ key.abs().transpose(-1, -2)) * scale
    error = terms * growth_of(width, UNIT) + scores.masked_fill(future, 0.0).abs() * 3 * epsilon
    worst = error.masked_fill(future, 0.0).amax(dim=-1, keepdim=True)
    relative = 2 * worst + 3 * epsilon + growth_of(tokens, UNIT)
    return exact, relative * (weights @ value.abs()) + exact.abs() * epsilon


def stays(check: Check, result: Any, device: str) -> None:
    """Fail where a result is not on the device that was to compute it."""
    check.evidence["device"] = str(result.device)
    if str(result.device) != device:
        msg = f"the result is on {result.device}, not on {device}: it was computed elsewhere"
        raise CheckFailed(msg)
