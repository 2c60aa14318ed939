"""What "stricter" means for every field of HostConfig that carries a right: one comparator each."""

import re
from typing import Any

from rocmrun.core.stricter_storage import compare_devices, compare_mounts, compare_tmpfs
from rocmrun.core.text import MIB
from rocmrun.core.verdict import Comparator, Verdict, normal

# The lists that Docker 20.10 fills in when none is sent; newer engines mask more, never less.
MASKED = frozenset({
    "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/scsi",
    "/proc/timer_list", "/proc/sched_debug", "/sys/firmware",
})  # fmt: skip
READ_ONLY = frozenset({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"})
KNOWN_RUNTIMES = frozenset({"", "runc", "crun", "oci", "io.containerd.runc.v2"})
ENGINE_SHM = 64 * MIB
ROUNDING = 0.001  # four digits

# No right depends on these: bookkeeping of the engine, and shares that only divide what there is.
NEUTRAL = frozenset({
    "Annotations", "ConsoleSize", "ContainerIDFile", "CpuShares", "Init", "Isolation",
    "MemoryReservation", "MemorySwappiness", "VolumeDriver",
})  # fmt: skip

_IPC = ("none", "private", "shareable", "host")
# Docker's word for a namespace of its own is "", Podman's is "private".
_OWN = frozenset({"", "private"})


def verdict(field: str, asked: Any, got: Any) -> Verdict:
    """Return how what the engine recorded for *field* compares with what was sent."""
    compare = COMPARATORS.get(field)
    if compare is not None:
        return compare(asked, got)
    return "equal" if normal(asked) == normal(got) else "weaker"


def _set_of(value: Any) -> frozenset[str]:
    return frozenset(str(item) for item in value or ())


def _subset(asked: Any, got: Any) -> Verdict:
    """Fewer is stricter: groups."""
    if _set_of(asked) == _set_of(got):
        return "equal"
    return "stricter" if _set_of(got) < _set_of(asked) else "weaker"


def _added_capabilities(asked: Any, got: Any) -> Verdict:
    """Podman and newer engines spell CAP_; the sets are what counts."""
    return _subset(_capabilities(asked), _capabilities(got))


def _dropped_capabilities(asked: Any, got: Any) -> Verdict:
    """More is stricter."""
    return _subset(_capabilities(got), _capabilities(asked))


def _capabilities(names: Any) -> list[str]:
    return [name.upper().removeprefix("CAP_") for name in names or ()]


def _true_is_stricter(asked: Any, got: Any) -> Verdict:
    if bool(asked) == bool(got):
        return "equal"
    return "stricter" if got else "weaker"


def _false_is_stricter(asked: Any, got: Any) -> Verdict:
    return _true_is_stricter(not asked, not got)


def _lower_limit(asked: Any, got: Any) -> Verdict:
    """A limit: 0, null and -1 are unlimited; lower is stricter."""
    limit, recorded = _limit(asked), _limit(got)
    if limit == recorded:
        return "equal"
    return "stricter" if recorded < limit else "weaker"


def _limit(value: Any) -> float:
    return float(value) if value and value > 0 else float("inf")


def _shared_memory(asked: Any, got: Any) -> Verdict:
    """Null is the engine's default; smaller is stricter."""
    return _lower_limit(asked or ENGINE_SHM, got or ENGINE_SHM)


def _higher(asked: Any, got: Any) -> Verdict:
    """OomScoreAdj: with a higher one the kernel kills the container before others."""
    if (asked or 0) == (got or 0):
        return "equal"
    return "stricter" if (got or 0) > (asked or 0) else "weaker"


def _paths(default: frozenset[str]) -> Comparator:
    """Null is the engine's default list; [] unmasks everything. More paths are stricter."""

    def compare(asked: Any, got: Any) -> Verdict:
        wanted = default if asked is None else _set_of(asked)
        # An engine that leaves the list out of inspect applies its default.
        present = default if got is None else _set_of(got)
        if not present >= wanted:
            return "weaker"
        return "equal" if asked is None or present == wanted else "stricter"

    return compare


def _security_options(asked: Any, got: Any) -> Verdict:
    """Compare as sets; an option more is weaker, unless it is no-new-privileges."""
    wanted, present = _options(asked), _options(got)
    if wanted == present:
        return "equal"
    more = present - wanted
    return "stricter" if wanted < present and more == {"no-new-privileges"} else "weaker"


def _options(options: Any) -> set[str]:
    return {
        "no-new-privileges" if re.fullmatch(r"no-new-privileges([:=]true)?", option) else option
        for option in options or ()
    }


def _namespace(asked: Any, got: Any) -> Verdict:
    wanted, present = asked or "", got or ""
    if wanted == present or {wanted, present} <= _OWN:
        return "equal"
    return "stricter" if present in _OWN else "weaker"


def _cgroup_namespace(asked: Any, got: Any) -> Verdict:
    """Null is the daemon's default, which is the host's on cgroup v1."""
    wanted, present = asked or "host", got or "host"
    if wanted == present:
        return "equal"
    return "stricter" if present == "private" else "weaker"


def _ipc(asked: Any, got: Any) -> Verdict:
    """None < private < shareable < host. Null is the daemon's default, which may be shareable."""
    wanted, present = asked or "shareable", got or "shareable"
    if wanted == present:
        return "equal"
    if wanted in _IPC and present in _IPC and _IPC.index(present) < _IPC.index(wanted):
        return "stricter"
    return "weaker"


def _network(asked: Any, got: Any) -> Verdict:
    if asked == got or {asked, got} == {"bridge", "default"}:
        return "equal"
    return "stricter" if got == "none" else "weaker"


def _runtime(asked: Any, got: Any) -> Verdict:
    """Sandboxes such as runsc are stronger walls, but KFD does not work in them: not what was asked."""
    if asked:
        return "equal" if asked == got else "weaker"
    return "equal" if (got or "") in KNOWN_RUNTIMES else "weaker"


def _ulimits(asked: Any, got: Any) -> Verdict:
    """In any order; a lower one is stricter, one that nobody asked for is not ours, unless it is 0."""
    wanted = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in asked or ()}
    present = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in got or ()}
    if wanted == present:
        return "equal"
    extra = present.keys() - wanted.keys()
    if not wanted.keys() <= present.keys() or any(present[name] != (0, 0) for name in extra):
        return "weaker"
    lower = all(
        _ulimit(recorded) <= _ulimit(limit)
        for name, pair in wanted.items()
        for recorded, limit in zip(present[name], pair, strict=True)
    )
    return "stricter" if lower else "weaker"


