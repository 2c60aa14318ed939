"""What a container may take or disturb: limits, namespaces of little weight, and how it is kept going."""

from rocmrun.core.exposure.container_rights import ContainerRights
from rocmrun.core.exposure.row import Finding, RowKind


def _pids(c: ContainerRights) -> Finding:
    if (c.get("PidsLimit") or 0) <= 0:
        return Finding(1, "may start as many processes as the host has room for")
    return Finding(0, "the number of processes is limited")


def _memory(c: ContainerRights) -> Finding:
    if (c.get("Memory") or 0) <= 0:
        return Finding(1, "may take all of the host's memory")
    return Finding(0, "memory is limited")


def _cgroup(c: ContainerRights) -> Finding:
    mode = c.get("CgroupnsMode") or ("private" if c.surroundings.private_cgroups else "host")
    if mode == "host":
        return Finding(1, "sees the host's cgroups")
    return Finding(0, "sees its own cgroup alone")


def _sysctls(c: ContainerRights) -> Finding:
    if found := c.get("Sysctls"):
        return Finding(1, f"changes kernel settings of its namespaces: {', '.join(sorted(found))}")
    return Finding(0, "changes no kernel setting")


def _uts(c: ContainerRights) -> Finding:
    if c.get("UTSMode") == "host":
        return Finding(1, "shares the host's name")
    return Finding(0, "has a host name of its own")


def _oom(c: ContainerRights) -> Finding:
    if c.get("OomKillDisable") or (c.get("OomScoreAdj") or 0) < 0:
        return Finding(1, "the kernel ends the host's processes before it when memory runs out")
    return Finding(0, "is ended before others when memory runs out")


def _memlock(c: ContainerRights) -> Finding:
    unlimited = any(
        limit.get("Name") == "memlock" and limit.get("Hard") == -1
        for limit in c.get("Ulimits") or ()
    )
    if unlimited or "IPC_LOCK" in c.effective:
        return Finding(1, "may lock any amount of memory, so that it cannot be swapped")
    return Finding(0, "may lock little memory")


def _log(c: ContainerRights) -> Finding:
    log = c.get("LogConfig") or {}
    kind, options = log.get("Type") or "json-file", log.get("Config") or {}
    if kind == "json-file" and not options.get("max-size"):
        return Finding(1, "its log may fill the disk")
    return Finding(0, "its log is bounded")


def _restart(c: ContainerRights) -> Finding:
    if ((c.get("RestartPolicy") or {}).get("Name") or "no") in {"always", "unless-stopped"}:
        return Finding(1, "is started again at boot, whatever it did")
    return Finding(0, "is not started at boot")


LIMIT_ROWS = (
    RowKind("pids", 250, _pids),
    RowKind("memory", 250, _memory),
    RowKind("cgroup", 200, _cgroup),
    RowKind("sysctls", 200, _sysctls),
    RowKind("uts", 100, _uts),
    RowKind("oom", 100, _oom),
    RowKind("memlock", 50, _memlock),
    RowKind("log", 50, _log),
    RowKind("restart", 20, _restart),
)
