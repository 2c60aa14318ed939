"""The catalogue of privileges: what each knob exposes, what in ROCm may want it, and what is narrower.

It explains and orders; whether a job needs a privilege is found by running the job without it
(`rocmrun.core.search`). Severity runs from 0 to 10 and only ranks: `rocmrun.core.exposure.score` has the weights.
"""

from dataclasses import dataclass, replace
from typing import Literal

from rocmrun.core.grants import CAPABILITIES, parse_grant
from rocmrun.core.privilege_texts import CAPABILITY_ROWS, KNOB_ROWS

Group = Literal["seccomp", "capabilities", "namespaces", "user", "filesystem", "devices", "limits"]
GROUPS: tuple[Group, ...] = (
    "seccomp", "capabilities", "namespaces", "user", "filesystem", "devices", "limits",
)  # fmt: skip
Effect = Literal["", "effective", "unlock"]

# From weak to strong: with a stronger value in a set the weaker one says nothing.
CHAINS = (
    ("no network", "network:bridge", "network:host"),
    ("an ipc namespace of its own", "ipc:shareable", "ipc:host"),
    ("seccomp:FILE", "the engine's profile", "seccomp:+mempolicy or seccomp:+pidfd", "seccomp:unconfined"),
    ("device:PATH:r", "device:PATH:rw", "device:PATH:rwm"),
    ("a read-only root", "tmpfs:PATH", "rootfs:rw"),
    ("another user", "user:root"),
    ("shm:BYTES", "twice as much"),
)  # fmt: skip

# (harm, cure): with the first in force the second can be needed where it is not without.
NOT_MONOTONE = (
    ("user:root", "cap:DAC_OVERRIDE",
     "root without capabilities may not open files of others that their owner's uid may"),
    ("user:root", "cap:DAC_READ_SEARCH", "as with DAC_OVERRIDE, for reading"),
    ("user:root", "cap:SETUID", "a program that finds itself root drops to another user, which a non-root user need not"),
    ("user:root", "cap:SETGID", "as with SETUID, for groups"),
    ("user:root", "cap:CHOWN", "a program that finds itself root gives files away, which a non-root user does not try"),
    ("user:root", "cap:FOWNER", "as with CHOWN, for modes"),
)  # fmt: skip

# Knobs of a container that are the same on both sides, with the reason.
KEPT = (
    ("image, command, environment", "they are the job"),
    ("mounts, volumes, ports, cache", "they are the job's data; publishing a port keeps the bridge"),
    ("selected GPUs and their groups", "without them there is no job; leaving out /dev/kfd is the canary"),
    ("memory, swap, pids, cpus, cpuset, log size", "limits take away; both sides have the profile's"),
    ("cgroup, uts and user namespace", "rocmrun has no word for the host's"),
    ("init, restart policy, stop timeout, DNS", "they give no right over the host"),
)  # fmt: skip

# The default capabilities of Docker (moby, oci/caps/defaults.go) belong to AMD's usual line, which drops none.
DOCKER_DEFAULTS = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
    "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
