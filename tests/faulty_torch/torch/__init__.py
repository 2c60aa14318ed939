"""The real torch with something made wrong, for faults that real hardware shows when it is broken.

This folder stands first on the module path; the real torch is found behind it and takes its place.
The file FAULTS beside this package holds JSON:
    faults: what goes wrong, by the names of FAULTS below
    device: in which process only, by its CUDA_VISIBLE_DEVICES; absent is in every one
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
SCENE: dict[str, Any] = json.loads((HERE / "FAULTS").read_text())


def real_torch() -> Any:
    """Import the torch that this one hides."""
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != HERE]
    del sys.modules["torch"]
    return importlib.import_module("torch")


def spoiled(function: Callable[..., Any], spoil: Callable[[Any, list[Any]], Any]) -> Any:
    """Return *function* with its result spoiled."""
    calls: list[Any] = []

    def broken(*args: Any, **options: Any) -> Any:
        calls.append(None)
        return spoil(function(*args, **options), calls)

    return broken


def first_value(change: Callable[[Any], Any], dtype: str) -> Callable[[Any, list[Any]], Any]:
    """Return what changes the first value of results of a type."""

    def spoil(result: Any, _calls: list[Any]) -> Any:
        if str(result.dtype) == f"torch.{dtype}" and result.dim():
            first = (0,) * result.dim()
            result[first] = change(result[first].item())
        return result

    return spoil


def next_bit(result: Any, calls: list[Any]) -> Any:
    """Change the last bit of one value, from the second product in fp32 on."""
    if str(result.dtype) == "torch.float32":
        SEEN.append(None)
        if len(SEEN) > 1:
            result.view(torch.int32)[(0,) * result.dim()] += 1
    del calls
    return result


SEEN: list[Any] = []


def use_up_memory(_result: Any, _calls: list[Any]) -> Any:
    """Take memory until the kernel has had enough."""
    held = []
    while True:
        held.append(b"\x01" * (64 << 20))


def thrice(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does its work three times."""

    def slow(*args: Any, **options: Any) -> Any:
        for _ in range(2):
            function(*args, **options)
        return function(*args, **options)

    return slow


def break_ranks(distributed: Any, faults: list[str]) -> None:
    """End rank 1 in a broadcast; change what rank 0 gets of a reduce_scatter."""
    broadcast, scatter = distributed.broadcast, distributed.reduce_scatter_tensor

    def killed(*args: Any, **options: Any) -> Any:
        if distributed.get_rank() == 1:
            os.write(1, b"NCCL WARN the last words of this rank\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return broadcast(*args, **options)

    def changed(result: Any, *args: Any, **options: Any) -> Any:
        done = scatter(result, *args, **options)
        if distributed.get_rank() == 0:
            result[3] += 1
        return done

    if "rank_killed" in faults:
        distributed.broadcast = killed
    if "rank_wrong" in faults:
        distributed.reduce_scatter_tensor = changed


def break_torch(real: Any, faults: list[str]) -> None:
    """Make wrong what *faults* name."""
    functional = real.nn.functional
    if "convolution" in faults:
        functional.conv2d = spoiled(functional.conv2d, first_value(lambda x: x + 1, "float32"))
    if "reduction" in faults:
        real.sum = spoiled(real.sum, first_value(lambda x: x + 100, "float32"))
    if "attention" in faults:
        attend = functional.scaled_dot_product_attention
        for dtype in ("float32", "float16"):
            attend = spoiled(attend, first_value(lambda x: x + 1, dtype))
        functional.scaled_dot_product_attention = attend
    if "memory" in faults:
        real.Tensor.fill_ = spoiled(real.Tensor.fill_, first_value(lambda x: x ^ 4, "int64"))
    break_products(real, faults)
    break_ranks(real.distributed, faults)


def break_products(real: Any, faults: list[str]) -> None:
    """Make matrix products wrong, slow or greedy."""
    spoilers = {
        "product": first_value(lambda x: x + 50, "bfloat16"),
        "nan": first_value(lambda _: float("nan"), "float16"),
        "bit": next_bit,
        "memory_limit": use_up_memory,
    }
    for name, spoil in spoilers.items():
        if name in faults:
            real.matmul = spoiled(real.matmul, spoil)
    if "slow" in faults:
        real.matmul = thrice(real.matmul)


torch = real_torch()
if SCENE.get("device") in (None, os.environ.get("CUDA_VISIBLE_DEVICES")):
    break_torch(torch, SCENE["faults"])
