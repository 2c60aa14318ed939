"""The profile: what a job asks for. Every key has its one home here: type, default, and the words for docs and schema."""

from typing import Any, Literal

from pydantic import Field

from rocmrun.core.grants import ParsedGrant, parse_grant
from rocmrun.core.profile.checks import OwnCheck
from rocmrun.core.profile.fields import (
    AbsolutePath,
    Boolean,
    Count,
    DevicePath,
    EnvironmentName,
    GrantText,
    Group,
    ModuleName,
    ParameterName,
    Processors,
    Restart,
    Scalar,
    Seconds,
    SecretName,
    SecretSource,
    SelectorText,
    SourceText,
    Text,
    User,
    Words,
)
from rocmrun.core.profile.health import Health
from rocmrun.core.profile.image import Image
from rocmrun.core.profile.table import Table
from rocmrun.core.profile.values import MemoryLimit, Port, Size


class Parameter(Table):
    """A value that `--set NAME=VALUE` fills in, used as ${NAME}."""

    help: Words = Field(description="What to set it to; shown when it is missing.")
    default: Scalar | None = Field(
        None, description="Used when --set does not name it; without one it must be set."
    )


class Gpus(Table):
    """Which GPUs are passed, and how."""

    select: tuple[SelectorText, ...] = Field(
        ("all",),
        description="GPUs to pass: all, none, discrete, index:0, pci:0000:63:00.0, uuid:…, numa:1, arch:gfx942, render:128, partition:0.3.",
    )
    exclusive: Boolean = Field(
        default=True, description="Refuse GPUs that another run or process holds."
    )
    inject: Literal["nodes", "cdi"] = Field(
        "nodes", description="Pass device nodes one by one, or through the engine's CDI."
    )


class Support(Table):
    """AMD's support matrix."""

    policy: Literal["require", "warn", "ignore"] = Field(
        "warn", description="What to do when AMD does not list this GPU, driver and ROCm together."
    )
    unknown: Literal["allow", "block"] = Field(
        "allow", description="Whether to start where AMD's matrix says nothing."
    )


class Container(Table):
    """The process, its limits and its surroundings."""

    entrypoint: tuple[Text, ...] | None = Field(
        None, description="Replaces the image's ENTRYPOINT; [] clears it. Absent: the image's own."
    )
    command: tuple[Text, ...] | None = Field(
        None,
        description="Replaces the image's CMD; appended to the entrypoint. `launch PROFILE -- CMD` replaces it.",
    )
    workdir: AbsolutePath | None = Field(
        None, description="Working directory. Absent: the image's own."
    )
    user: User = Field(
        "caller",
        description="Who runs inside: caller (under sudo, who called it), image, or numbers as in 1000:1000.",
    )
    groups: tuple[Group, ...] = Field(
        (),
        description="Further groups: a number, or path:/TARGET for the group that owns that mount's source.",
    )
    network: Literal["none", "bridge", "host"] = Field(
        "none", description="none, bridge, or host (which needs the privilege network:host)."
    )
    ports: tuple[Port, ...] = Field(
        (), description="Published ports, ADDRESS:HOST:CONTAINER[/udp]; only with bridge."
    )
    shm_size: Size | None = Field(
        None,
        description="Size of /dev/shm. Absent: 1 GiB a GPU and 1 more, at most half of the memory.",
    )
    memory: MemoryLimit = Field(
        MemoryLimit.parse("90%"),
        description="Memory limit: a size, or a share of the host's memory.",
    )
    pids: Count = Field(4096, description="Highest number of processes and threads.")
    cpus: Processors | None = Field(
        None, description="Processors' worth of time. Absent: no limit."
    )
    numa: Literal["any", "gpu"] = Field(
        "any", description="gpu keeps processors and memory on the NUMA nodes of the selected GPUs."
    )
    tmpfs: dict[AbsolutePath, Size] = Field(
        {}, description="Writable directories in memory: path and size. They are noexec."
    )
    stop_timeout: Seconds = Field(10, description="Seconds between SIGTERM and SIGKILL.")
    log_size: Size = Field(
        Size.parse("100MiB"), description="Where the engine's log of the container stops growing."
    )
    restart: Restart = Field(
        "no", description="no, or on-failure:N. To start at boot, let a systemd unit run rocmrun."
    )
    health: Health | None = Field(None, description=Health.__doc__)
    env: dict[EnvironmentName, Text] = Field({}, description="Environment variables.")
    env_from: tuple[EnvironmentName, ...] = Field(
        (),
        description="Variables taken from the caller's environment. Their values are never shown, logged or recorded.",
    )


class Cache(Table):
    """What makes the second start fast."""

    mode: Literal["persistent", "tmpfs"] = Field(
        "persistent",
        description="persistent keeps compiled kernels at HOME, one private directory per profile, digest, GPU architecture and user; tmpfs keeps nothing.",
    )


class Mount(Table):
    """A directory, file or volume of the host."""

    type: Literal["bind", "volume"] = Field(
        "bind", description="A path of the host, or a volume of the engine."
    )
    source: SourceText = Field(
        min_length=1,
        description="Host path (it must exist; ~ and paths relative to the profile's file are allowed), or volume name.",
    )
    target: AbsolutePath = Field(description="Path inside.")
    mode: Literal["ro", "rw"] = Field("ro", description="Read-only, or writable.")
    selinux: Literal["none", "shared", "private"] = Field(
        "none", description="Relabel the source for containers: shared (z) or private (Z)."
    )


