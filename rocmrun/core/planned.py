"""The parts of a plan, each a value: its image, devices, mounts, limits and GPUs, and how the probe runs in it."""

from dataclasses import dataclass, replace
from typing import Literal

from rocmrun.core.host import DeviceNode

# Each level of the probe does what the one before does, and more.
PROBE_LEVELS = ("quick", "standard", "full")


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
