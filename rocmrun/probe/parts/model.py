"""A small transformer with seeded weights: saved, loaded, asked, compared, repeated."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from rocmrun.probe.parts.arithmetic import rate, synchronize
from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.transformer import (
    MODEL_SHAPES,
    PLAIN,
    RoundedAsFp32,
    decoded,
    logits_of,
    made_weights,
    tokens_for,
)

SHORT_INPUT = 8
BATCH_ROWS = 4
DECODED_TOKENS = 24
MODEL_REPEATS = 10
PERTURBED_RUNS = 2
MODEL_BOUND_SOURCE = (
    "largest change of a logit in a float64 run whose every operation is moved, with random signs, by what "
    "fp32 rounding may do to it: 4*sqrt(K)*u*(|A||B|), Higham and Mary, SIAM J. Sci. Comput. 41 (2019); "
    "method: Parker, Monte Carlo Arithmetic, UCLA CSD-970002 (1997)"
)
DEVICE_GROWTH_SOURCE = (
    "torch.cuda.memory_allocated counts live tensors: repeats that keep none end where they began"
)
# mallopt(3): a block below M_MMAP_THRESHOLD, which adapts up to 32 MiB, may stay with the process.
HOST_GROWTH_BYTES = 32 << 20
HOST_GROWTH_SOURCE = (
    "DEFAULT_MMAP_THRESHOLD_MAX of glibc, mallopt(3): freed blocks below 32 MiB may stay"
)
MODEL_NEEDS = ("save", "load", "randn", "randint", "softmax", "stack", "cat", "nn", "no_grad")


def stage_model(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Use the device as a language model does: load weights, read, write, and do it again."""
    torch = state["torch"]
    device = "cpu" if job["accelerator"] == "cpu" else "cuda:0"
    shape = MODEL_SHAPES["cpu" if device == "cpu" else "gpu"]
    weights: dict[str, Any] = {}
    there: dict[str, Any] = {}
    with reporter.check("model", "load") as check:
        missing = [name for name in MODEL_NEEDS if not hasattr(torch, name)]
        if missing:
            check.skip(f"this torch has no {', '.join(missing)}")
        else:
            weights = made_weights(torch, shape)
            there = check_load(check, torch, weights, device)
    if check.status != "pass":
        return
    exact = {name: tensor.double() for name, tensor in weights.items()}
    if (
        device == "cpu"
    ):  # products this small gain nothing from threads, and lose much where others run
        torch.set_num_threads(1)
    with torch.no_grad():
        for name, rows, columns in (
            ("short_input", 1, SHORT_INPUT),
            ("long_input", 1, shape["context"]),
            ("batch", BATCH_ROWS, shape["context"] // 4),
        ):
            with reporter.check("model", name) as check:
                tokens = tokens_for(torch, shape, rows, columns, seed=rows + columns)
                check_logits(check, torch, shape, exact, there, tokens, device)
        with reporter.check("model", "greedy_decode") as check:
            check_decode(check, torch, shape, exact, there, device)
        with reporter.check("model", "memory_growth") as check:
            check_growth(check, torch, shape, there, device)


def check_load(check: Check, torch: Any, weights: dict[str, Any], device: str) -> dict[str, Any]:
    """Save the weights, load them onto the device, and compare every bit."""
    folder = writable_folder()
    check.evidence["folder"] = str(folder.parent)
    try:
        path = folder / "weights.pt"
        begin = time.monotonic()
        torch.save(weights, path)
        saved = time.monotonic()
        size = path.stat().st_size
        try:
            there = torch.load(path, map_location=device, weights_only=True)
            check.evidence["weights_only"] = True
        except TypeError:  # before torch 1.13
            there = torch.load(path, map_location=device)
            check.evidence["weights_only"] = False
        synchronize(torch, device)
        loaded = time.monotonic()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    check.evidence.update(
        bytes=size,
        save_gb_per_s=rate(size, saved - begin),
        load_gb_per_s=rate(size, loaded - saved),
    )
    changed = [name for name in weights if not torch.equal(weights[name], there[name].cpu())]
    if changed:
        msg = f"{len(changed)} of {len(weights)} tensors are not what was saved: {', '.join(changed[:5])}"
        raise CheckFailed(msg)
    elsewhere = [name for name in there if str(there[name].device) != device]
    if elsewhere:
        msg = f"{elsewhere[0]} was loaded onto {there[elsewhere[0]].device}, not {device}"
        raise CheckFailed(msg)
    return dict(there)


def writable_folder() -> Path:
    """Return a new folder in the cache, or where temporary files go.

    Raises:
        CheckFailed: nothing can be written anywhere.
    """
    refused = []
    for place in (os.environ.get("XDG_CACHE_HOME"), os.environ.get("TMPDIR"), "/tmp"):
        if not place:
            continue
        try:
            Path(place).mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(prefix="rocmrun-probe-model-", dir=place))
        except OSError as error:
            refused.append(f"{place}: {error.strerror}")
    msg = f"no folder can be written to: {', '.join(refused)}"
    raise CheckFailed(msg)


