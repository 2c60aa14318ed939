"""Whether two inspected containers have the same rights: the probe's proof holds for no other."""

from collections.abc import Iterable, Mapping
from typing import Any

# Every field of HostConfig that carries a right. Restart policy, ports and logging are excepted: the
# probe has none of them. Mounts and binds are compared apart: the probe only reads, and has no cache.
RIGHTS = (
    "CapAdd", "CapDrop", "Cgroup", "CgroupParent", "CgroupnsMode", "CpuPeriod", "CpuQuota",
    "CpusetCpus", "CpusetMems", "DeviceCgroupRules", "DeviceRequests", "Devices", "Dns",
    "DnsOptions", "DnsSearch", "ExtraHosts", "GroupAdd", "IpcMode", "Links", "MaskedPaths",
    "Memory", "MemorySwap", "NanoCpus", "NetworkMode", "OomKillDisable", "OomScoreAdj", "PidMode",
    "PidsLimit", "Privileged", "ReadonlyPaths", "ReadonlyRootfs", "Runtime", "SecurityOpt",
    "ShmSize", "StorageOpt", "Sysctls", "Tmpfs", "UTSMode", "Ulimits", "UsernsMode", "VolumesFrom",
)  # fmt: skip
# Fields of the record itself: the image by id, and the profile that the LSM applies.
RECORD = ("Image", "AppArmorProfile")


def unequal_rights(
    probe: Mapping[str, Any],
    workload: Mapping[str, Any],
    *,
    cache: str | None = None,
    secrets: Iterable[str] = (),
    same_image: bool = True,
) -> tuple[str, ...]:
    """Return a sentence for each right in which two inspected containers differ.

    *cache* is where the workload has its cache: there, and nowhere else, the probe has a tmpfs. It must
    not load kernels that an earlier workload of the profile left, which could fake the proof.
    *secrets* are targets of files that the workload alone gets.
    Without *same_image* the profile names an image of its own to probe in: it is no right.
    """
    one, other = probe["HostConfig"], workload["HostConfig"]
    if cache is not None:
        one = _without_tmpfs(one, cache)
        other = _without_mount(other, cache)
    for target in secrets:
        other = _without_mount(other, target)
    pairs = [
        *((name, _comparable(name, one), _comparable(name, other)) for name in RIGHTS),
        ("Mounts", _mounts(one), _mounts(other)),
        ("User", probe["Config"].get("User"), workload["Config"].get("User")),
        *(
            (name, probe.get(name), workload.get(name))
            for name in RECORD
            if same_image or name != "Image"
        ),
    ]
    return tuple(
        f"{name}: the probe had {had!r}, the workload has {has!r}"
        for name, had, has in pairs
        if had != has
    )


def _without_tmpfs(config: Mapping[str, Any], target: str) -> Mapping[str, Any]:
    """Leave out the file system in memory that stands where the other has the cache."""
    tmpfs = config.get("Tmpfs") or {}
    return {**config, "Tmpfs": {path: how for path, how in tmpfs.items() if path != target}}


def _without_mount(config: Mapping[str, Any], target: str) -> Mapping[str, Any]:
    mounts = config.get("Mounts") or ()
    return {**config, "Mounts": [mount for mount in mounts if mount["Target"] != target]}


def _comparable(name: str, config: Mapping[str, Any]) -> Any:
    value = config.get(name)
    if name == "Ulimits":
        # The daemon lists them in random order.
        return sorted((limit["Name"], limit["Soft"], limit["Hard"]) for limit in value or ())
    if name in {"MaskedPaths", "ReadonlyPaths"}:
        return value
    return value or None


def _mounts(config: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return what is mounted where and how; the probe may have read-only what the workload may write."""
    found = [
        (
            mount["Target"],
            mount["Type"],
            mount.get("Source", ""),
            (mount.get("BindOptions") or {}).get("Propagation", ""),
        )
        for mount in config.get("Mounts") or ()
    ]
    for bind in config.get("Binds") or ():
        source, target, mode = bind.split(":")
        found.append((target, "bind", source, *sorted(set(mode.split(",")) - {"ro", "rw"})))
    return sorted(found)
