"""The limits of the cgroup and of the process."""

from __future__ import annotations

import os
import resource
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed
from rocmrun.probe.parts.machine import cgroup_value, memory_limit, number


def check_limits(check: Check, expect: dict[str, Any]) -> None:
    """Compare the limits with the planned ones: a lower limit is the site's, a higher one is nobody's."""
    seen: dict[str, Any] = {
        "memory_bytes": memory_limit(),
        "pids": number(cgroup_value("pids", "pids.max", "pids.max")),
        "cpus": cpu_limit(),
    }
    known = {
        "memory_bytes": cgroup_value("memory", "memory.max", "memory.limit_in_bytes"),
        "pids": cgroup_value("pids", "pids.max", "pids.max"),
        "cpus": cgroup_value("cpu", "cpu.max", "cpu.cfs_quota_us"),
    }
    check.evidence.update(
        seen,
        usable_cpus=len(os.sched_getaffinity(0)),
        allowed_cpus=sorted(os.sched_getaffinity(0)),
        not_readable=[name for name, text in known.items() if text is None],
    )
    limits = expect.get("limits") or {}
    wrong = []
    for name, value in seen.items():
        planned = limits.get(name)
        if planned and known[name] is not None and (value is None or value > planned):
            wrong.append(f"{name} is {value if value is not None else 'unlimited'}, not {planned}")
    if limits.get("cpuset_cpus"):
        beyond = sorted(os.sched_getaffinity(0) - cpu_list(limits["cpuset_cpus"]))
        wrong += [f"processor {cpu} may be used, beside {limits['cpuset_cpus']}" for cpu in beyond]
    wrong += wrong_ulimits(check, expect.get("ulimits") or {})
    if wrong:
        msg = f"{'; '.join(wrong)} as planned"
        raise CheckFailed(msg)


def wrong_ulimits(check: Check, planned: dict[str, list[int]]) -> list[str]:
    """Record the limits of the process and return those that are not as planned."""
    wrong = []
    for name in sorted({"nofile", "nproc", "core", "memlock", *planned}):
        kind = getattr(resource, f"RLIMIT_{name.upper()}", None)
        if kind is None:
            continue
        check.evidence[name] = list(resource.getrlimit(kind))
        if name in planned and check.evidence[name] != list(planned[name]):
            wrong.append(f"ulimit {name} is {check.evidence[name]}, not {list(planned[name])}")
    return wrong


def cpu_limit() -> float | None:
    """Return how many processors' time the cgroup may take; None is no limit."""
    text = cgroup_value("cpu", "cpu.max", "cpu.cfs_quota_us")
    quota, _, period = (text or "").partition(" ")
    if not quota.isdigit():  # "max", or -1 on cgroup v1
        return None
    period = period or cgroup_value("cpu", "cpu.max", "cpu.cfs_period_us") or "100000"
    return round(
        int(quota) / int(period), 6
    )  # exact: a limit rounded up would be more than planned


def cpu_list(text: str) -> set[int]:
    """Return the processors of the kernel's list form, "0-3,8"."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