class Device(Table):
    """A device node beyond the selected GPUs."""

    path: DevicePath = Field(description="Node below /dev; *, ? and [0-9] match several.")
    reason: Words = Field(description="Why the job needs it.")
    permissions: Literal["r", "rw", "rwm"] = Field("rw", description="Read, write, mknod.")


class Secret(Table):
    """A file that the container's user alone can read; its value is in no plan, log, label or record."""

    name: SecretName = Field(description="Its name; the plan shows it as secret:NAME.")
    source: SecretSource = Field(
        description="Where the value is when the container starts: env:NAME of the caller, or file:PATH (~ and paths relative to the profile's file are allowed)."
    )
    target: AbsolutePath | None = Field(None, description="Path inside. Absent: /run/secrets/NAME.")

    @property
    def path(self) -> str:
        """Where it is inside."""
        return self.target or f"/run/secrets/{self.name}"


class Fetch(Table):
    """What `fetch` does: the same image once, with a network, without GPUs, where only this mount is writable."""

    target: AbsolutePath | None = Field(
        None,
        description="Where downloads go: the target of a mount, or a path below one. Absent: the profile's only mount.",
    )
    command: tuple[Text, ...] | None = Field(
        None,
        description='Downloader, called as in `hf download REPO --local-dir DIR --revision R --include P --exclude P`. Absent: the image\'s Python with huggingface_hub. Others: ["hf", "download"], ["huggingface-cli", "download"].',
    )
    env_from: tuple[EnvironmentName, ...] = Field(
        ("HF_TOKEN",),
        description="Variables that the download gets, and the workload does not; one that is not set is left out.",
    )


class Privilege(Table):
    """A right beyond the baseline."""

    grant: GrantText = Field(description="The right, in the grant vocabulary.")
    reason: Words = Field(description="Why the job needs it.")

    @property
    def parsed(self) -> ParsedGrant:
        """The grant, taken apart."""
        return parse_grant(self.grant)


class Debug(Table):
    """What `--debug` adds, and nothing else does."""

    privileges: tuple[GrantText, ...] = Field((), description="Rights, in the grant vocabulary.")


class Probe(Table):
    """How the GPUs are proved before the job starts."""

    level: Literal["quick", "standard", "full"] = Field("quick", description="What `launch` runs.")
    reuse: Literal["boot", "24h", "never"] = Field(
        "boot",
        description="How long a passed probe of the same plan, digest, driver, kernel and GPUs counts.",
    )
    python: Text = Field(
        "python3", min_length=1, description="Python interpreter inside the image."
    )
    runtime: Literal["torch", "hip"] = Field(
        "torch", description="What computes: torch, or HIP alone for images without it."
    )
    image: Text = Field(
        "", description="Image to probe with, for images without Python. Empty: the profile's own."
    )
    timeout_seconds: Count = Field(
        600, description="When a probe that has not ended counts as failed."
    )
    operators: tuple[ModuleName, ...] = Field(
        (),
        description="Python modules with kernels of their own that must work, as in flash_attn; tried at standard and full, beside known ones that the image holds.",
    )
    checks: tuple[OwnCheck, ...] = Field((), description=OwnCheck.__doc__)


class Policy(Table):
    """What the command line may do."""

    overrides: Boolean = Field(
        default=True,
        description="Whether options may change this profile (-e, -v, --network), widen it (--debug, --unlocked, --share) or weaken its proof (--no-probe).",
    )


class Profile(Table):
    """A complete profile: parents merged, parameters filled in."""

    description: Text = Field("", description="One line for `rocmrun profiles list`.")
    extends: Text | None = Field(
        None, min_length=1, description="Name of one parent profile: tables merge, lists replace."
    )
    accelerator: Literal["rocm", "cuda", "cpu"] = Field(
        "rocm", description="What the probe must find."
    )
    parameters: dict[ParameterName, Parameter] = Field(
        {}, description="Values that --set fills in, by name."
    )
    image: Image = Field(default_factory=Image, description=Image.__doc__)
    gpus: Gpus = Field(default_factory=Gpus, description=Gpus.__doc__)
    support: Support = Field(default_factory=Support, description=Support.__doc__)
    container: Container = Field(default_factory=Container, description=Container.__doc__)
    cache: Cache = Field(default_factory=Cache, description=Cache.__doc__)
    mounts: tuple[Mount, ...] = Field((), description=Mount.__doc__)
    secrets: tuple[Secret, ...] = Field((), description=Secret.__doc__)
    fetch: Fetch = Field(default_factory=Fetch, description=Fetch.__doc__)
    devices: tuple[Device, ...] = Field((), description=Device.__doc__)
    privileges: tuple[Privilege, ...] = Field((), description=Privilege.__doc__)
    debug: Debug = Field(default_factory=Debug, description=Debug.__doc__)
    probe: Probe = Field(default_factory=Probe, description=Probe.__doc__)
    policy: Policy = Field(default_factory=Policy, description=Policy.__doc__)

    def as_data(self, *, defaults: bool = False) -> dict[str, Any]:
        """Return the profile as plain TOML values: what was set, or with *defaults* everything that has a value."""
        return self.model_dump(mode="json", exclude_unset=not defaults, exclude_none=True)
