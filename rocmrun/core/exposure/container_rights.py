"""What a container may do, read from a create request or from an engine's record of a container.

Only reads: what a right is worth is `rows`' to say. Where the record is silent the engine's
default counts, and where that is unknown the weaker reading.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.grants import CAPABILITIES
from rocmrun.core.host import HostFacts
from rocmrun.core.stricter import MASKED, READ_ONLY

# What Docker gives a container that says nothing of capabilities (moby, oci/caps/defaults.go).
DEFAULT_CAPABILITIES = frozenset({
    "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP",
    "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
})  # fmt: skip
# System calls that Docker's default profile always allows (moby/profiles of 2026-06-30).
DEFAULT_SYSTEM_CALLS = 361


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a request does not say and its weight depends on.

    Attributes:
        lsm: Whether the host has AppArmor or SELinux; None is unknown.
        engine_lsm: Whether the engine applies it; None is unknown.
        remapped: Whether root inside is an ordinary user outside (userns-remap, rootless).
        private_cgroups: Whether containers get a cgroup namespace of their own unless asked otherwise.
        own_sources: Directories that hold nothing but what such a container wrote: rocmrun's caches.
        internal_networks: Networks of the engine that lead nowhere.
        ambient: Whether capabilities that are added are in force for every user, as Podman makes them.
    """

    lsm: bool | None = None
    engine_lsm: bool | None = None
    remapped: bool = False
    private_cgroups: bool = True
    own_sources: frozenset[str] = frozenset()
    internal_networks: frozenset[str] = frozenset()
    ambient: bool = False

    @classmethod
    def of(
        cls,
        host: HostFacts,
        engine: EngineFacts | None,
        *,
        own_sources: frozenset[str] = frozenset(),
    ) -> "Surroundings":
        """Return the surroundings on a host, under an engine where one was asked."""
        known = host.apparmor is not None or host.selinux is not None
        lsm = bool(host.apparmor) or host.selinux in {"enforcing", "permissive"}
        options = engine.security_options if engine else ()
        return cls(
            lsm=lsm if lsm or known else None,
            engine_lsm=any(text.startswith(("name=apparmor", "name=selinux")) for text in options)
            if engine
            else None,
            remapped=bool(engine and (engine.rootless or engine.userns_remap)),
            # Docker's default is the host's on cgroup v1.
            private_cgroups=not engine or engine.cgroup_version != 1,
            own_sources=own_sources,
            ambient=bool(engine and engine.podman),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundMount:
    """A bind or volume of a container."""

    source: str
    target: str
    read_only: bool
    bind: bool = True
    propagation: str = ""


@dataclass(frozen=True, slots=True)
class ContainerRights:
    """A container's settings, as its request or record spells them, with questions about them."""

    config: Mapping[str, Any]
    user: str
    surroundings: Surroundings

    @classmethod
    def of(cls, request: Mapping[str, Any], surroundings: Surroundings) -> "ContainerRights":
        """Read the body of POST /containers/create: Config with HostConfig inside."""
        return cls(request.get("HostConfig") or {}, str(request.get("User") or ""), surroundings)

    @classmethod
    def of_inspected(
        cls, record: Mapping[str, Any], surroundings: Surroundings
    ) -> "ContainerRights":
        """Read GET /containers/{id}/json."""
        user = str((record.get("Config") or {}).get("User") or "")
        return cls(record.get("HostConfig") or {}, user, surroundings)

    def get(self, field: str) -> Any:
        """Return a field of HostConfig."""
        return self.config.get(field)

    @property
    def privileged(self) -> bool:
        """Whether it has everything at once."""
        return bool(self.get("Privileged"))

    @property
    def root(self) -> bool:
        """Whether it runs as uid 0 inside; "" is the image's USER, and without one root."""
        uid = self.user.partition(":")[0]
        return uid in {"", "root"} or (uid.isdigit() and int(uid) == 0)

    @property
    def groups(self) -> frozenset[str]:
        """Supplementary groups; group root counts as primary group too, unless the user is root."""
        found = {str(group) for group in self.get("GroupAdd") or ()}
        if not self.root and self.user.partition(":")[2] in {"0", "root"}:
            found.add("0")
        return frozenset(found)

    @property
    def bounding(self) -> frozenset[str]:
        """Capabilities in the bounding set: where seccomp looks, and what a setuid program can gain."""
        if self.privileged:
            return frozenset(CAPABILITIES)
        added, dropped = _names(self.get("CapAdd")), _names(self.get("CapDrop"))
        kept = frozenset() if "ALL" in dropped else DEFAULT_CAPABILITIES - dropped
        return (frozenset(CAPABILITIES) - dropped) if "ALL" in added else kept | added

    @property
    def effective(self) -> frozenset[str]:
        """Capabilities in force: Docker makes none effective for a user that is not root, Podman those that are added."""
        if self.root:
            return self.bounding
        return _names(self.get("CapAdd")) if self.surroundings.ambient else frozenset()

    @property
    def options(self) -> dict[str, str]:
        """SecurityOpt as name → value; "name:value" is an older spelling of "name=value"."""
        found: dict[str, str] = {}
        for option in self.get("SecurityOpt") or ():
            name, separator, value = option.partition("=")
            if not separator:
                name, _, value = option.partition(":")
            found[name] = f"{found[name]},{value}" if name in found else value
        return found

    @property
    def no_new_privileges(self) -> bool:
        """Whether setuid programs and file capabilities gain nothing."""
        text = self.options.get("no-new-privileges:true", self.options.get("no-new-privileges"))
        return text is not None and text != "false"

    @property
    def seccomp(self) -> str:
        """The filter: "default", "unconfined", "tailored", "tailored-kill", or "wide", which allows more than the default."""
        text = self.options.get("seccomp")
        if text is None or text in {"builtin", "default"}:
            # Privileged turns the default profile off; a profile that is named stays.
            return "unconfined" if self.privileged and text is None else "default"
        return "unconfined" if text == "unconfined" else _kind_of_profile(text)

    @property
    def confined(self) -> bool:
        """Whether nothing in the request turns AppArmor or SELinux off."""
        options = self.options
        return not (
            self.privileged
            or options.get("apparmor") == "unconfined"
            or "disable" in options.get("label", "").split(",")
        )

    @property
    def masks(self) -> str:
        """What of /proc and /sys is hidden and read-only: "default", "custom" or "none" of it."""
        masked, read_only = self.get("MaskedPaths"), self.get("ReadonlyPaths")
        if self.privileged or masked == [] or read_only == []:
            return "none"
        whole = (masked is None or frozenset(masked) >= MASKED) and (
            read_only is None or frozenset(read_only) >= READ_ONLY
        )
        return "default" if whole else "custom"

    @property
    def devices(self) -> tuple[str, ...]:
        """Host paths of the nodes passed, in order."""
        return tuple(str(item.get("PathOnHost") or "") for item in self.get("Devices") or ())

    @property
    def mounts(self) -> tuple[BoundMount, ...]:
        """Binds and volumes, in either spelling."""
        found = [
            BoundMount(
                source=mount.get("Source") or "",
                target=mount.get("Target") or "",
                read_only=bool(mount.get("ReadOnly")),
                bind=mount.get("Type") == "bind",
                propagation=(mount.get("BindOptions") or {}).get("Propagation") or "",
            )
            for mount in self.get("Mounts") or ()
            if mount.get("Type") != "tmpfs"
        ]
        return (*found, *map(_bind, self.get("Binds") or ()))

    @property
    def executable_tmpfs(self) -> tuple[str, ...]:
        """Memory file systems from which programs run; without the word an engine mounts them noexec."""
        tmpfs = self.get("Tmpfs") or {}
        return tuple(target for target in sorted(tmpfs) if "exec" in tmpfs[target].split(","))


def _names(capabilities: Any) -> frozenset[str]:
    return frozenset(str(name).upper().removeprefix("CAP_") for name in capabilities or ())


def _bind(text: str) -> BoundMount:
    source, target, mode = (*text.split(":"), "", "")[:3]
    words = mode.split(",")
    spread = next((word for word in words if word.endswith(("shared", "slave", "private"))), "")
    return BoundMount(
        source=source,
        target=target,
        read_only="ro" in words,
        bind=source.startswith("/"),
        propagation=spread,
    )


def _kind_of_profile(text: str) -> str:
    """Judge a profile by value; one that cannot be read is as good as none."""
    try:
        profile = json.loads(text)
        action = str(profile["defaultAction"])
        calls = {
            name
            for rule in profile.get("syscalls") or ()
            if rule.get("action") == "SCMP_ACT_ALLOW"
            for name in (rule.get("names") or (rule.get("name"),))
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "unconfined"
    if action in {"SCMP_ACT_ALLOW", "SCMP_ACT_LOG"}:
        return "unconfined"
    if len(calls) > DEFAULT_SYSTEM_CALLS:
        return "wide"
    return "tailored-kill" if action.startswith("SCMP_ACT_KILL") else "tailored"
