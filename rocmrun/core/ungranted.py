"""Find what a create request has beyond the empty container and no grant of the plan explains.

This is the other half of `create_request`: it reads the request back, field by field, without
looking at how it was made. A plan whose request has a right that nobody granted is never sent.
"""

from collections.abc import Mapping
from typing import Any

from rocmrun.core.plan import Plan

ENGINE_SHM = 64 * 1024 * 1024


def ungranted(request: Mapping[str, Any], plan: Plan) -> tuple[str, ...]:
    """Return every right in *request* that is not among *plan*'s grants, in the grant vocabulary."""
    granted = {grant.what for grant in plan.grants}
    return tuple(sorted(set(rights_of(request, plan)) - granted - _covered(granted)))


def rights_of(request: Mapping[str, Any], plan: Plan) -> tuple[str, ...]:
    """Return the rights in *request* beyond the empty container, in the grant vocabulary."""
    config = request["HostConfig"]
    return (
        *_devices(config),
        *(f"group:{group}" for group in config.get("GroupAdd") or ()),
        *(f"cap:{name}" for name in config.get("CapAdd") or ()),
        *_security(config),
        *_namespaces(config),
        *_storage(config),
        *_limits(config),
        *_network(config),
        *(f"sysctl:{key}={value}" for key, value in (config.get("Sysctls") or {}).items()),
        *(("user:root",) if request["User"].split(":")[0] in {"", "0", "root"} else ()),
        *_secrets(request, plan),
    )


def _covered(granted: set[str]) -> set[str]:
    """Return what a grant in other words stands for: a narrow seccomp rule is made with a capability."""
    rules = {"seccomp:+mempolicy": "cap:SYS_NICE", "seccomp:+pidfd": "cap:SYS_PTRACE"}
    covered = {capability for rule, capability in rules.items() if rule in granted}
    if any(what.startswith("seccomp:") and "/" in what for what in granted):
        covered.add("seccomp:by-value")
    return covered


def _devices(config: Mapping[str, Any]) -> list[str]:
    found = [
        f"device:{item['PathInContainer']}:{item['CgroupPermissions']}"
        for item in config.get("Devices") or ()
    ]
    found += [f"device-rule:{rule}" for rule in config.get("DeviceCgroupRules") or ()]
    found += [f"device-request:{item}" for item in config.get("DeviceRequests") or ()]
    return found


def _security(config: Mapping[str, Any]) -> list[str]:
    found = []
    options = config.get("SecurityOpt") or []
    if "no-new-privileges:true" not in options:
        found.append("nnp:off")
    for option in options:
        name, _, value = option.partition("=")
        if name == "seccomp":
            found.append("seccomp:unconfined" if value == "unconfined" else "seccomp:by-value")
        elif name in {"apparmor", "label"}:
            found.append(f"{name}:{value}")
    if config.get("CapDrop") != ["ALL"]:
        found.append("cap:the engine's default set")
    if not config.get("ReadonlyRootfs"):
        found.append("rootfs:rw")
    if config.get("MaskedPaths") == [] or config.get("ReadonlyPaths") == []:
        found.append("masks:off")
    if config.get("Privileged"):
        found.append("privileged")
    return found


def _namespaces(config: Mapping[str, Any]) -> list[str]:
    found = []
    if config.get("IpcMode") != "private":
        found.append(f"ipc:{config.get('IpcMode')}")
    if config.get("PidMode"):
        found.append(f"pid:{config['PidMode']}")
    if config.get("UTSMode"):
        found.append(f"uts:{config['UTSMode']}")
    if config.get("UsernsMode"):
        found.append(f"userns:{config['UsernsMode']}")
    if config.get("CgroupnsMode") != "private":
        found.append(f"cgroupns:{config.get('CgroupnsMode')}")
    return found


def _storage(config: Mapping[str, Any]) -> list[str]:
    found = [
        f"mount:{mount['Target']}:{'ro' if mount.get('ReadOnly') else 'rw'}"
        for mount in config.get("Mounts") or ()
    ]
    for bind in config.get("Binds") or ():
        _, target, mode = bind.split(":")
        found.append(f"mount:{target}:{mode.split(',')[0]}")
    for target, options in (config.get("Tmpfs") or {}).items():
        words = options.split(",")
        found.append(f"{'tmpfs-exec' if 'noexec' not in words else 'tmpfs'}:{target}")
        found += [f"tmpfs-{word}:{target}" for word in ("nosuid", "nodev") if word not in words]
    shm = config.get("ShmSize") or 0
    if shm > ENGINE_SHM:
        found.append(f"shm:{shm}")
    return found


def _limits(config: Mapping[str, Any]) -> list[str]:
    """Limits take away; only a ulimit that is set can give more than the engine's own."""
    found = []
    for limit in config.get("Ulimits") or ():
        if (limit["Soft"], limit["Hard"]) == (0, 0):
            continue
        pair = (
            str(limit["Soft"])
            if limit["Soft"] == limit["Hard"]
            else f"{limit['Soft']}:{limit['Hard']}"
        )
        found.append(f"ulimit:{limit['Name']}={pair}")
    restart = config.get("RestartPolicy") or {}
    if restart.get("Name") not in {None, "", "no"}:
        found.append(f"restart:{restart['Name']}:{restart['MaximumRetryCount']}")
    return found


def _network(config: Mapping[str, Any]) -> list[str]:
    found = [] if config.get("NetworkMode") == "none" else [f"network:{config.get('NetworkMode')}"]
    for container_port, bindings in (config.get("PortBindings") or {}).items():
        found += [f"port:{item['HostIp']}:{item['HostPort']}:{container_port}" for item in bindings]
    if config.get("PublishAllPorts"):
        found.append("port:all")
    return found


def _secrets(request: Mapping[str, Any], plan: Plan) -> list[str]:
    planned = dict(plan.env)
    names = (entry.partition("=")[0] for entry in request.get("Env") or ())
    return [f"env-from:{name}" for name in names if name not in planned]
