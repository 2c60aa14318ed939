"""What a plan grants, as the probe compares it with what it can reach."""

from typing import Any

from rocmrun.core import baseline
from rocmrun.core.create_request import storage
from rocmrun.core.plan import Plan


def surroundings(plan: Plan) -> dict[str, Any]:
    """Return limits, HOME, variables and grants: what the probe must find beside user and capabilities."""
    environment = dict(plan.env)
    home = environment.get("HOME")
    # The probe has no cache: HOME is in memory instead.
    mounts, in_memory = storage(plan, "probe")
    return {
        "user_name": environment.get("USER"),
        "home": home,
        "home_writable": any(tmpfs.target == home for tmpfs in in_memory),
        "visibility": {name: environment[name] for name in _visibility(environment)},
        "limits": {
            "memory_bytes": plan.memory_bytes,
            "pids": plan.pids,
            "cpus": plan.cpus,
            "cpuset_cpus": plan.cpuset_cpus or None,
        },
        "ulimits": {ulimit.name: [ulimit.soft, ulimit.hard] for ulimit in plan.ulimits},
        "granted": {
            "devices": {device.path: device.permissions for device in plan.devices},
            "mounts": {mount.target: "ro" if mount.read_only else "rw" for mount in mounts},
            "tmpfs": {
                tmpfs.target: "exec" if tmpfs.executable else "noexec" for tmpfs in in_memory
            },
            "network": plan.network,
            "ipc": plan.ipc,
            "pid": plan.pid,
            "cgroup": plan.cgroup_namespace,
            "masks": plan.masks,
            "seccomp": "default"
            if plan.seccomp is None
            else "unconfined"
            if plan.seccomp == "unconfined"
            else "own",
            "security_label": plan.apparmor == "unconfined" or plan.selinux_label == "disable",
        },
    }


def _visibility(environment: dict[str, str]) -> tuple[str, ...]:
    names = (*baseline.INDEX_VARIABLES, *baseline.RUNTIME_VARIABLES)
    return tuple(name for name in names if name in environment)
