"""ROCm's own tools: what they say is recorded, and whether a GPU computes is never theirs to decide."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rocmrun.probe.parts.checks import Check, Reporter
from rocmrun.probe.parts.tools_amdsmi import check_amdsmi
from rocmrun.probe.parts.tools_links import check_xgmi
from rocmrun.probe.parts.tools_ras import check_ras
from rocmrun.probe.parts.tools_rocminfo import parse_rocminfo
from rocmrun.probe.parts.tools_run import ToolBudget, find_tool, run_tool
from rocmrun.probe.parts.tools_smi import amd_smi_gpu, merged_rows, parse_rocm_smi

HARMLESS = "it is no proof that compute fails"
# The first is asked alone: where it fails, the others say the same again, a second each.
AMD_SMI_COMMANDS = (
    ("static", "--json"),
    ("list", "--json"),
    ("firmware", "--json"),
    ("metric", "--json"),
    ("topology", "--json"),
    ("xgmi", "--json"),
)
KEPT_TEXT = 2000
SPARE_SECONDS = 20.0  # of the stage, for what is no tool


def stage_tools(job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]) -> None:
    """Ask rocminfo, rocm-smi, amd-smi and amdsmi, each in a process of its own."""
    planned = list(job["expect"].get("gpus") or [])
    budget = ToolBudget(job["timeout"] - SPARE_SECONDS)
    with reporter.check("tools", "rocminfo") as check:
        check_rocminfo(check, planned, budget)
    with reporter.check("tools", "rocm_smi") as check:
        check_rocm_smi(check, planned, budget)
    gpus: list[dict[str, Any]] = []
    with reporter.check("tools", "amd_smi") as check:
        gpus = check_amd_smi(check, planned, budget)
    with reporter.check("tools", "ras") as check:
        check_ras(check, planned, gpus)
    with reporter.check("tools", "amdsmi") as check:
        check_amdsmi(check, planned, budget)
    with reporter.check("tools", "xgmi") as check:
        check_xgmi(check, planned, gpus)


def check_rocminfo(check: Check, planned: list[dict[str, Any]], budget: ToolBudget) -> None:
    """Compare the agents with the plan's GPUs: rocminfo opens what HIP opens."""
    path = find_tool("rocminfo")
    if path is None:
        check.skip("this image has no rocminfo")
        return
    run = run_tool([path], budget.seconds)
    agents = parse_rocminfo(run.out)
    gpus = [agent for agent in agents if agent["device_type"] == "GPU"]
    check.evidence.update(run.evidence(), agents=len(agents), gpus=gpus)
    # "ROCk module is loaded" is no success: refused nodes and HSA's own failure follow it.
    if run.ended or not gpus:
        check.evidence["output"] = run.out[:KEPT_TEXT]
        check.degrade(f"rocminfo shows no GPU: {run.reason}; {HARMLESS}")
        return
    problems = []
    if planned and len(gpus) != len(planned):
        problems.append(f"rocminfo shows {len(gpus)} GPUs, the plan passes {len(planned)}")
    for gpu, wanted in zip(gpus, planned):
        if wanted.get("gfx") and gpu["name"] != wanted["gfx"]:
            problems.append(
                f"rocminfo says {gpu['name']} where the kernel says {wanted['gfx']} "
                "(HSA_OVERRIDE_GFX_VERSION makes it do so)"
            )
    if problems:
        check.degrade("; ".join(problems))


def check_rocm_smi(check: Check, planned: list[dict[str, Any]], budget: ToolBudget) -> None:
    """Record what rocm-smi tells of each card; it reads sysfs and may list GPUs that are not passed."""
    path = find_tool("rocm-smi")
    if path is None:
        check.skip("this image has no rocm-smi")
        return
    run = run_tool([path, "-a", "--json"], budget.seconds)
    cards = parse_rocm_smi(run.out)
    check.evidence.update(run.evidence(), cards=cards, planned=len(planned) or None)
    if run.ended or not cards:
        check.evidence["output"] = run.out[:KEPT_TEXT]
        check.degrade(f"rocm-smi shows no GPU: {run.reason}; {HARMLESS}")
    elif len(cards) < len(planned):
        check.degrade(
            f"rocm-smi shows {len(cards)} GPUs, the plan passes {len(planned)}; {HARMLESS}"
        )


def check_amd_smi(
    check: Check, planned: list[dict[str, Any]], budget: ToolBudget
) -> list[dict[str, Any]]:
    """Record what amd-smi tells of each GPU and return it, in its order."""
    path = find_tool("amd-smi")
    if path is None:
        check.skip("this image has no amd-smi")
        return []
    outputs: list[str] = []
    failed: dict[str, str] = {}
    for command in AMD_SMI_COMMANDS:
        run = run_tool([path, *command], budget.seconds)
        if run.ended or run.code or not merged_rows([run.out]):
            failed[command[0]] = run.reason
            check.evidence.setdefault("output", run.out[:KEPT_TEXT])
            if run.ended or not outputs:
                break
        outputs.append(run.out)
    rows = merged_rows(outputs)
    gpus = [amd_smi_gpu(rows[number]) for number in sorted(rows)]
    check.evidence.update(not_answered=failed, planned=len(planned) or None)
    # 64 partitions have 4000 links: their kinds are counted, and those of the plan judged by `xgmi`.
    check.evidence["gpus"] = [
        {**gpu, "links": dict(Counter(str(link.get("link_type")) for link in gpu["links"]))}
        for gpu in gpus
    ]
    if not gpus:
        # Its command line looks for the names of groups, not for access (ROCm/amdsmi issue 125).
        reason = next(iter(failed.values()), "it listed none")
        check.degrade(f"amd-smi shows no GPU: {reason}; {HARMLESS}")
    elif len(gpus) < len(planned):
        check.degrade(f"amd-smi shows {len(gpus)} GPUs, the plan passes {len(planned)}; {HARMLESS}")
    return gpus
