"""Turn a plan into the Engine API's create request. Pure: same plan, same bytes.

The request starts from the emptiest container that the engine can make; every field that goes
beyond it stands for a grant of the plan (see `rocmrun.core.ungranted`).
"""

from collections.abc import Mapping
from typing import Any

from rocmrun.core import baseline
from rocmrun.core.plan import Plan, PlannedMount, PlannedTmpfs, Role

NANOSECONDS = 10**9


def create_request(
    plan: Plan,
    *,
    role: Role,
    command: tuple[str, ...] | None = None,
    secrets: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    keep_log: bool = False,
    probe_writes: bool = False,
    secret_files: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the body of POST /containers/create for *plan*.

    Args:
        plan: What to create.
        role: "probe" leaves out what the probe must not have: ports, restart policy, secret values,
            writable binds, and the cache: HOME is in memory, since a workload could have left a
            kernel there that fakes the proof.
        command: Replaces the plan's entrypoint and command (the probe's interpreter).
        secrets: Values for the plan's `env_from` names; they go into this request and nowhere else.
        labels: Run labels, added to the plan's.
        probe_writes: Leave the probe the binds that the workload writes to writable: one of the
            profile's own checks needs them.
        secret_files: Target → file on this host of the plan's secrets; the workload alone gets them.
        keep_log: Keep the container's output with the engine, bounded by the plan's log size.
    """
    request: dict[str, Any] = {
        "Image": plan.image.image_id or plan.image.digest or plan.image.ref,
        "User": plan.user,
        "Env": _environment(plan, role, secrets or {}),
        "WorkingDir": plan.workdir,
        "Labels": dict(sorted({**dict(plan.labels), **(labels or {})}.items())),
        "StopTimeout": plan.stop_timeout_seconds,
        "Healthcheck": _healthcheck(plan, role),
        "HostConfig": _host_config(plan, role, keep_log=keep_log, probe_writes=probe_writes),
        **_streams(plan, role),
    }
    if plan.hostname:
        request["Hostname"] = plan.hostname
    if role == "workload" and plan.ports:
        request["ExposedPorts"] = {
            f"{port.container_port}/{port.protocol}": {} for port in plan.ports
        }
    if role == "workload":
        request["HostConfig"]["Mounts"] += [
            _mount(PlannedMount(target=target, source=source), only_read=True)
            for target, source in sorted((secret_files or {}).items())
        ]
    if command is not None:
        request["Entrypoint"], request["Cmd"] = list(command[:1]), list(command[1:])
    else:
        if plan.entrypoint is not None:
            request["Entrypoint"] = list(plan.entrypoint)
        if plan.command:
            request["Cmd"] = list(plan.command)
    return request


def _healthcheck(plan: Plan, role: Role) -> dict[str, Any]:
    """Return what the engine runs inside; without a word the image's own HEALTHCHECK would run."""
    health = plan.health
    if health is None or role == "probe":
        return {"Test": ["NONE"]}
    return {
        # Without "Test" the image's own is run, with these numbers.
        **({"Test": ["CMD", *health.command]} if health.command else {}),
        "Interval": health.interval_seconds * NANOSECONDS,
        "Timeout": health.timeout_seconds * NANOSECONDS,
        "Retries": health.retries,
        "StartPeriod": health.start_period_seconds * NANOSECONDS,
    }


def _streams(plan: Plan, role: Role) -> dict[str, Any]:
    probe = role == "probe"
    return {
        "AttachStdin": probe or plan.interactive,
        "AttachStdout": True,
        "AttachStderr": True,
        "OpenStdin": probe or plan.interactive,
        # Without StdinOnce the container's stdin stays open after our half of it is closed.
        "StdinOnce": probe or plan.interactive,
        "Tty": plan.tty and not probe,
    }


def _environment(plan: Plan, role: Role, secrets: Mapping[str, str]) -> list[str]:
    values = dict(plan.env)
    if role == "workload":
        values |= {name: secrets[name] for name in plan.env_from if name in secrets}
    return [f"{name}={value}" for name, value in sorted(values.items())]


