"""Find what a create request has beyond the empty container and no grant of the plan explains.

This is the other half of `create_request`: it reads the request back, field by field, without
looking at how it was made. A field that it has no word for is a right that nobody granted, and a
plan whose request has one is never sent.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rocmrun.core.plan import Plan, PlannedMount

# Fields that only take away, divide, or name things.
_NO_RIGHT = frozenset({"CpusetCpus", "CpusetMems", "Init", "NanoCpus"})
# Fields that a function below reads.
_READ = frozenset({
    "Binds", "CapAdd", "CapDrop", "CgroupnsMode", "DeviceCgroupRules", "DeviceRequests", "Devices",
    "ExtraHosts", "GroupAdd", "IpcMode", "LogConfig", "MaskedPaths", "Memory", "MemorySwap",
    "Mounts", "NetworkMode", "PidMode", "PidsLimit", "PortBindings", "Privileged",
    "PublishAllPorts", "ReadonlyPaths", "ReadonlyRootfs", "RestartPolicy", "SecurityOpt",
    "ShmSize", "Sysctls", "Tmpfs", "UTSMode", "Ulimits", "UsernsMode",
})  # fmt: skip
_CONFIG = frozenset({
    "AttachStderr", "AttachStdin", "AttachStdout", "Cmd", "Entrypoint", "Env", "ExposedPorts",
    "Healthcheck", "HostConfig", "Hostname", "Image", "Labels", "OpenStdin", "StdinOnce", "StopTimeout", "Tty",
    "User", "WorkingDir",
})  # fmt: skip
_MOUNT_KEYS = frozenset({"Type", "Source", "Target", "ReadOnly", "BindOptions"})
_PRIVATE_BIND = ({"Propagation": "rprivate"}, None)
_RULES = {"seccomp:+mempolicy": "cap:SYS_NICE", "seccomp:+pidfd": "cap:SYS_PTRACE"}
_LOOPBACK = frozenset({"127.0.0.1", "::1"})


def ungranted(request: Mapping[str, Any], plan: Plan) -> tuple[str, ...]:
    """Return every right in *request* that is not among *plan*'s grants, in the grant vocabulary."""
    granted = {grant.what for grant in plan.grants}
    found = set(rights_of(request, plan)) - granted - _covered(granted)
    if plan.cache is not None:
        # The probe has the same place in memory, and nothing of the host there.
        found -= {f"tmpfs-exec:{plan.cache.target}"}
    return tuple(sorted(found))


def rights_of(request: Mapping[str, Any], plan: Plan) -> tuple[str, ...]:
    """Return the rights in *request* beyond the empty container, in the grant vocabulary."""
    config = request["HostConfig"]
    return (
        *_devices(config, plan),
        *(f"group:{group}" for group in config.get("GroupAdd") or ()),
        *_user(request["User"]),
        *_security(config, plan),
        *_namespaces(config),
        *_mounts(config, plan),
        *_memory_file_systems(config),
        *_limits(config),
        *_network(config),
        *(f"sysctl:{key}={value}" for key, value in (config.get("Sysctls") or {}).items()),
        *_environment(request, plan),
        *_health(request, plan),
        *(f"field:{name}" for name in _unknown(config, _READ | _NO_RIGHT)),
        *(f"field:{name}" for name in _unknown(request, _CONFIG)),
    )


def _covered(granted: set[str]) -> set[str]:
    """Return what a grant in other words stands for: a rule made with a capability, reading where one may write."""
    covered = {capability for rule, capability in _RULES.items() if rule in granted}
    covered |= {
        f"{what.removesuffix(':rw')}:ro"
        for what in granted
        if what.startswith("mount:") and what.endswith(":rw")
    }
    if any(what.startswith("seccomp:") and "/" in what for what in granted):
        covered.add("seccomp:by-value")
    return covered


def _unknown(fields: Mapping[str, Any], known: frozenset[str]) -> list[str]:
    return [name for name, value in fields.items() if name not in known and value]


