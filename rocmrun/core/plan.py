"""The plan: the whole container as a value. Nothing here looks at the host or talks to an engine."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from rocmrun.core.planned import (
    PROBE_LEVELS,
    PlannedCheck,
    PlannedDevice,
    PlannedGpu,
    PlannedHealth,
    PlannedImage,
    PlannedMount,
    PlannedPort,
    PlannedSecret,
    PlannedTmpfs,
    PlannedUlimit,
    ProbeSettings,
)

# A plan and its parts are asked for here; the parts are written down in their own module.
__all__ = [
    "PROBE_LEVELS",
    "Grant",
    "LeftOut",
    "Plan",
    "PlannedCheck",
    "PlannedDevice",
    "PlannedGpu",
    "PlannedHealth",
    "PlannedImage",
    "PlannedMount",
    "PlannedPort",
    "PlannedSecret",
    "PlannedTmpfs",
    "PlannedUlimit",
    "ProbeSettings",
    "Role",
    "canonical_json",
]

Role = Literal["workload", "probe"]


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
class LeftOut:
    """A right that the usual recipe has and this plan has not, and why."""

    what: str
    reason: str


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
