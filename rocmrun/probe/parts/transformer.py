"""A causal transformer in plain torch operations, and what fp32 rounding may do to one."""

from __future__ import annotations

import math
from typing import Any

from rocmrun.probe.parts.arithmetic import CONFIDENCE

# Small enough for a float64 run on a few processors, large enough for tiled kernels on a GPU.
MODEL_SHAPES = {
    "cpu": {"layers": 2, "width": 128, "heads": 4, "words": 512, "context": 256},
    "gpu": {"layers": 4, "width": 512, "heads": 8, "words": 2048, "context": 512},
}
FP32_UNIT = 2.0**-24
# Roundings of one elementwise function: exp, division and their like are good to about 2 ulp each.
FUNCTION_ROUNDINGS = 16.0


class PlainOperations:
    """Operations as torch does them, in whatever format the weights have."""

    def product(self, left: Any, right: Any) -> Any:
        """Return a matrix product."""
        return left @ right

    def rounded(self, value: Any, terms: int = 1) -> Any:  # noqa: ARG002 - the other one wants it
        """Return the result of an elementwise function, or of one that sums *terms* values."""
        return value


class RoundedAsFp32:
    """Operations in float64, each result moved by the most that fp32 rounding may move it."""

    def __init__(self, torch: Any, seed: int) -> None:
        self._torch = torch
        self._random = torch.Generator()
        self._random.manual_seed(seed)

    def product(self, left: Any, right: Any) -> Any:
        """Return a matrix product and its rounding."""
        bound = (left.abs() @ right.abs()) * (CONFIDENCE * math.sqrt(left.shape[-1]) * FP32_UNIT)
        return left @ right + bound * self._signs(bound)

    def rounded(self, value: Any, terms: int = 1) -> Any:
        """Return *value* and its rounding."""
        share = (FUNCTION_ROUNDINGS + CONFIDENCE * math.sqrt(terms)) * FP32_UNIT
        return value * (1.0 + share * self._signs(value))

    def _signs(self, like: Any) -> Any:
        drawn = self._torch.randint(0, 2, like.shape, generator=self._random)
        return drawn.double() * 2.0 - 1.0


PLAIN = PlainOperations()


def made_weights(torch: Any, shape: dict[str, int]) -> dict[str, Any]:
    """Return seeded weights; each product keeps the size of what goes in."""
    random = torch.Generator()
    random.manual_seed(20)
    width = shape["width"]
    sizes = {
        "words": (shape["words"], width),
        "places": (shape["context"], width),
        "head": (width, shape["words"]),
    }
    for layer in range(shape["layers"]):
        sizes[f"{layer}.attention"] = (width, 3 * width)
        sizes[f"{layer}.merge"] = (width, width)
        sizes[f"{layer}.widen"] = (width, 4 * width)
        sizes[f"{layer}.narrow"] = (4 * width, width)
    return {
        name: torch.randn(*size, generator=random) / math.sqrt(size[0] if "." in name else width)
        for name, size in sizes.items()
    }


def tokens_for(torch: Any, shape: dict[str, int], rows: int, columns: int, seed: int) -> Any:
    """Return a seeded input."""
    random = torch.Generator()
    random.manual_seed(seed)
    return torch.randint(0, shape["words"], (rows, columns), generator=random)


def logits_of(
    torch: Any,
    shape: dict[str, int],
    weights: dict[str, Any],
    tokens: Any,
    operations: Any,
    cache: dict[int, tuple[Any, Any]] | None = None,
) -> Any:
    """Return the logits after every token; *cache* holds keys and values of what came before."""
    begin = cache[0][0].shape[2] if cache else 0
    end = begin + tokens.shape[1]
    flow = weights["words"][tokens] + weights["places"][begin:end]
    for layer in range(shape["layers"]):
        normal = normalised(operations, flow)
        mixed = operations.product(normal, weights[f"{layer}.attention"])
        seen = attended(torch, shape, mixed, operations, cache, layer)
        merged = operations.product(seen, weights[f"{layer}.merge"])
        flow = operations.rounded(flow + merged)
        wide = operations.product(normalised(operations, flow), weights[f"{layer}.widen"])
        active = operations.rounded(torch.nn.functional.silu(wide))
        flow = operations.rounded(flow + operations.product(active, weights[f"{layer}.narrow"]))
    return operations.product(normalised(operations, flow), weights["head"])


def normalised(operations: Any, flow: Any) -> Any:
    """Return each vector at length one per element (RMSNorm without a scale)."""
    mean = (flow * flow).mean(dim=-1, keepdim=True)
    return operations.rounded(flow * (mean + 1e-6).rsqrt(), flow.shape[-1])


def attended(
    torch: Any,
    shape: dict[str, int],
    mixed: Any,
    operations: Any,
    cache: dict[int, tuple[Any, Any]] | None,
    layer: int,
) -> Any:
    """Return what each token takes from itself and those before it."""
    rows, columns, _ = mixed.shape
    heads = shape["heads"]
    size = shape["width"] // heads
    parts = mixed.view(rows, columns, 3, heads, size).permute(2, 0, 3, 1, 4)
    query, key, value = parts[0], parts[1], parts[2]
    if cache is not None:
        if layer in cache:
            key = torch.cat([cache[layer][0], key], dim=2)
            value = torch.cat([cache[layer][1], value], dim=2)
        cache[layer] = (key, value)
    scores = operations.product(query, key.transpose(-1, -2)) / math.sqrt(size)
    before = key.shape[2] - columns
    future = torch.ones(columns, key.shape[2], dtype=torch.bool, device=mixed.device)
    scores = scores.masked_fill(future.triu(before + 1), float("-inf"))
    shares = operations.rounded(torch.softmax(scores, dim=-1), key.shape[2])
    joined = operations.product(shares, value)
    return joined.permute(0, 2, 1, 3).reshape(rows, columns, shape["width"])


def decoded(
    torch: Any, shape: dict[str, int], weights: dict[str, Any], prompt: Any, count: int
) -> Any:
    """Return the *count* likeliest tokens that follow *prompt*, one after the other."""
    cache: dict[int, tuple[Any, Any]] = {}
    logits = logits_of(torch, shape, weights, prompt, PLAIN, cache)
    written = [logits[:, -1].argmax(dim=-1, keepdim=True)]
    while len(written) < count:
        logits = logits_of(torch, shape, weights, written[-1], PLAIN, cache)
        written.append(logits[:, -1].argmax(dim=-1, keepdim=True))
    return torch.cat(written, dim=1)