def _devices(config: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    planned = {device.path: device.host_path for device in plan.devices}
    for item in config.get("Devices") or ():
        path, host_path = item["PathInContainer"], item["PathOnHost"]
        same = planned.get(path) == host_path
        yield f"device:{path if same else f'{host_path}→{path}'}:{item['CgroupPermissions']}"
    yield from (f"device-rule:{rule}" for rule in config.get("DeviceCgroupRules") or ())
    for item in config.get("DeviceRequests") or ():
        plain = item.keys() <= {"Driver", "DeviceIDs"} and item.get("Driver") == "cdi"
        names = set(item.get("DeviceIDs") or ()) if plain else set()
        if not names or not names <= set(plan.cdi_devices):
            yield f"device-request:{item}"
        # What a name brings was read from its specification when the plan was made.
        yield from (f"device:{d.path}:{d.permissions}" for d in plan.devices if d.cdi in names)


def _user(user: str) -> Iterator[str]:
    uid, _, gid = user.partition(":")
    if uid in {"", "0", "root"}:
        yield "user:root"
    elif not (uid.isdigit() and gid.isdigit()):
        yield f"user:{user}"
    elif gid == "0":
        yield "group:0"


def _security(config: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    yield from (f"cap:{name}" for name in config.get("CapAdd") or ())
    if config.get("CapDrop") != ["ALL"]:
        yield "cap:the engine's default set"
    options = config.get("SecurityOpt") or []
    if "no-new-privileges:true" not in options:
        yield "nnp:off"
    for option in options:
        name, equals, value = option.partition("=")
        if name == "seccomp" and value == plan.seccomp != "unconfined":
            yield "seccomp:by-value"
        elif equals and name in {"seccomp", "apparmor", "label"}:
            yield f"{name}:{value}"
        elif option != "no-new-privileges:true":
            yield f"security-opt:{option}"
    if not config.get("ReadonlyRootfs"):
        yield "rootfs:rw"
    if config.get("MaskedPaths") is not None or config.get("ReadonlyPaths") is not None:
        yield "masks:off"
    if config.get("Privileged"):
        yield "privileged"


def _namespaces(config: Mapping[str, Any]) -> Iterator[str]:
    for field, kind, own in (
        ("IpcMode", "ipc", "private"),
        ("CgroupnsMode", "cgroupns", "private"),
        ("PidMode", "pid", ""),
        ("UTSMode", "uts", ""),
        ("UsernsMode", "userns", ""),
    ):
        mode = config.get(field) or ""
        if mode != own:
            yield f"{kind}:{mode}"


def _mounts(config: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    planned = {mount.target: mount for mount in plan.mounts}
    secrets = {secret.target: secret.name for secret in plan.secrets}
    for mount in config.get("Mounts") or ():
        target = mount["Target"]
        access = "ro" if mount.get("ReadOnly") else "rw"
        plain = mount.keys() <= _MOUNT_KEYS and mount.get("BindOptions") in _PRIVATE_BIND
        same = _is(planned.get(target), mount["Type"], mount.get("Source"))
        if plain and (access, mount["Type"]) == ("ro", "bind") and target in secrets:
            yield f"secret:{secrets[target]}"
            continue
        yield f"mount:{target}:{access}" if plain and same else f"mount:{mount}"
    for bind in config.get("Binds") or ():
        source, target, mode = (*bind.split(":"), "", "")[:3]
        words = mode.split(",")
        same = _is(planned.get(target), "bind", source) and "rprivate" in words
        yield f"mount:{target}:{words[0]}" if same else f"mount:{bind}"


def _is(planned: PlannedMount | None, kind: str, source: str | None) -> bool:
    return planned is not None and (planned.kind, planned.source) == (kind, source)


def _memory_file_systems(config: Mapping[str, Any]) -> Iterator[str]:
    for target, options in (config.get("Tmpfs") or {}).items():
        words = options.split(",")
        yield f"{'tmpfs' if 'noexec' in words else 'tmpfs-exec'}:{target}"
        yield from (f"tmpfs-{word}:{target}" for word in ("nosuid", "nodev") if word not in words)
        if not any(word.startswith("size=") for word in words):
            yield f"tmpfs-unbounded:{target}"
    if config.get("ShmSize"):
        yield f"shm:{config['ShmSize']}"


def _limits(config: Mapping[str, Any]) -> Iterator[str]:
    """Limits take away; a missing one, or a ulimit that is set, can give more than the baseline has."""
    if (config.get("PidsLimit") or 0) <= 0:
        yield "pids:unlimited"
    if config.get("MemorySwap") != config.get("Memory"):
        yield f"swap:{config.get('MemorySwap')}"
    for limit in config.get("Ulimits") or ():
        soft, hard = limit["Soft"], limit["Hard"]
        if (soft, hard) != (0, 0):
            yield f"ulimit:{limit['Name']}={soft if soft == hard else f'{soft}:{hard}'}"
    restart = config.get("RestartPolicy") or {}
    if restart.get("Name") not in {None, "", "no"}:
        yield f"restart:{restart['Name']}:{restart.get('MaximumRetryCount') or 0}"
    log = config.get("LogConfig") or {}
    bounded = log.get("Type") == "json-file" and (log.get("Config") or {}).get("max-size")
    if log.get("Type") != "none" and not bounded:
        yield f"log:{log.get('Type')}"


def _network(config: Mapping[str, Any]) -> Iterator[str]:
    if config.get("NetworkMode") != "none":
        yield f"network:{config.get('NetworkMode')}"
    for container_port, bindings in (config.get("PortBindings") or {}).items():
        yield from (
            f"port:{item.get('HostIp', '')}:{item.get('HostPort', '')}:{container_port}"
            for item in bindings
        )
    if config.get("PublishAllPorts"):
        yield "port:all"
    for entry in config.get("ExtraHosts") or ():
        if entry.partition(":")[2] not in _LOOPBACK:
            yield f"extra-host:{entry}"


def _health(request: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    """A command that the engine runs inside; where nothing is said it is the image's."""
    check = request.get("Healthcheck") or {}
    test = check.get("Test") or []
    if test == ["NONE"]:
        return
    planned = plan.health is not None and test == (
        ["CMD", *plan.health.command] if plan.health.command else []
    )
    yield "healthcheck" if planned else f"healthcheck:{test or 'of the image'}"


def _environment(request: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    planned = dict(plan.env)
    for name, _, value in (entry.partition("=") for entry in request.get("Env") or ()):
        if name not in planned:
            yield f"env-from:{name}"
        elif planned[name] != value:
            # The caller's own value stands instead of the plan's where the profile takes it from there.
            yield f"env-from:{name}" if name in plan.env_from else f"env:{name}"
