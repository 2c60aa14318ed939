"""Hold a probe's report against what was asked: an image speaks for itself, and may say anything."""

from rocmrun.core.plan import Plan
from rocmrun.core.report.model import ProbeReport


def believed(report: ProbeReport, plan: Plan, level: str) -> ProbeReport:
    """Return *report*, or as "broken" one that answers another question than the one that was asked."""
    if not report.usable:
        return report
    reason = _why_not(report, plan, level)
    return report.model_copy(update={"status": "broken", "reason": reason}) if reason else report


def _why_not(report: ProbeReport, plan: Plan, level: str) -> str:
    if report.level != level:
        return f"the report is of level {report.level or 'none'}, {level} was asked for"
    if report.accelerator != plan.probe.accelerator:
        return f"the report is about {report.accelerator or 'nothing'}, {plan.probe.accelerator} was asked for"
    if report.runtime != plan.probe.runtime:
        return f"the report is of runtime {report.runtime}, {plan.probe.runtime} was asked for"
    told = {check.name for check in report.checks if check.group == "own"}
    if untold := [check.name for check in plan.probe.checks_at(level) if check.name not in told]:
        return f"the report has no result of the profile's check {untold[0]}"
    proved = {
        check.device
        for check in report.checks
        if check.group == report.proving_group and check.device is not None
        if check.status != "skipped"
    }
    if len(proved) < len(plan.gpus):
        return f"the report is about {len(proved)} devices, {len(plan.gpus)} were passed"
    return ""
