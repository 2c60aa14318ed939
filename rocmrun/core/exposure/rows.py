"""What each right of a container weighs: the table of `rocmrun-score/1`, one row a kind of right.

A row looks at a container and says how bad it is there, from 0 to 1, in one plain sentence; None is
"does not apply here". Weights and values are argued in docs/exposure.md; a change of either is a new
version of the score.
"""

from rocmrun.core.exposure.capabilities import CAPABILITY_ROWS, SECCOMP_UNLOCKS
from rocmrun.core.exposure.container_rights import BoundMount, ContainerRights
from rocmrun.core.exposure.limits import LIMIT_ROWS
from rocmrun.core.exposure.row import Finding, NotApplicable, RowKind
from rocmrun.core.host_paths import is_raw_device, is_sensitive, socket_reached

ADMIN_GROUPS = frozenset({"0", "root", "docker", "6", "disk"})  # 6 is disk on Debian and Fedora
ENGINE_SECCOMP = 0.2
_SECCOMP = {
    "default": ENGINE_SECCOMP,
    "wide": ENGINE_SECCOMP,
    "tailored": 0.1,
    "tailored-kill": 0.05,
}
_RAW = 1.0
_WHOLE_DRI, _NODES, _INFINIBAND = 0.6, 0.3, 0.2


def _privileged(c: ContainerRights) -> Finding:
    if c.privileged:
        return Finding(1, "privileged: every capability, device and kernel setting at once")
    return Finding(0, "not privileged")


def engine_sockets(c: ContainerRights) -> tuple[str, ...]:
    """Return the sources of binds that reach an engine's socket."""
    return tuple(m.source for m in c.mounts if m.bind and socket_reached(m.source))


def _engine_socket(c: ContainerRights) -> Finding:
    if found := engine_sockets(c):
        return Finding(1, f"{found[0]} reaches an engine's socket: whoever talks to it is root on the host, read-only or not")  # fmt: skip
    return Finding(0, "no engine's socket is mounted")


def _user(c: ContainerRights) -> Finding:
    if not c.root:
        return Finding(0, f"runs as {c.user}, not as root")
    if c.surroundings.remapped:
        return Finding(0.3, "runs as root inside, which is an ordinary user outside")
    return Finding(1, "runs as root: most known ways out of a container need uid 0")


def _seccomp(c: ContainerRights) -> Finding:
    if c.seccomp == "unconfined":
        return Finding(1, "no seccomp filter: every system call of the kernel can be reached")
    unlocked = [name for name in SECCOMP_UNLOCKS if name in c.bounding and c.seccomp == "default"]
    badness = min(1.0, _SECCOMP[c.seccomp] + sum(SECCOMP_UNLOCKS[name] for name in unlocked))
    if c.seccomp != "default":
        return Finding(
            badness, "a seccomp profile of its own decides which system calls can be reached"
        )
    if unlocked:
        return Finding(badness, f"the engine's seccomp filter, with the system calls that {', '.join(unlocked)} unlocks")  # fmt: skip
    return Finding(badness, "the engine's seccomp filter leaves some 360 system calls")


def _pid(c: ContainerRights) -> Finding:
    mode = c.get("PidMode") or ""
    if mode == "host":
        return Finding(1, "sees every process of the host, and may signal those of its own uid")
    if mode.startswith("container:"):
        return Finding(0.3, "shares the processes of another container")
    return Finding(0, "sees its own processes alone")


def _network(c: ContainerRights) -> Finding:
    mode = c.get("NetworkMode") or "default"
    if mode == "host":
        return Finding(
            1, "has the host's network: services on its loopback and its abstract sockets"
        )
    if mode == "none":
        return Finding(0, "has no network")
    if mode in c.surroundings.internal_networks:
        return Finding(0.15, "reaches other containers of a network without a way out")
    if mode.startswith("container:"):
        return Finding(0.4, "shares the network of another container")
    return Finding(0.4, "can send data out through the engine's network")


def _binds(c: ContainerRights) -> Finding:
    findings = [_mount(c, mount) for mount in c.mounts]
    return max(findings, default=Finding(0, "nothing of the host is mounted"))


def _mount(c: ContainerRights, mount: BoundMount) -> Finding:
    if mount.bind and is_sensitive(mount.source):
        access = "read" if mount.read_only else "write"
        return Finding(
            0.4 if mount.read_only else 1, f"may {access} {mount.source}, which is the host's own"
        )
    if mount.read_only:
        return Finding(0.05, f"may read {mount.source}")
    if mount.source in c.surroundings.own_sources:
        return Finding(
            0.05, f"may write its own cache ({mount.target}), which the next start reads again"
        )
    return Finding(0.2, f"may write {mount.source}")


def _lsm(c: ContainerRights) -> Finding | NotApplicable:
    where = c.surroundings
    if where.lsm is False:
        return NotApplicable("this host has neither AppArmor nor SELinux")
    if not c.confined:
        return Finding(1, "AppArmor or SELinux is turned off for it")
    if where.lsm is None:
        return NotApplicable("whether the host has AppArmor or SELinux is unknown")
    if where.engine_lsm is False:
        return Finding(1, "the engine does not apply the AppArmor or SELinux that the host has")
    return Finding(0, "AppArmor or SELinux confines it")


