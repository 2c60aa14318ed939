"""Capabilities, seccomp, namespaces and limits that a profile asks for beyond the baseline."""

from dataclasses import dataclass

from rocmrun.core import baseline
from rocmrun.core.plan import PlannedUlimit
from rocmrun.core.planning.draft import AskedPrivilege, Draft
from rocmrun.core.planning.podman import PODMAN_ALLOWS, podman_nproc, runs_on_podman
from rocmrun.errors import EngineUnsuitable, PlanRefused, UsageError

# Docker's default seccomp profile keys these rules on the bounding set alone, so that for a non-root
# user the capability unlocks the system calls and is never effective (measured, Docker 20.10).
SECCOMP_RULES = {
    "+mempolicy": ("SYS_NICE", "mbind, get_mempolicy, set_mempolicy, set_mempolicy_home_node"),
    "+pidfd": ("SYS_PTRACE", "kcmp, pidfd_getfd, process_madvise"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The security settings of a plan."""

    cap_add: tuple[str, ...]
    seccomp: str | None
    apparmor: str | None
    selinux_label: str | None
    no_new_privileges: bool
    read_only_root: bool
    masks: bool
    ipc: str
    pid: str
    ulimits: tuple[PlannedUlimit, ...]
    sysctls: tuple[tuple[str, str], ...]
    groups: tuple[int, ...]


def plan_security(draft: Draft, uid: int) -> Security:
    """Return the security settings, granting whatever goes beyond the baseline."""
    return Security(
        cap_add=_capabilities(draft, uid),
        seccomp=_seccomp(draft),
        apparmor=_word(draft, "apparmor"),
        selinux_label=_label(draft),
        no_new_privileges=_word(draft, "nnp") is None,
        read_only_root=_word(draft, "rootfs") is None,
        masks=_masks(draft),
        ipc=_word(draft, "ipc") or "private",
        pid=_word(draft, "pid") or "private",
        ulimits=_ulimits(draft),
        sysctls=_sysctls(draft),
        groups=_groups(draft),
    )


def _word(draft: Draft, kind: str) -> str | None:
    """Return the last grant of a kind that takes one value, granting it."""
    asked = draft.asked(kind)
    if not asked:
        return None
    draft.record(asked[-1])
    return asked[-1].parsed.value


def _masks(draft: Draft) -> bool:
    if draft.asked("masks") and runs_on_podman(draft):
        msg = "masks:off has no effect: Podman's Docker socket leaves /proc masked"
        raise EngineUnsuitable(
            msg, hint="use Docker Engine for this profile, or leave masks:off out"
        )
    return _word(draft, "masks") is None


def _label(draft: Draft) -> str | None:
    """Return "disable" where it is asked for, or comes with a namespace of the host."""
    asked = _word(draft, "label")
    shared = [
        entry
        for kind in ("ipc", "pid")
        for entry in draft.asked(kind)[-1:]
        if entry.parsed.value == "host"
    ]
    if asked or not shared:
        return asked
    draft.grant(
        "label:disable",
        f"the engine takes the SELinux label from every container with {shared[0].parsed}",
        shared[0].asked_by,
    )
    return "disable"


def _capabilities(draft: Draft, uid: int) -> tuple[str, ...]:
    names = set()
    for asked in draft.asked("cap"):
        name = asked.parsed.value
        draft.record(asked, note=_effect(draft, uid))
        names.add(name)
    for asked in draft.asked("seccomp"):
        if asked.parsed.value in SECCOMP_RULES:
            names |= _rule_capability(draft, asked, uid)
    return tuple(sorted(names))


def _effect(draft: Draft, uid: int) -> str:
    if uid == 0:
        return "effective"
    if runs_on_podman(draft):
        return f"effective for uid {uid} too: Podman makes what is added ambient"
    return f"for uid {uid} never effective: it only unlocks system calls in the seccomp profile"


def _rule_capability(draft: Draft, asked: AskedPrivilege, uid: int) -> set[str]:
    """Return the capability that unlocks a rule; none with Podman, where it would be effective."""
    capability, calls = SECCOMP_RULES[asked.parsed.value]
    if runs_on_podman(draft):
        draft.record(asked, note=f"adds nothing: {PODMAN_ALLOWS[asked.parsed.value]}")
        return set()
    if uid == 0:
        msg = f"{asked.parsed} needs a non-root user: for root {capability} would be effective"
        raise PlanRefused(
            msg, hint='drop user:root, or write your own profile: grant = "seccomp:FILE"'
        )
    draft.record(
        asked, note=f"unlocks {calls} and nothing else, through {capability} in the bounding set"
    )
    return {capability}


def _seccomp(draft: Draft) -> str | None:
    """Return "unconfined", a profile by value, or None for the engine's own."""
    chosen: AskedPrivilege | None = None
    for asked in draft.asked("seccomp"):
        if asked.parsed.value in SECCOMP_RULES:
            continue
        if chosen is not None:
            msg = f"two seccomp profiles are asked for: {chosen.parsed} and {asked.parsed}"
            raise UsageError(msg)
        chosen = asked
    if chosen is None:
        return None
    draft.record(chosen)
    value = chosen.parsed.value
    return value if value == "unconfined" else draft.request.seccomp_files[value]


def _ulimits(draft: Draft) -> tuple[PlannedUlimit, ...]:
    limits = {"core": PlannedUlimit(name="core", soft=0, hard=0)}
    ceiling = draft.request.host.nofile_limit
    nofile = baseline.NOFILE if ceiling is None else min(baseline.NOFILE, ceiling)
    if nofile < baseline.NOFILE:
        draft.note(
            f"nofile is {nofile}, not {baseline.NOFILE}: this host's hard limit allows no more"
        )
    limits["nofile"] = PlannedUlimit(name="nofile", soft=nofile, hard=nofile)
    draft.grant(f"ulimit:nofile={nofile}", "data loaders and servers open many files")
    if (nproc := podman_nproc(draft)) is not None:
        limits["nproc"] = PlannedUlimit(name="nproc", soft=nproc, hard=nproc)
    for asked in draft.asked("ulimit"):
        soft, hard = asked.parsed.limits
        limits[asked.parsed.value] = PlannedUlimit(name=asked.parsed.value, soft=soft, hard=hard)
        draft.withdraw(f"ulimit:{asked.parsed.value}=")
        draft.record(asked)
    return tuple(limits[name] for name in sorted(limits))


def _sysctls(draft: Draft) -> tuple[tuple[str, str], ...]:
    found = {}
    for asked in draft.asked("sysctl"):
        found[asked.parsed.value] = asked.parsed.extra
        draft.withdraw(f"sysctl:{asked.parsed.value}=")
        draft.record(asked)
    return tuple(sorted(found.items()))


def _groups(draft: Draft) -> tuple[int, ...]:
    """Return the groups that [container] groups and group grants name."""
    request = draft.request
    targets = {mount.target: mount.source for mount in request.profile.mounts}
    found: set[int] = set()
    for index, entry in enumerate(request.profile.container.groups):
        asked_by = request.asked_by(f"container.groups[{index}]")
        target = str(entry).removeprefix("path:")
        if target == str(entry):
            gid, reason = int(target), "named by its number"
        else:
            facts = request.paths.get(targets.get(target, ""))
            if facts is None or not facts.components:
                msg = f"{asked_by}: no bind mount with the target {target}"
                raise UsageError(msg)
            gid, reason = facts.components[-1][3], f"owns {targets[target]}, mounted at {target}"
        if gid not in found:
            found.add(gid)
            draft.grant(f"group:{gid}", reason, asked_by)
    for asked in draft.asked("group"):
        gid = int(asked.parsed.value)
        if gid not in found:
            found.add(gid)
            draft.record(asked)
    return tuple(sorted(found))
