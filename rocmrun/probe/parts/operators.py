"""Extensions with kernels of their own: do they import, for which runtime were they built, do they compute?"""

from __future__ import annotations

import importlib
import importlib.util
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.events import Events, made_check
from rocmrun.probe.parts.linkage import libraries_below, linkage, mapped_libraries, runtime_of
from rocmrun.probe.parts.operator_calls import CALLED_ON_CPU, CALLS
from rocmrun.probe.parts.processes import Child, device_environment
from rocmrun.probe.parts.waves import wave_size

# Looked for in every image; a profile names further ones, and those that must be there.
KNOWN_OPERATORS = (
    "flash_attn",
    "aiter",
    "triton",
    "bitsandbytes",
    "vllm",
    "xformers",
    "torchvision",
    "torchaudio",
    "flashinfer",
    "sgl_kernel",
)
AT_ONCE = 4
KEPT_LIBRARIES = 8
# What helps on ROCm, and who says so.
ON_ROCM = {
    "flash_attn": (
        "build flash-attention with ROCm (composable_kernel or Triton backend), or use torch's "
        "scaled_dot_product_attention",
        "https://github.com/Dao-AILab/flash-attention#amd-rocm-support",
    ),
    "aiter": (
        "aiter asks hipconfig for ROCm's version as it is imported, and compiles into its own package: "
        "ROCm's development files must be there, and <aiter>/jit writable for the workload's user",
        "https://github.com/ROCm/aiter/issues/887",
    ),
    "triton": (
        "take the Triton that belongs to the ROCm build of torch (pytorch-triton-rocm)",
        "https://github.com/pytorch/pytorch/issues/112997",
    ),
    "bitsandbytes": (
        "it needs libbitsandbytes_rocmNN.so, NN from torch.version.hip and not from /opt/rocm",
        "https://github.com/ROCm/bitsandbytes/issues/81",
    ),
    "vllm": (
        "take vLLM's wheels or image for ROCm, which bring their own torch",
        "https://docs.vllm.ai/en/latest/getting_started/installation/gpu/",
    ),
    "xformers": (
        "take the wheel from the index of the ROCm build of torch (download.pytorch.org/whl/rocm…)",
        "https://github.com/facebookresearch/xformers/issues/1365",
    ),
    "torchvision": (
        "take it from the same index as the ROCm build of torch",
        "https://github.com/pytorch/pytorch/issues/139410",
    ),
    "torchaudio": (
        "take it from the same index as the ROCm build of torch",
        "https://github.com/pytorch/pytorch/issues/139410",
    ),
    "flashinfer": (
        "AMD's port of it is a package of its own",
        "https://github.com/AMD-Ecosystem/flashinfer",
    ),
}
CUDA_ON_ROCM = (
    "rebuild it for this torch: a ROCm torch has none of CUDA's libraries",
    "https://github.com/huggingface/autotrain-advanced/issues/735",
)


def stage_operators_installed(
    _job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]
) -> None:
    """Look for the known extensions without importing any."""
    with reporter.check("operators", "installed") as check:
        found = {name: place_of(name) for name in KNOWN_OPERATORS}
        check.evidence["found"] = {name: place for name, place in found.items() if place}


def place_of(name: str) -> str | None:
    """Return where a module's outermost package is; None when it is not here."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    return places[0] if places else spec.origin


def stage_operator(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Import one extension, tell what it is linked to, and call it once where that is cheap."""
    with reporter.check("operators", job["module"]) as check:
        check.evidence["named"] = job["named"]
        check_operator(check, job, state)


def check_operator(check: Check, job: dict[str, Any], state: dict[str, Any]) -> None:
    """Judge the files before the import, which may end the process, and what was loaded after it."""
    name = job["module"]
    place = place_of(name)
    if place is None:
        msg = f"there is no module {name.partition('.')[0]} here"
        raise CheckFailed(msg)
    libraries = own_libraries(name, place)
    judge_linkage(check, linkage(libraries), job["accelerator"])
    torch = torch_or_none(state)  # most extensions find its libraries only once it is imported
    before = mapped_libraries()
    module = importlib.import_module(name)
    loaded = sorted((mapped_libraries() - before) & {os.path.realpath(path) for path in libraries})
    if loaded:
        judge_linkage(check, linkage(loaded), job["accelerator"])
    check.evidence.update(version=version_of(name, module), path=place, loaded=len(loaded))
    call, device = CALLS.get(name), job["device"]
    if call is None:
        check.evidence["not_called"] = "it has no call that is known to be cheap"
    elif device is None or torch is None:
        check.evidence["not_called"] = "there is no device that passed on its own, or no torch"
    elif device == "cpu" and name not in CALLED_ON_CPU:
        check.evidence["not_called"] = "it computes on GPUs only"
    else:
        check.evidence["called"] = call(check, torch, module, device)


