"""An engine in one line for people, and whole for scripts: what it said, and what follows from it."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts


def engine_to_json(engine: EngineFacts, host: HostFacts) -> dict[str, Any]:
    """Return JSON values: the facts, and the judgements that a plan makes of them."""
    return {
        **asdict(engine),
        "rootless": engine.rootless,
        "userns_remap": engine.userns_remap,
        "seccomp_profile": engine.seccomp_profile,
        "security_modules": engine.security_modules,
        "desktop": engine.desktop,
        "snap": engine.snap,
        "cdi": engine.cdi,
        "same_kernel": engine.same_kernel(host),
    }


def engine_line(engine: EngineFacts, host: HostFacts) -> str:
    """Return "docker 28.2.2 (API 1.50), runc, cgroup v2 (systemd), seccomp default, apparmor"."""
    return ", ".join(_parts(engine, host))


def _parts(engine: EngineFacts, host: HostFacts) -> Iterator[str]:
    yield f"{engine.kind} {engine.version} (API {engine.api_version})"
    yield engine.default_runtime or "runtime unknown"
    driver = f" ({engine.cgroup_driver})" if engine.cgroup_driver else ""
    yield f"cgroup v{engine.cgroup_version}{driver}" if engine.cgroup_version else "cgroup unknown"
    yield f"seccomp {engine.seccomp_profile or 'none'}"
    yield from engine.security_modules or ("no LSM",)
    if engine.rootless:
        yield "rootless"
    if engine.userns_remap:
        yield "userns-remap"
    if engine.desktop:
        yield "Docker Desktop"
    if engine.snap:
        yield "snap"
    if engine.cdi:
        count = len(engine.cdi_devices)
        yield f"CDI ({count} device{'' if count == 1 else 's'})"
    yield {
        True: "on this kernel",
        False: f"on another kernel ({engine.kernel})",
        None: "kernel not compared",
    }[engine.same_kernel(host)]
