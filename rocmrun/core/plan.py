"""The plan: the whole container as a value. Nothing here looks at the host or talks to an engine."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from rocmrun.core.host import DeviceNode

Role = Literal["workload", "probe"]
# Each level of the probe does what the one before does, and more.
PROBE_LEVELS = ("quick", "standard", "full")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Grant:
    """One right beyond the empty container. A plan has no other way to add one.

    Attributes:
        what: The right in the grant vocabulary: "device:/dev/kfd:rw", "group:992", "mount:/models:ro".
        reason: Why the job needs it, for people.
        asked_by: "baseline", "gpu 0000:63:00.0", "profile prod: devices[0]", "command line".
    """

    what: str
    reason: str
    asked_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedImage:
    """The image as locked, and as found here.

    Attributes:
        ref: Canonical reference ("docker.io/rocm/pytorch:rocm7.2.4").
        digest: What the lock pins; None when the image is not locked.
        image_id: Id of the local image; None when not looked up (offline).
        source: "registry" or "local" (locked by image id).
    """

    ref: str
    digest: str | None = None
    platform: str = "linux/amd64"
    image_id: str | None = None
    source: Literal["registry", "local"] = "registry"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PlannedDevice:
    """A device node passed in.

    Attributes:
        permissions: "r", "rw" or "rwm".
        cdi: The CDI device that brings it, "amd.com/gpu=0"; "" for a node passed by itself.
        owner: Mode, uid and gid that the CDI specification gives it; None where it has the host's.
    """

    path: str
    host_path: str
    permissions: str = "rw"
    cdi: str = ""
    owner: tuple[int, int, int] | None = None

    def inside(self, node: DeviceNode) -> DeviceNode:
        """Return *node*, the host's, as the container's own: the engine copies no ACL."""
        if self.owner is None:
            return node
        mode, uid, gid = self.owner
        return replace(node, mode=mode, uid=uid, gid=gid, acl=False)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PlannedMount:
    """A bind or volume mount.

    Attributes:
        kind: "bind" or "volume".
        target: Path inside.
        source: Host path, or volume name.
        selinux: Relabel of a bind: "none", "shared" ("z") or "private" ("Z").
        cache: Whether it is rocmrun's own cache directory (made when missing).
    """

    target: str
    source: str
    kind: Literal["bind", "volume"] = "bind"
    read_only: bool = True
    selinux: Literal["none", "shared", "private"] = "none"
    cache: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PlannedSecret:
    """A file with a secret; its value never enters a plan.

    Attributes:
        target: Path inside.
        source: Where the value is: "env:NAME" or "file:PATH".
    """

    target: str
    name: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PlannedTmpfs:
    """A tmpfs: nosuid and nodev always, noexec unless *executable*; owned by the container's user."""

    target: str
    size_bytes: int
    executable: bool = False
    mode: int = 0o1777


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PlannedPort:
    """A published port. *address* is a host address, never implied."""

    address: str
    host_port: int
    container_port: int
    protocol: str = "tcp"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PlannedUlimit:
    """A ulimit; -1 is unlimited."""

    name: str
    soft: int
    hard: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGpu:
    """A GPU that the plan passes, as the probe must find it again.

    Attributes:
        device_id: PCI device ("0x74a1"), and *revision* ("0x00"): together they name the model.
        compute_units: Of this device, which may be a part of its package.
        xgmi_peers: Indices of the plan's GPUs that the host links to this one by xGMI; None when no
            link of it could be read.
    """

    index: int
    gfx: str | None
    pci_address: str | None
    partition: int | None
    render_minor: int
    unique_id: str | None
    numa_node: int | None
    device_id: str | None = None
    revision: str | None = None
    compute_units: int | None = None
    apu: bool | None = None
    xgmi_peers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A right that the usual recipe has and this plan has not, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCheck:
    """A check of the profile's own, which the probe runs.

    Attributes:
        command: What runs; () for a file.
        file: The Python file on this machine that runs in place of a command, or "".
        sha256: Of the file's text, in hex: another text is another plan.
        metrics: Name, least and most of each number that it must print.
        level: The lowest level at which it runs.
        device: "all" or "each".
    """

    name: str
    command: tuple[str, ...] = ()
    file: str = ""
    sha256: str = ""
    timeout_seconds: int = 60
    expect_exit: int = 0
    expect_output: str = ""
    metrics: tuple[tuple[str, float | None, float | None], ...] = ()
    level: str = "standard"
    device: str = "all"
    writable_mounts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """How the probe runs in this plan's container.

    Attributes:
        image: What it runs in where that is not the workload's image; the rights are the same.
        operators: Modules that must import and work, each once.
    """

    level: str = "quick"
    reuse: str = "boot"
    python: str = "python3"
    runtime: str = "torch"
    image: PlannedImage | None = None
    timeout_seconds: int = 600
    accelerator: str = "rocm"
    operators: tuple[str, ...] = ()
    checks: tuple[PlannedCheck, ...] = ()

    def checks_at(self, level: str) -> tuple[PlannedCheck, ...]:
        """Return the profile's own checks that run at *level*."""
        reached = PROBE_LEVELS[: PROBE_LEVELS.index(level) + 1]
        return tuple(check for check in self.checks if check.level in reached)

    def writes_at(self, level: str) -> bool:
        """Whether a check at *level* writes to the profile's rw mounts, which the probe else only reads."""
        return any(check.writable_mounts for check in self.checks_at(level))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedHealth:
    """What the engine runs inside to learn whether the workload is well.

    Attributes:
        command: Without a shell; () is the image's own HEALTHCHECK.
        retries: Failures in a row that make it unhealthy.
    """

    command: tuple[str, ...]
    interval_seconds: int
    timeout_seconds: int
    retries: int
    start_period_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every right, every setting and every GPU of one container, with the reason for each right.

    Sizes are bytes, times seconds, cpus a count. `env_from` holds names only: values never enter a plan.

    Attributes:
        engine: Whose words the create request speaks: "docker", or "podman", which differs in a few.
        cgroup_namespace: "private", or "host" where the engine makes no other.
    """

    profile: str
    image: PlannedImage
    entrypoint: tuple[str, ...] | None
    command: tuple[str, ...]
    workdir: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    gpus: tuple[PlannedGpu, ...]
    devices: tuple[PlannedDevice, ...]
    mounts: tuple[PlannedMount, ...]
    tmpfs: tuple[PlannedTmpfs, ...]
    env: tuple[tuple[str, str], ...]
    env_from: tuple[str, ...]
    network: str
    ports: tuple[PlannedPort, ...]
    hostname: str | None
    extra_hosts: tuple[str, ...]
    ipc: str
    pid: str
    shm_size_bytes: int
    memory_bytes: int | None
    pids: int
    cpus: float | None
    cpuset_cpus: str
    cpuset_mems: str
    ulimits: tuple[PlannedUlimit, ...]
    sysctls: tuple[tuple[str, str], ...]
    cap_add: tuple[str, ...]
    no_new_privileges: bool
    seccomp: str | None
    apparmor: str | None
    selinux_label: str | None
    read_only_root: bool
    masks: bool
    stop_timeout_seconds: int
    log_size_bytes: int
    restart: str
    grants: tuple[Grant, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    isolation: str
    probe: ProbeSettings
    interactive: bool = False
    tty: bool = False
    health: PlannedHealth | None = None
    labels: tuple[tuple[str, str], ...] = field(default=())
    secrets: tuple[PlannedSecret, ...] = ()
    engine: Literal["docker", "podman"] = "docker"
    cgroup_namespace: Literal["private", "host"] = "private"

    @property
    def user(self) -> str:
        """The numeric "uid:gid" that the container runs as."""
        return f"{self.uid}:{self.gid}"

    @property
    def cache(self) -> PlannedMount | None:
        """The cache directory, which must be made before it can be mounted; None without one."""
        return next((mount for mount in self.mounts if mount.cache), None)

    @property
    def cdi_devices(self) -> tuple[str, ...]:
        """Names of the CDI devices asked for, sorted."""
        return tuple(sorted({device.cdi for device in self.devices if device.cdi}))

    @property
    def render_minors(self) -> tuple[int, ...]:
        """Render minors of the GPUs passed, sorted."""
        return tuple(sorted(gpu.render_minor for gpu in self.gpus))

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the plan's canonical JSON: equal plans, equal hashes."""
        return hashlib.sha256(canonical_json(asdict(self)).encode()).hexdigest()

    def with_changes(self, **changes: Any) -> "Plan":
        """Return a copy with *changes*; for the probe's sibling plan and for tests."""
        return replace(self, **changes)


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no spare blanks, so that equal values are equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