def _ulimit(value: int) -> float:
    return float("inf") if value < 0 else float(value)


def _entries(asked: Any, got: Any) -> Verdict:
    """Fewer entries are stricter (ports, sysctls); a changed or added one is weaker."""
    # A port that is bound to nothing is still a port: the keys stay, whatever they hold.
    wanted = {key: normal(value) for key, value in (asked or {}).items()}
    present = {key: normal(value) for key, value in (got or {}).items()}
    if wanted == present:
        return "equal"
    fewer = all(key in wanted and wanted[key] == value for key, value in present.items())
    return "stricter" if fewer else "weaker"


def _restart(asked: Any, got: Any) -> Verdict:
    wanted, present = _restart_policy(asked), _restart_policy(got)
    if wanted == present:
        return "equal"
    return "stricter" if present[0] == "no" else "weaker"


def _restart_policy(value: Any) -> tuple[str, int]:
    policy = value or {}
    return policy.get("Name") or "no", policy.get("MaximumRetryCount") or 0


def _log(asked: Any, got: Any) -> Verdict:
    """An engine may add options to a driver; another driver would keep, or send away, what was printed."""
    wanted, present = asked or {}, got or {}
    if wanted.get("Type") == present.get("Type"):
        options = present.get("Config") or {}
        kept = (
            options.get(name) == value
            or (name == "max-size" and _rounded(value, options.get(name)))
            for name, value in (wanted.get("Config") or {}).items()
        )
        return "equal" if all(kept) else "weaker"
    return "stricter" if present.get("Type") == "none" else "weaker"


def _rounded(asked: str, got: Any) -> bool:
    """Whether *got* is a number of bytes as Podman writes it: in four digits, "104.9MB"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(B|kB|MB|GB|TB)", str(got))
    if found is None:
        return False
    scale = 1000 ** ("B", "kB", "MB", "GB", "TB").index(found[2])
    return bool(abs(float(found[1]) * scale - float(asked)) <= float(asked) * ROUNDING)


def _cpuset(asked: Any, got: Any) -> Verdict:
    """Fewer processors or memory nodes are stricter; "" is all of them."""
    wanted, present = _numbers(asked or ""), _numbers(got or "")
    if wanted == present:
        return "equal"
    return "stricter" if present and (not wanted or present < wanted) else "weaker"


def _numbers(text: str) -> set[int]:
    """Return the members of the kernel's list form, "0-3,8"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


COMPARATORS: dict[str, Comparator] = {
    "AutoRemove": _false_is_stricter,
    "CapAdd": _added_capabilities,
    "CapDrop": _dropped_capabilities,
    "CgroupnsMode": _cgroup_namespace,
    "CpusetCpus": _cpuset,
    "CpusetMems": _cpuset,
    "Devices": compare_devices,
    "GroupAdd": _subset,
    "IpcMode": _ipc,
    "LogConfig": _log,
    "MaskedPaths": _paths(MASKED),
    "Memory": _lower_limit,
    "MemorySwap": _lower_limit,
    "Mounts": compare_mounts,
    "NanoCpus": _lower_limit,
    "NetworkMode": _network,
    "OomKillDisable": _false_is_stricter,
    "OomScoreAdj": _higher,
    "PidMode": _namespace,
    "PidsLimit": _lower_limit,
    "PortBindings": _entries,
    "Privileged": _false_is_stricter,
    "ReadonlyPaths": _paths(READ_ONLY),
    "ReadonlyRootfs": _true_is_stricter,
    "RestartPolicy": _restart,
    "Runtime": _runtime,
    "SecurityOpt": _security_options,
    "ShmSize": _shared_memory,
    "Sysctls": _entries,
    "Tmpfs": compare_tmpfs,
    "UTSMode": _namespace,
    "Ulimits": _ulimits,
    "UsernsMode": _namespace,
}
