"""What torch was built for, and how many devices it finds."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter, described
from rocmrun.probe.parts.machine import is_visibility


def stage_import(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Import torch. Told when it fails, and once when it does not."""
    with reporter.check("build", "torch", quiet=not job["told"]) as check:
        check.evidence.update(python=platform.python_version(), executable=sys.executable)
        try:
            torch = importlib.import_module("torch")
        except ModuleNotFoundError as error:
            if error.name == "torch":
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
    with reporter.check("build", "arch_list") as check:
        check.evidence["arch_list"] = list(torch.cuda.get_arch_list())
    with reporter.check("build", "device_count") as check:
        check_device_count(check, torch, job["gpus"])


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