def logit_bound(torch: Any, shape: dict[str, int], exact: Any, tokens: Any) -> tuple[Any, float]:
    """Return the logits in float64, and how far fp32 rounding may move one of them."""
    right = logits_of(torch, shape, exact, tokens, PLAIN)
    moved = [
        logits_of(torch, shape, exact, tokens, RoundedAsFp32(torch, seed))
        for seed in range(PERTURBED_RUNS)
    ]
    return right, max(float((logits - right).abs().max().item()) for logits in moved)


def check_logits(
    check: Check,
    torch: Any,
    shape: dict[str, int],
    exact: dict[str, Any],
    there: dict[str, Any],
    tokens: Any,
    device: str,
) -> None:
    """Read an input on the device and compare every logit with a float64 run on the processor."""
    logits_of(torch, shape, there, tokens.to(device), PLAIN)  # what is slow only once
    synchronize(torch, device)
    begin = time.monotonic()
    seen = logits_of(torch, shape, there, tokens.to(device), PLAIN)
    synchronize(torch, device)
    seconds = time.monotonic() - begin
    check.evidence.update(
        rows=tokens.shape[0],
        tokens=tokens.shape[1],
        tokens_per_second=round(tokens.numel() / max(seconds, 1e-9), 1),
    )
    right, bound = logit_bound(torch, shape, exact, tokens)
    error = (seen.cpu().double() - right).abs()
    unusable = int((~torch.isfinite(error)).sum().item())
    if unusable:
        msg = f"{unusable} of {error.numel()} logits are not finite"
        raise CheckFailed(msg)
    worst = float(error.max().item())
    wrong = int((error > bound).sum().item())
    check.evidence.update(largest_error=worst, worst_share_of_bound=worst / bound, wrong=wrong)
    check.threshold, check.threshold_source = bound, MODEL_BOUND_SOURCE
    if wrong:
        msg = f"{wrong} of {error.numel()} logits are wrong, the worst by {worst / bound:.3g} times the error bound"
        raise CheckFailed(msg)


def check_decode(
    check: Check,
    torch: Any,
    shape: dict[str, int],
    exact: dict[str, Any],
    there: dict[str, Any],
    device: str,
) -> None:
    """Write tokens one by one, with a cache, and ask the float64 run whether each was the likeliest.

    A token counts as equal where the float64 run puts it so close to its own choice that rounding
    decides between the two.
    """
    prompt = tokens_for(torch, shape, 1, SHORT_INPUT, seed=1)
    first = decoded(torch, shape, there, prompt.to(device), DECODED_TOKENS)
    synchronize(torch, device)
    begin = time.monotonic()
    written = decoded(torch, shape, there, prompt.to(device), DECODED_TOKENS)
    synchronize(torch, device)
    seconds = time.monotonic() - begin
    whole = torch.cat([prompt, written.cpu()], dim=1)
    right, bound = logit_bound(torch, shape, exact, whole[:, :-1])
    asked = right[0, SHORT_INPUT - 1 :]
    behind = asked.max(dim=-1).values - asked.gather(1, written.cpu()[0].unsqueeze(1))[:, 0]
    equal = int((behind == 0).sum().item())
    wrong = int((behind > 2 * bound).sum().item())
    repeated = bool(torch.equal(first, written))
    check.evidence.update(
        tokens=DECODED_TOKENS,
        equal=equal,
        undecided=DECODED_TOKENS - equal - wrong,
        repeated=repeated,
        tokens_per_second=round(DECODED_TOKENS / max(seconds, 1e-9), 1),
    )
    check.threshold, check.threshold_source = 2 * bound, f"twice the {MODEL_BOUND_SOURCE}"
    if wrong:
        msg = f"{wrong} of {DECODED_TOKENS} tokens are not the likeliest"
        raise CheckFailed(msg)
    if not repeated and equal == DECODED_TOKENS:
        msg = "two runs on the same prompt wrote different tokens"
        raise CheckFailed(msg)


def check_growth(
    check: Check, torch: Any, shape: dict[str, int], there: dict[str, Any], device: str
) -> None:
    """Repeat one input and see whether memory grows on, once everybody has warmed up."""
    tokens = tokens_for(torch, shape, 1, SHORT_INPUT, seed=2).to(device)

    def repeat() -> tuple[int, int]:
        for _ in range(MODEL_REPEATS):
            decoded(torch, shape, there, tokens, 2)
        synchronize(torch, device)
        return (0 if device == "cpu" else torch.cuda.memory_allocated()), resident_bytes()

    repeat()
    before, after = repeat(), repeat()
    on_device, on_host = after[0] - before[0], after[1] - before[1]
    check.evidence.update(repeats=MODEL_REPEATS, host_bytes=on_host)
    if device != "cpu":
        check.evidence["device_bytes"] = on_device
    check.threshold, check.threshold_source = float(HOST_GROWTH_BYTES), HOST_GROWTH_SOURCE
    if on_host > HOST_GROWTH_BYTES:
        check.degrade(f"{MODEL_REPEATS} repeats left {on_host >> 20} MiB more in the process")
    if on_device > 0:
        check.threshold, check.threshold_source = 0.0, DEVICE_GROWTH_SOURCE
        msg = f"{MODEL_REPEATS} repeats left {on_device} bytes more on the device"
        raise CheckFailed(msg)


def resident_bytes() -> int:
    """Return how much memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
