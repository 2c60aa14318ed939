"""What torch was built for, and how many devices it finds."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter, described
from rocmrun.probe.parts.machine import is_visibility
from rocmrun.probe.parts.offers import answer
from rocmrun.probe.parts.other_python import torch_elsewhere
from rocmrun.probe.parts.overrides import answers_as, check_override, override_nodes, overrides
from rocmrun.probe.parts.targets import code_for


def stage_import(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Import torch. Told when it fails, and once when it does not."""
    with reporter.check("build", "torch", quiet=not job["told"]) as check:
        check.evidence.update(python=platform.python_version(), executable=sys.executable)
        try:
            torch = importlib.import_module("torch")
        except ModuleNotFoundError as error:
            if error.name == "torch":
                check.evidence.update(missing_module="torch", **torch_elsewhere())
                msg = f"{sys.executable} (Python {platform.python_version()}) has no torch"
                raise CheckFailed(msg) from error
            raise
        if not hasattr(torch, "__version__"):
            msg = f"what imports as torch is not PyTorch: {getattr(torch, '__path__', torch)}"
            raise CheckFailed(msg)
        check.evidence.update(version=str(torch.__version__), path=str(torch.__file__))
        state["torch"] = torch


def stage_build(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Compare what torch was built for, and how many devices it finds, with what was promised."""
    torch = state["torch"]
    accelerator = job["accelerator"]
    with reporter.check("build", "accelerator") as check:
        versions = {
            name: getattr(torch.version, name, None) for name in ("hip", "cuda", "git_version")
        }
        built_for = "rocm" if versions["hip"] else "cuda" if versions["cuda"] else "cpu"
        check.evidence.update(versions, built_for=built_for)
        if accelerator not in ("cpu", built_for):
            msg = f"this is a {built_for.upper()} build of torch ({torch.__version__}), {accelerator} was promised"
            raise CheckFailed(msg)
    if accelerator == "cpu" or check.status == "fail":
        return
    planned = job["expect"].get("gpus") or []
    with reporter.check("build", "libraries") as check:
        check_libraries(check, torch, accelerator)
    if accelerator == "rocm" and overrides(os.environ):
        with reporter.check("build", "gfx_override") as check:
            built = list(torch.cuda.get_arch_list())
            check_override(check, built, planned, os.environ, override_nodes())
    with reporter.check("build", "arch_list") as check:
        check_architectures(check, torch, planned, accelerator)
    with reporter.check("build", "device_count") as check:
        check_device_count(check, torch, job["gpus"])


def check_libraries(check: Check, torch: Any, accelerator: str) -> None:
    """Record the versions of what torch computes and communicates with; None is not told."""
    rocm = accelerator == "rocm"
    dnn = answer(check, torch, "backends.cudnn.version")
    check.evidence["miopen" if rocm else "cudnn"] = (
        # torch/csrc/cuda/shared/cudnn.cpp: MIOpen's is major * 1000000 + minor * 1000 + patch.
        f"{dnn // 1000000}.{dnn // 1000 % 1000}.{dnn % 1000}" if rocm and dnn else dnn
    )
    ccl = answer(check, torch, "cuda.nccl.version")
    check.evidence["rccl" if rocm else "nccl"] = (
        ".".join(str(part) for part in ccl) if isinstance(ccl, (tuple, list)) else ccl
    )


def check_architectures(
    check: Check, torch: Any, planned: list[dict[str, Any]], accelerator: str
) -> None:
    """Compare the targets that torch was compiled for with each GPU's; the products have the last word."""
    built = list(torch.cuda.get_arch_list())
    check.evidence["arch_list"] = built
    if not built:
        check.skip(
            "torch lists no targets, which says nothing: it lists none while no GPU is usable"
        )
        return
    if accelerator != "rocm":
        return
    covered: dict[str, dict[str, str]] = {}
    for gpu in planned:
        gfx, *named = answers_as(gpu, os.environ, override_nodes()) if gpu.get("gfx") else ("",)
        if gfx:
            covered.setdefault(gfx, {}).update(
                {name: code_for(name, built) for name in named or [gfx]}
            )
    check.evidence["code_for"] = covered
    bare = [
        gfx for gfx, answers in covered.items() if not set(answers.values()) - {"none", "features"}
    ]
    if bare:
        check.degrade(
            f"this torch has no code for {', '.join(bare)}: it was built for {', '.join(built)}; use an "
            "image with that target"
        )


def check_device_count(check: Check, torch: Any, planned: int | None) -> None:
    """Compare the number of devices with the plan's. torch may ask SMI, so the driver is asked too."""
    found = torch.cuda.device_count()
    check.evidence.update(device_count=found, planned=planned, driver_count=None)
    try:
        check.evidence["driver_count"] = torch._C._cuda_getDeviceCount()  # noqa: SLF001
    except Exception as error:
        check.evidence["driver_error"] = described(error)
    hidden = {key: value for key, value in os.environ.items() if is_visibility(key)}
    note = (
        f" ({', '.join(f'{key}={value!r}' for key, value in sorted(hidden.items()))})"
        if hidden
        else ""
    )
    driver = check.evidence["driver_count"]
    if driver is not None and driver != found:
        msg = f"torch counts {found} devices, the driver {driver}{note}"
        raise CheckFailed(msg)
    if not found:
        because = check.evidence.get("driver_error") or "torch.cuda.device_count() is 0"
        msg = f"no device is visible: {because}{note}"
        raise CheckFailed(msg)
    if planned is not None and found != planned:
        msg = f"{found} devices are visible, {planned} were passed in{note}"
        raise CheckFailed(msg)
