"""What an engine says of itself: facts without judgement."""

from dataclasses import dataclass

from rocmrun.core.host import HostFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What an engine says of itself.

    Attributes:
        kind: "docker", "podman", or the name in /version.
        address: The socket or host that answered.
        identity: What it calls itself, in the same words until it is installed anew; None where it has no name.
        components: Name and version of what it starts containers with, "runc 1.1.5".
        api_version: The highest API version it speaks, "1.41".
        kernel: Its kernel release: another than the host's means another machine or VM.
        security_options: /info SecurityOptions as strings.
        default_runtime: "runc", "runsc", …
        cgroup_version: 1 or 2.
        cdi_devices: Names that the engine discovered, such as "amd.com/gpu=0".
        mirrors: Registry mirrors configured in the daemon.
    """

    kind: str
    version: str
    api_version: str
    address: str
    identity: str | None = None
    components: tuple[str, ...] = ()
    kernel: str | None = None
    operating_system: str | None = None
    architecture: str | None = None
    security_options: tuple[str, ...] = ()
    default_runtime: str | None = None
    runtimes: tuple[str, ...] = ()
    cgroup_driver: str | None = None
    cgroup_version: int | None = None
    root_directory: str | None = None
    cdi_spec_dirs: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    memory_limit: bool = True
    pids_limit: bool = True
    swap_limit: bool = True

    @property
    def key(self) -> str:
        """What tells it from other engines: its own name for itself, else where it answers."""
        return self.identity or self.address

    @property
    def podman(self) -> bool:
        """Whether it is Podman, which answers Docker's API and means a few words of it otherwise."""
        return self.kind == "podman"

    @property
    def rootless(self) -> bool:
        """Whether the engine runs without root (no device cgroups then)."""
        return any(option.startswith("name=rootless") for option in self.security_options)

    @property
    def userns_remap(self) -> bool:
        """Whether the daemon maps container ids to other host ids."""
        return any(option.startswith("name=userns") for option in self.security_options)

    @property
    def desktop(self) -> bool:
        """Whether it is Docker Desktop, whose containers run in a virtual machine."""
        return (self.operating_system or "").startswith("Docker Desktop")

    @property
    def snap(self) -> bool:
        """Whether it is the snap package, whose confinement hides the host's nodes and directories."""
        return (self.root_directory or "").startswith(("/var/snap/", "/snap/"))

    @property
    def cdi(self) -> bool:
        """Whether CDI is on: Docker 25 can, 28.2 does by default, and then names the directories that it reads."""
        return bool(self.cdi_spec_dirs)

    @property
    def security_modules(self) -> tuple[str, ...]:
        """Which of AppArmor and SELinux it applies."""
        modules = ("apparmor", "selinux")
        return tuple(
            m for m in modules if any(o.startswith(f"name={m}") for o in self.security_options)
        )

    def same_kernel(self, host: HostFacts) -> bool | None:
        """Whether it runs on *host*'s kernel release; None where either is unknown or the facts are a tree's."""
        if host.root != "/" or not self.kernel or not host.kernel:
            return None
        return self.kernel == host.kernel

    @property
    def seccomp_profile(self) -> str | None:
        """The default profile: "default"/"builtin" are the engine's own, a path is the site's, None is no seccomp."""
        for option in self.security_options:
            if option.startswith("name=seccomp"):
                parts = dict(part.partition("=")[::2] for part in option.split(","))
                return parts.get("profile", "default")
        return None
