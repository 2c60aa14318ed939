"""What capabilities weigh. One that is effective counts whole; one in the bounding set counts where it can be regained.

Docker makes no capability effective for a user that is not root. Without no-new-privileges a setuid
program can bring it back, so it counts half; with it the capability only unlocks system calls, which
the row on seccomp counts.
"""

from collections.abc import Callable

from rocmrun.core.exposure.container_rights import ContainerRights
from rocmrun.core.exposure.row import Finding, RowKind

# How much more of the kernel the engine's default filter opens for a capability in the bounding set.
SECCOMP_UNLOCKS = {"SYS_NICE": 0.05, "SYS_PTRACE": 0.15, "SYS_ADMIN": 0.6}
REGAINABLE = 0.5
# With its own process namespace there is nobody else to trace.
REGAINABLE_PTRACE = 0.4

# Row → (weight, what it gives, capability → badness).
_GROUPS: dict[str, tuple[int, str, dict[str, float]]] = {
    "cap_admin": (1500, "may mount, and administer namespaces and much else of the kernel", {"SYS_ADMIN": 1}),
    "cap_kernel": (1200, "may load code into the kernel, reach its memory or change the whole machine",
                   dict.fromkeys(("SYS_MODULE", "SYS_RAWIO", "BPF", "SYS_BOOT", "MAC_ADMIN",
                                  "MAC_OVERRIDE", "SYS_TIME"), 1)),
    "cap_ptrace": (800, "may read and change other processes", {"SYS_PTRACE": 1}),
    "cap_dac": (700, "may get around the owners and modes of files",
                {"DAC_READ_SEARCH": 1,
                 **dict.fromkeys(("DAC_OVERRIDE", "FOWNER", "CHOWN", "FSETID", "IPC_OWNER", "LINUX_IMMUTABLE"), 0.6)}),
    "cap_setid": (500, "may become any user or group", dict.fromkeys(("SETUID", "SETGID", "SETPCAP", "SETFCAP"), 1)),
    "cap_net": (500, "may send raw packets or change network settings", {"NET_ADMIN": 1, "NET_RAW": 0.5}),
    "cap_mknod": (300, "may make device nodes", {"MKNOD": 1}),
    "cap_perf": (300, "may watch the whole machine: counters, kernel messages, checkpoints",
                 dict.fromkeys(("PERFMON", "SYSLOG", "CHECKPOINT_RESTORE", "AUDIT_READ", "AUDIT_CONTROL"), 1)),
    "cap_nice": (150, "may take more than its share of the machine",
                 dict.fromkeys(("SYS_NICE", "SYS_RESOURCE", "SYS_PACCT", "SYS_TTY_CONFIG", "LEASE",
                                "WAKE_ALARM", "BLOCK_SUSPEND"), 1)),
}  # fmt: skip
# These reach nothing outside of the container's own namespaces; IPC_LOCK is the row on memlock.
WEIGHTLESS = frozenset({
    "KILL", "SYS_CHROOT", "AUDIT_WRITE", "NET_BIND_SERVICE", "NET_BROADCAST", "IPC_LOCK",
})  # fmt: skip
WEIGHED = frozenset(name for _, _, badness in _GROUPS.values() for name in badness)


def _assessor(what: str, badness: dict[str, float]) -> Callable[[ContainerRights], Finding]:
    without = what.replace("may ", "may not ", 1)

    def assess(c: ContainerRights) -> Finding:
        held = sorted(badness.keys() & c.bounding, key=lambda name: (-badness[name], name))
        if not held:
            return Finding(0, without)
        worst, names = badness[held[0]], ", ".join(held)
        if held[0] in c.effective:
            return Finding(worst, f"{what} ({names})")
        if c.no_new_privileges:
            return Finding(0, f"{without} ({names} has no effect for a user that is not root)")
        share = REGAINABLE
        if held == ["SYS_PTRACE"] and (c.get("PidMode") or "") != "host":
            share = REGAINABLE_PTRACE
        return Finding(worst * share, f"{what}, through a setuid program ({names})")

    return assess


CAPABILITY_ROWS = tuple(
    RowKind(id_, weight, _assessor(what, badness))
    for id_, (weight, what, badness) in _GROUPS.items()
)