def _devices(c: ContainerRights) -> Finding:
    if c.privileged:
        return Finding(1, "every device node of the host")
    if c.get("DeviceRequests"):
        return Finding(_WHOLE_DRI, "devices that a CDI specification or a vendor's hook adds, card nodes among them")  # fmt: skip
    nodes = c.devices
    if not nodes:
        return Finding(0, "no device node beyond the engine's own")
    if other := [path for path in nodes if _is_other(path)]:
        return Finding(_RAW, f"the driver behind {other[0]} can be reached")
    whole = [path for path in nodes if path.rstrip("/") == "/dev/dri" or "/dri/card" in path]
    gpus = [path for path in nodes if not _is_infiniband(path)]
    badness = _WHOLE_DRI if whole else _NODES if gpus else 0.0
    sentences = [
        f"{whole[0]}: display and memory management besides compute" if whole else
        "the GPUs' compute driver can be reached" if gpus else "",
        "the RDMA driver can be reached" if len(gpus) < len(nodes) else "",
    ]  # fmt: skip
    return Finding(
        badness + (_INFINIBAND if len(gpus) < len(nodes) else 0), ", ".join(filter(None, sentences))
    )


def _is_infiniband(path: str) -> bool:
    return "/dev/infiniband" in path


def _is_other(path: str) -> bool:
    """Whether a node is neither a GPU's nor RDMA's; paths may lie below another root."""
    known = ("/dev/kfd", "/dev/dri", "/dev/nvidia", "/dev/infiniband")
    return is_raw_device(path) or not any(name in path for name in known)


def wildcard_rule(c: ContainerRights) -> bool:
    """Whether a device rule opens a whole kind of devices."""
    rules = [str(rule).split() for rule in c.get("DeviceCgroupRules") or ()]
    return any(rule[:1] == ["a"] or rule[1:2] == ["*:*"] for rule in rules)


def _device_rules(c: ContainerRights) -> Finding:
    if c.privileged or wildcard_rule(c):
        return Finding(1, "any device node that it can make or find may be opened")
    if rules := c.get("DeviceCgroupRules"):
        whole = any(str(rule).partition(":")[2].startswith("*") for rule in rules)
        return Finding(0.6 if whole else 0.3, f"a device rule opens {rules[0]}")
    return Finding(0, "no device rule beyond the nodes passed")


def _no_new_privileges(c: ContainerRights) -> Finding:
    if c.no_new_privileges:
        return Finding(0, "setuid programs gain nothing")
    return Finding(1, "setuid programs in the image can gain rights")


def _masks(c: ContainerRights) -> Finding:
    return {
        "none": Finding(1, "/proc and /sys are not masked: kernel settings can be reached"),
        "custom": Finding(0.5, "/proc and /sys are masked less than the engine would"),
        "default": Finding(0, "the engine masks /proc and /sys"),
    }[c.masks]


def _ipc(c: ContainerRights) -> Finding:
    mode = c.get("IpcMode") or ""
    if mode == "host":
        return Finding(1, "sees the host's shared memory, other jobs' buffers in it")
    if mode == "shareable" or mode.startswith("container:"):
        return Finding(0.3, "shares memory with other containers")
    return Finding(0, "has shared memory of its own")


def _user_namespace(c: ContainerRights) -> Finding | NotApplicable:
    if not c.surroundings.remapped:
        return NotApplicable("the engine does not remap users")
    if c.get("UsernsMode") == "host":
        return Finding(1, "opts out of the engine's user remapping")
    return Finding(0, "users are remapped")


def _groups(c: ContainerRights) -> Finding:
    if found := sorted(c.groups & ADMIN_GROUPS):
        return Finding(1, f"is in group {found[0]}, which owns much of a host")
    if c.groups:
        return Finding(0.1, f"is in group {', '.join(sorted(c.groups))}")
    return Finding(0, "is in no further group")


def _propagation(c: ContainerRights) -> Finding:
    if any(mount.propagation in {"shared", "rshared"} for mount in c.mounts):
        return Finding(1, "what it mounts appears on the host")
    return Finding(0, "mounts stay inside")


def _rootfs(c: ContainerRights) -> Finding:
    if not c.get("ReadonlyRootfs"):
        return Finding(1, "may change every file of its image")
    if found := c.executable_tmpfs:
        return Finding(0.2, f"programs can be written to {found[0]} and run there, until it ends")
    return Finding(0, "may not change its image")


ROWS = (
    RowKind("privileged", 2500, _privileged),
    RowKind("engine_socket", 2500, _engine_socket),
    RowKind("user_root", 1500, _user),
    RowKind("seccomp", 1500, _seccomp),
    RowKind("pid", 1200, _pid),
    RowKind("network", 1200, _network),
    RowKind("binds", 1200, _binds),
    RowKind("lsm", 800, _lsm),
    RowKind("devices", 800, _devices),
    RowKind("device_rules", 800, _device_rules),
    RowKind("no_new_privileges", 700, _no_new_privileges),
    RowKind("masks", 700, _masks),
    RowKind("ipc", 600, _ipc),
    RowKind("user_namespace", 600, _user_namespace),
    RowKind("groups", 500, _groups),
    RowKind("propagation", 500, _propagation),
    RowKind("rootfs", 400, _rootfs),
    *LIMIT_ROWS,
    *CAPABILITY_ROWS,
)
