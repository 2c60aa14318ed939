"""The python module amdsmi, by which vLLM and parts of SGLang find ROCm and its GPUs."""

from __future__ import annotations

import json
import sys
from typing import Any

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.tools_run import ToolBudget, run_tool

# Runs in a process of its own: the module loads a library that can abort, or wait for a GPU.
AMDSMI_PROGRAM = r"""
import importlib.util, json, sys
sys.path[:] = [entry for entry in sys.path if entry]
seen = {"servers": [name for name in ("vllm", "sglang") if importlib.util.find_spec(name)]}
def tell(**more):
    print("\n" + json.dumps({**seen, **more}), flush=True)
    raise SystemExit
def attempt(call, *given):
    try:
        return call(*given)
    except Exception as error:
        seen.setdefault("errors", {})[call.__name__] = " ".join(str(error).split())[:300]
try:
    import amdsmi
except ModuleNotFoundError as error:
    tell(**({"absent": True} if error.name == "amdsmi" else {"error": f"import: {error}"}))
except BaseException as error:
    tell(error=f"import: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
seen.update(path=str(getattr(amdsmi, "__file__", None)), version=str(getattr(amdsmi, "__version__", None)))
try:
    amdsmi.amdsmi_init()
    handles = amdsmi.amdsmi_get_processor_handles()
except BaseException as error:
    tell(error=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
tell(devices=[{
    "pci_address": attempt(amdsmi.amdsmi_get_gpu_device_bdf, handle),
    "uuid": attempt(amdsmi.amdsmi_get_gpu_device_uuid, handle),
} for handle in handles])
"""
SOURCES = (
    "vllm-project/vllm vllm/platforms/__init__.py (rocm_platform_plugin) and platforms/rocm.py",
    "sgl-project/sglang multimodal_gen/runtime/platforms/__init__.py (rocm_platform_plugin)",
)
NOT_FOUND = (
    "vLLM takes a machine for ROCm only when amdsmi initialises and lists a GPU: it will find no "
    "device here",
    "SGLang's language models decide by torch.version.hip, not by this; its multimodal runtime asks "
    "amdsmi as vLLM does and will find no device",
)
FOUND = (
    "vLLM will choose ROCm: amdsmi initialises and lists a GPU",
    "SGLang's multimodal runtime will choose ROCm as vLLM does; its language models decide by "
    "torch.version.hip",
)
OTHER_ORDER = (
    "vLLM takes the n-th GPU of HIP for the n-th of amdsmi: names, uuids and the xGMI test for its "
    "custom all-reduce can be those of another GPU"
)


def check_amdsmi(check: Check, planned: list[dict[str, Any]], budget: ToolBudget) -> None:
    """Initialise amdsmi as the workload's user and compare its list with the plan's GPUs, HIP's order."""
    python = [sys.executable, *(["-s"] if sys.flags.no_user_site else [])]
    run = run_tool([*python, "-c", AMDSMI_PROGRAM], budget.seconds)
    seen = last_object(run.out)
    check.evidence.update(seconds=round(run.seconds, 3), sources=list(SOURCES))
    if seen is None:
        check.evidence.update(vllm=NOT_FOUND[0], sglang=NOT_FOUND[1])
        check.degrade(f"amdsmi ended its process: {run.reason}. {NOT_FOUND[0]}")
        return
    check.evidence.update(seen)
    judge_amdsmi(check, seen, planned)


def judge_amdsmi(check: Check, seen: dict[str, Any], planned: list[dict[str, Any]]) -> None:
    """Say what the servers will do with what amdsmi says here."""
    devices = seen.get("devices") or []
    words = FOUND if devices else NOT_FOUND
    check.evidence.update(vllm=words[0], sglang=words[1])
    if seen.get("absent"):
        if not seen.get("servers"):
            check.skip(f"this image's python has no module amdsmi. {words[0]}")
            return
        check.degrade(f"{' and '.join(seen['servers'])} is here and amdsmi is not. {words[0]}")
    elif seen.get("error"):
        check.degrade(f"amdsmi does not work: {seen['error']}. {words[0]}")
    elif not devices:
        check.degrade(f"amdsmi initialises and lists no GPU. {words[0]}")
    else:
        judge_order(check, [device["pci_address"] for device in devices], planned)


def judge_order(check: Check, addresses: list[Any], planned: list[dict[str, Any]]) -> None:
    """Compare amdsmi's list, by PCI address, with the GPUs that were passed, in HIP's order."""
    # The function tells partitions apart, and each tool counts them in its own way.
    listed = [str(address).lower().rpartition(".")[0] for address in addresses]
    named = [str(gpu.get("pci_address") or "").lower() for gpu in planned]
    wanted = [address.rpartition(".")[0] for address in named if address]
    check.evidence.update(listed=len(listed), planned=len(planned) or None)
    if not wanted:
        return
    missing = [address for address in wanted if address not in listed]
    if missing:
        check.degrade(f"amdsmi does not list {', '.join(missing)}. {OTHER_ORDER}")
    elif listed != wanted:
        places = {address: listed.index(address) for address in dict.fromkeys(wanted)}
        check.evidence["amdsmi_index_of_hip_index"] = [places[address] for address in wanted]
        more = len(listed) - len(wanted)
        what = (
            f"amdsmi lists {more} GPUs that were not passed"
            if more > 0
            else "amdsmi's order is not HIP's"
        )
        pairs = ", ".join(
            f"HIP {hip} is amdsmi {places[address]}" for hip, address in enumerate(wanted[:8])
        )
        check.degrade(f"{what} ({pairs}): {OTHER_ORDER}")


def last_object(text: str) -> dict[str, Any] | None:
    """Return the last line that is a JSON object: libraries print before it."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            return value if isinstance(value, dict) else None
    return None
