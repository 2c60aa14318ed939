"""Whether two inspected containers have the same rights: the probe's proof holds for no other."""

from collections.abc import Mapping
from typing import Any

# Every field of HostConfig that carries a right. Restart policy, ports and logging are excepted: the
# probe has none of them.
RIGHTS = (
    "Binds", "CapAdd", "CapDrop", "CgroupnsMode", "CgroupParent", "CpusetCpus", "CpusetMems",
    "DeviceCgroupRules", "DeviceRequests", "Devices", "ExtraHosts", "GroupAdd", "IpcMode", "Links",
    "MaskedPaths", "Memory", "MemorySwap", "NanoCpus", "NetworkMode", "OomKillDisable",
    "OomScoreAdj", "PidMode", "PidsLimit", "Privileged", "ReadonlyPaths", "ReadonlyRootfs",
    "Runtime", "SecurityOpt", "ShmSize", "Sysctls", "Tmpfs", "UTSMode", "Ulimits", "UsernsMode",
    "VolumesFrom",
)  # fmt: skip


def unequal_rights(probe: Mapping[str, Any], workload: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for each right in which two inspected containers differ."""
    one, other = probe["HostConfig"], workload["HostConfig"]
    found = [
        name
        for name in RIGHTS
        if _comparable(name, one.get(name)) != _comparable(name, other.get(name))
    ]
    if _targets(one) != _targets(other):
        found.append("Mounts")
    if probe["Config"].get("User") != workload["Config"].get("User"):
        found.append("User")
    if probe.get("Image") != workload.get("Image"):
        found.append("Image")
    return tuple(
        f"{name}: the probe had {one.get(name)!r}, the workload has {other.get(name)!r}"
        for name in found
    )


def _comparable(name: str, value: Any) -> Any:
    if name == "Ulimits":
        # The daemon lists them in random order.
        return sorted((limit["Name"], limit["Soft"], limit["Hard"]) for limit in value or ())
    if name == "Binds":
        return sorted(bind.rsplit(":", 1)[0] for bind in value or ())
    if name in {"MaskedPaths", "ReadonlyPaths"}:
        return value
    return value or None


def _targets(config: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what is mounted where; the probe may have read-only what the workload may write."""
    return sorted(
        (mount["Type"], mount.get("Source", ""), mount["Target"])
        for mount in config.get("Mounts") or ()
    )
