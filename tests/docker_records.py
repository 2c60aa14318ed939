"""How Docker 20.10 records a container that was created and not yet started."""

import copy
from collections.abc import Mapping
from typing import Any

from rocmrun.core.image import ImageFacts
from tests.builders import IMAGE

# What Docker 20.10 records for a field that was not sent (read off /containers/ID/json, API 1.41).
RECORDED_HOST_CONFIG: dict[str, Any] = {
    "Binds": None, "ContainerIDFile": "", "LogConfig": {"Type": "json-file", "Config": {}},
    "NetworkMode": "default", "PortBindings": None,
    "RestartPolicy": {"Name": "", "MaximumRetryCount": 0}, "AutoRemove": False, "VolumeDriver": "",
    "VolumesFrom": None, "CapAdd": None, "CapDrop": None, "CgroupnsMode": "host", "Dns": None,
    "DnsOptions": None, "DnsSearch": None, "ExtraHosts": None, "GroupAdd": None,
    "IpcMode": "private", "Cgroup": "", "Links": None, "OomScoreAdj": 0, "PidMode": "",
    "Privileged": False, "PublishAllPorts": False, "ReadonlyRootfs": False, "SecurityOpt": None,
    "UTSMode": "", "UsernsMode": "", "ShmSize": 67108864, "Runtime": "runc",
    "ConsoleSize": [0, 0], "Isolation": "", "CpuShares": 0, "Memory": 0, "NanoCpus": 0,
    "CgroupParent": "", "BlkioWeight": 0, "BlkioWeightDevice": None, "BlkioDeviceReadBps": None,
    "BlkioDeviceWriteBps": None, "BlkioDeviceReadIOps": None, "BlkioDeviceWriteIOps": None,
    "CpuPeriod": 0, "CpuQuota": 0, "CpuRealtimePeriod": 0, "CpuRealtimeRuntime": 0,
    "CpusetCpus": "", "CpusetMems": "", "Devices": None, "DeviceCgroupRules": None,
    "DeviceRequests": None, "KernelMemory": 0, "KernelMemoryTCP": 0, "MemoryReservation": 0,
    "MemorySwap": 0, "MemorySwappiness": None, "OomKillDisable": False, "PidsLimit": None,
    "Ulimits": None, "CpuCount": 0, "CpuPercent": 0, "IOMaximumIOps": 0, "IOMaximumBandwidth": 0,
    "MaskedPaths": ["/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys",
                    "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
                    "/proc/sched_debug", "/proc/scsi", "/sys/firmware"],
    "ReadonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
}  # fmt: skip


def recorded(
    request: Mapping[str, Any], image: ImageFacts = IMAGE, *, name: str = "rocmrun-x"
) -> dict[str, Any]:
    """Return the record that Docker 20.10 makes of a create *request*, before the start."""
    sent = copy.deepcopy(dict(request))
    config = RECORDED_HOST_CONFIG | {
        key: value for key, value in sent.pop("HostConfig").items() if value is not None
    }
    for field in ("Sysctls", "Tmpfs", "Mounts"):
        if not config.get(field):
            config.pop(field, None)
    for mount in config.get("Mounts", ()):
        if not mount["ReadOnly"]:
            del mount["ReadOnly"]
    config["PidsLimit"] = config["PidsLimit"] or None
    config["ShmSize"] = config["ShmSize"] or RECORDED_HOST_CONFIG["ShmSize"]
    # The daemon keeps ulimits in a map.
    config["Ulimits"] = list(reversed(config["Ulimits"] or [])) or None
    entrypoint = sent.get("Entrypoint", list(image.entrypoint) or None)
    entrypoint = None if entrypoint == [""] else entrypoint
    command = sent.get("Cmd")
    if not command and not sent.get("Entrypoint"):
        command = list(image.command)
    words = [*(entrypoint or []), *(command or [])]
    names = {entry.partition("=")[0] for entry in sent.get("Env", ())}
    baked = [f"{key}={value}" for key, value in image.env if key not in names]
    return {
        "Id": "",
        "Name": f"/{name}",
        "Path": words[0] if words else "",
        "Args": words[1:],
        "Image": image.image_id,
        "AppArmorProfile": "",
        "HostConfig": copy.deepcopy(config),
        "Mounts": _mount_points(config, image),
        "Config": {
            **sent,
            "Env": [*sent.get("Env", ()), *baked],
            "Entrypoint": entrypoint,
            "Cmd": command or None,
            "WorkingDir": sent.get("WorkingDir") or image.workdir,
            "Labels": {**dict(image.labels), **sent.get("Labels", {})},
            "Volumes": {path: {} for path in image.volumes} or None,
        },
    }


def _mount_points(config: Mapping[str, Any], image: ImageFacts) -> list[dict[str, Any]]:
    points = [_mount_point(mount) for mount in config.get("Mounts") or ()]
    for bind in config["Binds"] or ():
        source, target, mode = bind.split(":")
        access = "rw" in mode.split(",")
        points.append({"Type": "bind", "Source": source, "Destination": target, "Mode": mode,
                       "RW": access, "Propagation": "rprivate"})  # fmt: skip
    covered = {point["Destination"] for point in points} | set(config.get("Tmpfs") or ())
    return points + [
        {"Type": "volume", "Name": "a1b2", "Source": "/var/lib/docker/volumes/a1b2/_data",
         "Destination": volume, "RW": True, "Propagation": ""}
        for volume in image.volumes
        if volume not in covered
    ]  # fmt: skip


def _mount_point(mount: Mapping[str, Any]) -> dict[str, Any]:
    volume = mount["Type"] == "volume"
    source = mount["Source"]
    return {
        "Type": mount["Type"],
        "Source": f"/var/lib/docker/volumes/{source}/_data" if volume else source,
        "Destination": mount["Target"],
        "RW": not mount.get("ReadOnly"),
        "Propagation": (mount.get("BindOptions") or {}).get("Propagation", ""),
        **({"Name": source} if volume else {}),
    }
