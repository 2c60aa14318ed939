"""Podman's record of a container in Docker's words. Judges nothing.

Podman answers GET /containers/{id}/json with what Docker's form has words for, and loses on the way which
capabilities are left, which cgroup namespace there is, and which binds are mounts. Its own record
(GET /libpod/containers/{id}/json) has them. What neither says stays as it was answered, and
`rocmrun.core.inspection` judges it. Read off Podman 4.3.1 and github.com/containers/podman, libpod/container_inspect*.go.
"""

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

NANOSECONDS = 10**9
_INIT = "/run/podman-init"


def in_dockers_words(record: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return *record*, Podman's answer to Docker's API, completed from its *own* record of the same container."""
    config, more = dict(record.get("HostConfig") or {}), own.get("HostConfig") or {}
    mounts = [_mount(mount) for mount in record.get("Mounts") or () if not _relabelled(mount)]
    binds = [_bind(mount) for mount in record.get("Mounts") or () if _relabelled(mount)]
    config |= {
        **_capabilities(own),
        "Binds": binds,
        "CgroupnsMode": more.get("CgroupMode") or config.get("CgroupnsMode"),
        "IpcMode": _ipc(config.get("IpcMode")),
        "LogConfig": _log(more.get("LogConfig") or {}),
        "Mounts": mounts,
        "Runtime": posixpath.basename(own.get("OCIRuntime") or config.get("Runtime") or ""),
        "Tmpfs": {target: _tmpfs(text) for target, text in (config.get("Tmpfs") or {}).items()},
        "Ulimits": [_ulimit(limit) for limit in config.get("Ulimits") or ()],
        **_cpus(config),
    }
    return {**record, **_process(record), "HostConfig": config}


def _process(record: Mapping[str, Any]) -> dict[str, Any]:
    """Podman counts its init program to the command."""
    path, arguments = record.get("Path"), list(record.get("Args") or ())
    if path != _INIT or arguments[:1] != ["--"]:
        return {}
    return {"Path": "".join(arguments[1:2]), "Args": arguments[2:]}


def _capabilities(own: Mapping[str, Any]) -> dict[str, Any]:
    """Docker's form has what differs from a default set that it does not name; Podman's own has what is left."""
    if "BoundingCaps" not in own or "EffectiveCaps" not in own:
        return {}
    left = {*_names(own["BoundingCaps"]), *_names(own["EffectiveCaps"])}
    return {"CapDrop": ["ALL"], "CapAdd": sorted(left)}


def _names(capabilities: Iterable[str] | None) -> list[str]:
    return [name.upper().removeprefix("CAP_") for name in capabilities or ()]


def _ipc(recorded: Any) -> Any:
    """One of its own is always "shareable" here, also where Podman lets no other join it: what was asked for counts."""
    # The switch in platformInspectContainerHostConfig never reaches its case for "private".
    return "private" if recorded == "shareable" else recorded


def _log(own: Mapping[str, Any]) -> dict[str, Any]:
    """Docker's form has no size. "json-file" is another name of k8s-file, which keeps one file."""
    kind = "json-file" if own.get("Type") == "k8s-file" else own.get("Type")
    size = own.get("Size")
    bounded = bool(size) and size != "0B"
    return {"Type": kind, "Config": {"max-file": "1", "max-size": size} if bounded else {}}


def _tmpfs(text: str) -> str:
    """Podman adds how the mount spreads, not at all, and says "tmpcopyup" or nothing where it was told not to."""
    words = [word for word in text.split(",") if word != "rprivate"]
    return ",".join(words if "tmpcopyup" in words else [*words, "notmpcopyup"])


def _ulimit(limit: Mapping[str, Any]) -> dict[str, Any]:
    return {**limit, "Name": str(limit["Name"]).removeprefix("RLIMIT_").lower()}


def _cpus(config: Mapping[str, Any]) -> dict[str, Any]:
    """Podman records a share of processors twice: as it was asked for, and as the quota that it becomes."""
    period, quota = config.get("CpuPeriod") or 0, config.get("CpuQuota") or 0
    if period and quota * NANOSECONDS == (config.get("NanoCpus") or 0) * period:
        return {"CpuPeriod": 0, "CpuQuota": 0}
    return {}


def _relabelled(mount: Mapping[str, Any]) -> bool:
    """Only a bind can ask for a label of SELinux, and only in the old form."""
    return mount.get("Type") == "bind" and mount.get("Mode") in {"z", "Z"}


def _bind(mount: Mapping[str, Any]) -> str:
    access = "rw" if mount.get("RW") else "ro"
    spread = mount.get("Propagation") or "rprivate"
    return f"{mount.get('Source')}:{mount.get('Destination')}:{access},{mount['Mode']},{spread}"


def _mount(mount: Mapping[str, Any]) -> dict[str, Any]:
    kind = mount.get("Type")
    body = {
        "Type": kind,
        "Source": mount.get("Name") if kind == "volume" else mount.get("Source"),
        "Target": mount.get("Destination"),
        "ReadOnly": not mount.get("RW"),
    }
    if kind == "bind":
        body["BindOptions"] = {"Propagation": mount.get("Propagation") or ""}
    return body
