"""A systemd unit that runs `rocmrun launch` in the foreground, so that plan, probe and guard run at every start."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rocmrun.core.profile.model import Profile
from rocmrun.core.text import printable
from rocmrun.core.workloads import check_container_name
from rocmrun.errors import UsageError

# Beside the probe: reading, planning, a pull of an image that is not here.
START_ALLOWANCE_SECONDS = 600
STOP_ALLOWANCE_SECONDS = 30
# What must hold here and nothing more. Nothing that gives rocmrun a file system view of its own
# (ProtectSystem=, PrivateTmp=, ProtectHome=): it judges mount sources, and the engine sees the real ones.
_HARDENING = (
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
)
# chown of a cache, reading what others own, and what tells that the engine may raise limits.
_CAPABILITIES = "CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_SYS_RESOURCE"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRequest:
    """What a unit is made from; every path is absolute.

    Attributes:
        program: The words that start rocmrun.
        name: The profile's name.
        profile_path: The profile's file.
        lockfile: The lock that pins its image now.
        directory: Where relative paths of *settings* start.
        settings: What --set says.
        container: The container's name.
        user: Whether it is for a user's own manager rather than the system's.
        docker_host: DOCKER_HOST, where it is set.
    """

    program: tuple[str, ...]
    name: str
    profile_path: str
    profile: Profile
    lockfile: str
    directory: str
    container: str
    settings: Mapping[str, str] = field(default_factory=dict)
    profile_directories: tuple[str, ...] = ()
    user: bool = False
    docker_host: str = ""

    @property
    def unit_name(self) -> str:
        """The file's name."""
        return f"{self.container}.service"


def unit_text(request: UnitRequest) -> str:
    """Return the unit's text.

    Raises:
        UsageError: the container's name is none, or a unit cannot name the directory.
    """
    _check(request)
    sections = {"Unit": _unit(request), "Service": _service(request), "Install": _install(request)}
    text = "\n\n".join("\n".join((f"[{name}]", *lines)) for name, lines in sections.items())
    return "\n".join((*_head(request), "", text)) + "\n"


def _check(request: UnitRequest) -> None:
    check_container_name(request.container)
    # A path stands in a unit as it is: there are no quotes for it.
    if not request.directory.isprintable() or request.directory.endswith("\\"):
        msg = (
            "a unit cannot name this working directory: it has a line end or a backslash at the end"
        )
        raise UsageError(msg, hint="run the command in another directory")


def _head(request: UnitRequest) -> tuple[str, ...]:
    place = "~/.config/systemd/user" if request.user else "/etc/systemd/system"
    manager = "systemctl --user" if request.user else "systemctl"
    return (
        f"# {place}/{request.unit_name}, made by rocmrun profiles unit {request.name}",
        f"# {manager} daemon-reload && {manager} enable --now {request.unit_name}",
        *(
            ("# So that it starts at boot, before you log in: loginctl enable-linger",)
            if request.user
            else ()
        ),
    )


def _unit(request: UnitRequest) -> tuple[str, ...]:
    # A user's manager knows no units of the system.
    after = () if request.user else (
        "Wants=docker.service network-online.target",
        "After=docker.service network-online.target",
    )  # fmt: skip
    title = " ".join(printable(request.profile.description or f"rocmrun {request.name}").split())
    # A backslash at its end would take the next line in.
    title = title.rstrip("\\ ")
    return (
        f"Description={_specifiers(title)}",
        *after,
        "# Five failures in fifteen minutes, whether the engine is not up, a GPU is busy or the profile is wrong.",
        "StartLimitIntervalSec=15min",
        "StartLimitBurst=5",
    )


def _service(request: UnitRequest) -> tuple[str, ...]:
    health = request.profile.container.health
    health_seconds = 0
    if health is not None:
        health_seconds = health.start_period + (health.interval + health.timeout) * (
            health.retries + 1
        )
    start = request.profile.probe.timeout_seconds + START_ALLOWANCE_SECONDS + health_seconds
    stop = request.profile.container.stop_timeout + STOP_ALLOWANCE_SECONDS
    launch = ("launch", request.profile_path, "--name", request.container, *_options(request))
    end = ("stop", "--missing-ok", request.container)
    return (
        "# READY when the workload runs; with [container] health when it is healthy.",
        "Type=notify",
        "NotifyAccess=main",
        f"WorkingDirectory={_specifiers(request.directory)}",
        *_environment(request),
        *_identity(request),
        "# What a rocmrun that was killed has left running.",
        f"ExecStartPre=-{_command(*request.program, *end)}",
        f"ExecStart={_command(*request.program, *launch)}",
        f"ExecStop=-{_command(*request.program, *end)}",
        "# 125 is rocmrun's own failure, which may pass; a command that is missing or no program will not.",
        "Restart=on-failure",
        "RestartSec=30",
        "RestartPreventExitStatus=126 127",
        "# Ended by SIGTERM, which is how it is stopped.",
        "SuccessExitStatus=143",
        f"TimeoutStartSec={start}",
        f"TimeoutStopSec={stop}",
        "KillMode=mixed",
        *_HARDENING,
    )


def _install(request: UnitRequest) -> tuple[str, ...]:
    return ("WantedBy=default.target",) if request.user else ("WantedBy=multi-user.target",)


def _options(request: UnitRequest) -> tuple[str, ...]:
    return (
        "--lockfile",
        request.lockfile,
        *(word for path in request.profile_directories for word in ("--profile-dir", path)),
        *(word for key, value in request.settings.items() for word in ("--set", f"{key}={value}")),
    )


def _environment(request: UnitRequest) -> tuple[str, ...]:
    """A service has none of its author's variables."""
    lines = (
        [f"Environment={_word(f'DOCKER_HOST={request.docker_host}')}"]
        if request.docker_host
        else []
    )
    names = _variables(request.profile)
    if names:
        place = "%h/.config/rocmrun" if request.user else "/etc/rocmrun"
        lines += [
            f"# Make it with mode 0600: {', '.join(f'{printable(name)}=…' for name in names)}, one a line.",
            f"EnvironmentFile={place}/{_specifiers(request.name)}.env",
        ]
    return tuple(lines)


def _variables(profile: Profile) -> tuple[str, ...]:
    """Return the variables that a launch takes from its caller, for itself or as secrets."""
    sources = [secret.source for secret in profile.secrets if secret.source.startswith("env:")]
    return tuple(
        dict.fromkeys((*profile.container.env_from, *(text.partition(":")[2] for text in sources)))
    )


def _identity(request: UnitRequest) -> tuple[str, ...]:
    if request.user:
        return ()
    return (
        "# As root the container runs as 65532:65532; or name a user of the docker group to run it as that user.",
        "#User=",
        f"CapabilityBoundingSet={_CAPABILITIES}",
    )


def _command(*words: str) -> str:
    return " ".join(_word(word.replace("$", "$$")) for word in words)


def _word(text: str) -> str:
    """Return one word as systemd.syntax(7) reads it: quoted where it must be, specifiers doubled."""
    plain = _specifiers(text)
    if plain and all(character.isalnum() or character in "-_./:=@,+%$" for character in plain):
        return plain
    return '"' + "".join(map(_escaped, plain)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")