def _host_config(plan: Plan, role: Role, *, keep_log: bool, probe_writes: bool) -> dict[str, Any]:
    only_read = role == "probe" and not probe_writes
    mounts, in_memory = storage(plan, role)
    config: dict[str, Any] = {
        "AutoRemove": False,
        "CapAdd": list(plan.cap_add),
        "CapDrop": ["ALL"],
        "CgroupnsMode": plan.cgroup_namespace,
        "CpusetCpus": plan.cpuset_cpus,
        "CpusetMems": plan.cpuset_mems,
        "Devices": [
            {
                "PathOnHost": device.host_path,
                "PathInContainer": device.path,
                "CgroupPermissions": device.permissions,
            }
            for device in plan.devices
            if not device.cdi
        ],
        "ExtraHosts": list(plan.extra_hosts),
        "GroupAdd": [str(group) for group in plan.groups],
        "Init": True,
        # "private" exists for ipc and cgroup alone; for pid and uts the word is "".
        "IpcMode": plan.ipc,
        "LogConfig": _log_config(plan, keep_log=keep_log),
        "Memory": plan.memory_bytes or 0,
        "MemorySwap": plan.memory_bytes or 0,
        "Binds": [
            _relabelled_bind(mount, only_read=only_read) for mount in mounts if _relabels(mount)
        ],
        "Mounts": [_mount(mount, only_read=only_read) for mount in mounts if not _relabels(mount)],
        "NanoCpus": round(plan.cpus * 1e9) if plan.cpus else 0,
        "NetworkMode": plan.network,
        "PidMode": "" if plan.pid == "private" else plan.pid,
        "PidsLimit": plan.pids,
        "Privileged": False,
        "ReadonlyRootfs": plan.read_only_root,
        "RestartPolicy": _restart_policy(plan.restart if role == "workload" else "no"),
        "SecurityOpt": _security_options(plan),
        "Sysctls": dict(plan.sysctls),
        "Tmpfs": {tmpfs.target: tmpfs_options(tmpfs, plan) for tmpfs in in_memory},
        "Ulimits": [
            {"Name": limit.name, "Soft": limit.soft, "Hard": limit.hard} for limit in plan.ulimits
        ],
        "UTSMode": "",
    }
    if plan.cdi_devices:
        config["DeviceRequests"] = [{"Driver": "cdi", "DeviceIDs": list(plan.cdi_devices)}]
    if plan.ipc != "host":
        config["ShmSize"] = plan.shm_size_bytes
    if not plan.masks:
        config["MaskedPaths"], config["ReadonlyPaths"] = [], []
    if role == "workload" and plan.ports:
        config["PortBindings"] = _port_bindings(plan)
    return config


def _security_options(plan: Plan) -> list[str]:
    options = []
    if plan.no_new_privileges:
        options.append("no-new-privileges:true")
    if plan.seccomp:
        options.append(f"seccomp={plan.seccomp}")
    if plan.apparmor:
        options.append(f"apparmor={plan.apparmor}")
    if plan.selinux_label:
        options.append(f"label={plan.selinux_label}")
    return options


def _relabels(mount: PlannedMount) -> bool:
    return mount.kind == "bind" and mount.selinux != "none"


def storage(plan: Plan, role: Role) -> tuple[tuple[PlannedMount, ...], tuple[PlannedTmpfs, ...]]:
    """Return what is mounted and what is in memory: the probe has no cache, HOME is in memory instead."""
    if role == "workload" or plan.cache is None:
        return plan.mounts, plan.tmpfs
    mounts = tuple(mount for mount in plan.mounts if not mount.cache)
    return mounts, tuple(sorted((*plan.tmpfs, baseline.home_in_memory(plan.memory_bytes))))


def _relabelled_bind(mount: PlannedMount, *, only_read: bool) -> str:
    """Return the old bind syntax: the only one in the API that can relabel. Its source exists by now."""
    label = "z" if mount.selinux == "shared" else "Z"
    access = "ro" if mount.read_only or only_read else "rw"
    return f"{mount.source}:{mount.target}:{access},{label},rprivate"


def _mount(mount: PlannedMount, *, only_read: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "Type": mount.kind,
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only or only_read,
    }
    if mount.kind == "bind":
        body["BindOptions"] = {"Propagation": "rprivate"}
    return body


def tmpfs_options(tmpfs: PlannedTmpfs, plan: Plan) -> str:
    """Return mount options for *tmpfs*; exec is written out because the engine's default is noexec."""
    execute = "exec" if tmpfs.executable else "noexec"
    # Podman refuses uid and gid; its U is the container's user, and it would copy the image's files into memory.
    owner = "U,notmpcopyup" if plan.engine == "podman" else f"uid={plan.uid},gid={plan.gid}"
    return f"rw,nosuid,nodev,{execute},size={tmpfs.size_bytes},mode={tmpfs.mode:o},{owner}"


def _log_config(plan: Plan, *, keep_log: bool) -> dict[str, Any]:
    if not keep_log:
        return {"Type": "none", "Config": {}}
    return {"Type": "json-file", "Config": {"max-file": "1", "max-size": str(plan.log_size_bytes)}}


def _restart_policy(text: str) -> dict[str, Any]:
    name, _, count = text.partition(":")
    return {"Name": name, "MaximumRetryCount": int(count or 0)}


def _port_bindings(plan: Plan) -> dict[str, list[dict[str, str]]]:
    bindings: dict[str, list[dict[str, str]]] = {}
    for port in plan.ports:
        bindings.setdefault(f"{port.container_port}/{port.protocol}", []).append(
            {"HostIp": port.address, "HostPort": str(port.host_port)}
        )
    return bindings