# github.com/ROCm: the rocm/pytorch page's `docker run` line, as in `rocmrun.core.recipe`; nodes are the host's.
AMD_RECIPE = (
    "user:root", "seccomp:unconfined", "nnp:off", "rootfs:rw", "ipc:host", "network:bridge",
    "cap:SYS_PTRACE", *(f"cap:{name}" for name in DOCKER_DEFAULTS),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Privilege:
    """One knob of a container.

    Attributes:
        spelling: The grant, or its form: "cap:SYS_NICE", "device:PATH:rw".
        group: The part of the container that it belongs to.
        severity: 0 to 10; of two that each suffice the lower one is kept.
        exposes: What it opens.
        wanted_by: What in ROCm and around it may want it.
        without: What its absence looks like; "" where nothing is known.
        quiet: Whether jobs lose something without it and say nothing.
        refused_by: Who says no in its absence: "seccomp", "capability check", "namespace" ….
        source: Where this is from.
        effect: For capabilities: in force, or in the bounding set alone, where they unlock system calls.
        narrower: Grants that may do in its place, the first preferred.
    """

    spelling: str
    group: Group
    severity: float
    exposes: str
    wanted_by: str
    without: str = ""
    quiet: bool = False
    refused_by: str = ""
    source: str = ""
    effect: Effect = ""
    narrower: tuple[str, ...] = ()


def catalogue() -> tuple[Privilege, ...]:
    """Return every privilege, in the order of the groups, the mildest first."""
    found = [*map(_knob, KNOB_ROWS)]
    for name in CAPABILITIES:
        found += [_capability(name, root=False), _capability(name, root=True)]
    return tuple(
        sorted(found, key=lambda one: (GROUPS.index(one.group), one.severity, one.spelling))
    )


def privilege_of(what: str, *, root: bool) -> Privilege:
    """Return the entry for one grant as it works for root, or for another user.

    Raises:
        ValueError: there is no such privilege.
    """
    kind, _, value = what.partition(":")
    if kind == "cap":
        return replace(_capability(parse_grant(what).value, root=root), spelling=what)
    row = _KNOBS.get(what) or _KNOBS.get(_form(kind, value, what))
    if row is None:
        msg = f'"{what}" is not a privilege of the catalogue'
        raise ValueError(msg)
    found = replace(_knob(row), spelling=what)
    return replace(found, severity=8.0) if what in _STRONG_GROUPS else found


def severity_of(what: str, *, root: bool) -> float:
    """Return the severity of one grant; sizes rank among themselves by how large they are."""
    severity = privilege_of(what, root=root).severity
    if what.startswith("shm:"):
        return severity + int(what.partition(":")[2]) / 2**60
    return severity


def narrower_than(what: str, *, root: bool) -> tuple[str, ...]:
    """Return the grants that may do in place of *what*, for root or for another user."""
    found = privilege_of(what, root=root).narrower
    if what.startswith("device:") and what.endswith(":rwm"):
        found = (f"{what.removesuffix('m')}",)
    if root:
        # For root a rule is refused: its capability would be in force. That is what is left then.
        return tuple(_FOR_ROOT.get(name, name) for name in found if _FOR_ROOT.get(name) != what)
    return found


def _form(kind: str, value: str, what: str) -> str:
    if kind == "device":
        return "device:PATH:rwm" if what.endswith(":rwm") else "device:PATH:rw"
    if kind == "ulimit":
        memlock = value.startswith("memlock=")
        return "ulimit:memlock=-1" if memlock else "ulimit:NAME=N"
    return _FORMS.get(kind, "")


_FORMS = {
    "group": "group:N",
    "sysctl": "sysctl:KEY=VALUE",
    "tmpfs": "tmpfs:PATH",
    "tmpfs-exec": "tmpfs-exec:PATH",
    "shm": "shm:BYTES",
    "seccomp": "seccomp:FILE",
}
_FOR_ROOT = {"seccomp:+mempolicy": "cap:SYS_NICE", "seccomp:+pidfd": "cap:SYS_PTRACE"}
_STRONG_GROUPS = frozenset({"group:0"})
_KNOBS = {row[0]: row for row in KNOB_ROWS}


def _knob(row: tuple[str, Group, float, str, str, str, bool, str, str, tuple[str, ...]]) -> Privilege:  # fmt: skip
    spelling, group, severity, exposes, wanted_by, without, quiet, refused_by, source, narrower = (
        row
    )
    return Privilege(
        spelling=spelling,
        group=group,
        severity=severity,
        exposes=exposes,
        wanted_by=wanted_by,
        without=without,
        quiet=quiet,
        refused_by=refused_by,
        source=source,
        narrower=narrower,
    )


def _capability(name: str, *, root: bool) -> Privilege:
    effective, unlock, exposes, unlocks, wanted_by, quiet, source = CAPABILITY_ROWS.get(
        name, _PLAIN
    )
    narrower = _INSTEAD.get(name, ())
    if root:
        return Privilege(
            spelling=f"cap:{name}",
            group="capabilities",
            severity=effective,
            exposes=exposes,
            wanted_by=wanted_by,
            quiet=quiet,
            refused_by="capability check",
            source=source,
            effect="effective",
            narrower=tuple(name for name in narrower if name not in _FOR_ROOT),
        )
    return Privilege(
        spelling=f"cap:{name}",
        group="capabilities",
        severity=unlock,
        exposes=f"unlocks {unlocks}"
        if unlocks
        else "unlocks nothing: without effect for this user",
        wanted_by=wanted_by if unlocks else "nothing: it is never in force",
        quiet=quiet and bool(unlocks),
        refused_by="seccomp" if unlocks else "",
        source="moby/profiles seccomp/default.json of 2026-06-30; measured, Docker 20.10: CapEff is 0",
        effect="unlock",
        narrower=narrower,
    )


_INSTEAD = {
    "SYS_NICE": ("seccomp:+mempolicy",),
    "SYS_PTRACE": ("seccomp:+pidfd",),
    "IPC_LOCK": ("ulimit:memlock=-1",),
}
_PLAIN = (4.0, 0.4, "administration of the kernel that no GPU job does", "", "nothing in ROCm that is known", False, "man 7 capabilities")  # fmt: skip