def own_libraries(name: str, place: str) -> list[str]:
    """Return the shared libraries of a package: those below it, and those that it installed beside it."""
    import importlib.metadata  # takes as long as all other imports of this program together

    beside: list[str] = []
    try:
        files = importlib.metadata.files(name.partition(".")[0]) or []
        beside = [str(file.locate()) for file in files if ".so" in file.suffixes]
    except importlib.metadata.PackageNotFoundError:
        pass
    return list(dict.fromkeys(libraries_below([place, *beside])))


def judge_linkage(check: Check, by_runtime: dict[str, list[str]], accelerator: str) -> None:
    """Record what the libraries are linked to; those of the other runtime alone cannot work here."""
    runtime = runtime_of(by_runtime)
    check.evidence["linked"] = runtime
    check.evidence["libraries"] = {
        kind: found[:KEPT_LIBRARIES] for kind, found in by_runtime.items()
    }
    other = {"rocm": "cuda", "cuda": "rocm"}.get(accelerator)
    if runtime == other:
        msg = f"it is linked against {runtime.upper()}, this is {accelerator}: {by_runtime[runtime][0]}"
        raise CheckFailed(msg)


def torch_or_none(state: dict[str, Any]) -> Any:
    """Import torch; an image may hold extensions and no torch."""
    try:
        state["torch"] = importlib.import_module("torch")
    except Exception:
        return None
    return state["torch"]


def version_of(name: str, module: Any) -> str | None:
    """Return a module's version, by its own word or by its package's."""
    import importlib.metadata

    version = getattr(module, "__version__", None)
    if version is not None:
        return str(version)
    try:
        return importlib.metadata.version(name.partition(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return None


def judged_operator(check: dict[str, Any], accelerator: str, *, named: bool) -> dict[str, Any]:
    """Say what helps on ROCm; what nobody asked for is no failure of the plan, only of the image."""
    if check["status"] != "fail":
        return check
    reason, linked = check["reason"], check["evidence"].get("linked")
    if accelerator == "cpu" and linked in ("rocm", "cuda"):
        reason += f"; its libraries are linked against {linked.upper()}, which is not here"
    if accelerator == "rocm":
        outermost = check["name"].partition(".")[0]
        known = ON_ROCM.get(outermost)
        if known is None and linked == "cuda":
            known = CUDA_ON_ROCM
        if known is not None:
            reason += f"; {known[0]} ({known[1]})"
    return {**check, "status": "fail" if named else "degraded", "reason": reason}


def run_operators(
    settings: dict[str, Any],
    events: Events,
    spawn: Callable[[str, dict[str, str]], Child],
    close: Callable[[Child], None],
    devices: dict[Any, bool],
    timeout: Callable[[str], float],
) -> None:
    """Try every extension that the profile names or the image holds, each in a process of its own.

    *devices* says which are here and whether each passed on its own: the first that did is called on.
    """
    first = next((index for index, good in devices.items() if good), None)
    device = first if first in ("cpu", None) else "cuda"
    environment = dict(os.environ)
    if first is not None and device == "cuda":
        environment = device_environment(settings["accelerator"], first, 1)
    found = installed(events, spawn, close, timeout("environment"))
    modules = list(dict.fromkeys([*settings["operators"], *found]))

    def examine(module: str) -> None:
        named = module in settings["operators"]
        child = spawn(f"operator {module}", environment)
        child.on_doing = lambda group, name: events.doing(group, name, None)
        job = {"stage": "operator", "module": module, "named": named, "device": device}
        job["accelerator"] = settings["accelerator"]

        def report(check: dict[str, Any]) -> None:
            events.check(judged_operator(check, settings["accelerator"], named=named))

        outcome = child.run(job, timeout("operators"), report)
        if outcome.ended != "done" and not outcome.checks:
            made = made_check("operators", module, "fail", reason=outcome.reason)
            report({**made, "seconds": round(outcome.seconds, 4), "evidence": outcome.evidence})
        close(child)

    if modules:
        with ThreadPoolExecutor(min(AT_ONCE, wave_size(len(modules)))) as pool:
            list(pool.map(examine, modules))


def installed(
    events: Events,
    spawn: Callable[[str, dict[str, str]], Child],
    close: Callable[[Child], None],
    seconds: float,
) -> list[str]:
    """Return which of the known extensions the image holds."""
    child = spawn("operators", dict(os.environ))
    outcome = child.run({"stage": "operators_installed"}, seconds, events.check)
    if outcome.ended != "done" and not outcome.checks:
        events.fail("operators", "installed", outcome.reason, evidence=outcome.evidence)
    close(child)
    return [name for check in outcome.checks for name in check["evidence"].get("found", {})]
