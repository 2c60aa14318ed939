"""Compare what the engine recorded with what was sent: equal, or stricter, or refused.

The daemon may have defaults of its own, an SDK may drop a field, a plugin may add one. This table
says for every privilege-bearing field what "stricter" means. Fields that are not in it must come
back as they were sent, and fields that were not sent must come back empty: an engine that records
a right we have no word for is refused, not trusted.

Normalisation (measured on Docker 20.10): null = [] = {} = 0 = "" = false, except MaskedPaths and
ReadonlyPaths, where [] unmasks.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["equal", "stricter", "weaker"]

# The lists that Docker 20.10 fills in when none is sent; newer engines mask more, never less.
MASKED = frozenset({
    "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/scsi",
    "/proc/timer_list", "/proc/sched_debug", "/sys/firmware",
})  # fmt: skip
READ_ONLY = frozenset({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"})
SHOWN_CHARACTERS = 120
KNOWN_RUNTIMES = frozenset({"", "runc", "crun", "oci", "io.containerd.runc.v2"})

# Bookkeeping of the engine: no right depends on it.
NEUTRAL = frozenset({
    "ConsoleSize", "ContainerIDFile", "Isolation", "LogConfig", "VolumeDriver", "Annotations",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field that came back otherwise than it was sent."""

    field: str
    sent: Any
    recorded: Any
    verdict: Verdict

    def __str__(self) -> str:
        """Name the field, what was asked for and what the engine recorded."""
        return (
            f"{self.field}: asked for {_shown(self.sent)}, engine recorded {_shown(self.recorded)}"
        )


def differences(request: Mapping[str, Any], inspected: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return every difference between a create *request* and an inspected container, sorted by field.

    Args:
        request: The body that was sent (Config fields with HostConfig inside).
        inspected: GET /containers/{id}/json, before start.
    """
    config = inspected.get("Config") or {}
    found = [
        *_host_config_differences(request["HostConfig"], inspected.get("HostConfig") or {}),
        *_config_differences(request, config),
        *_mount_differences(request["HostConfig"], inspected.get("Mounts") or []),
    ]
    return tuple(sorted(found, key=lambda difference: difference.field))


def weaker(request: Mapping[str, Any], inspected: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the differences that make the container weaker than asked for."""
    return tuple(found for found in differences(request, inspected) if found.verdict == "weaker")


def _host_config_differences(
    sent: Mapping[str, Any], recorded: Mapping[str, Any]
) -> list[Difference]:
    found = []
    for field in sorted(set(sent) | set(recorded)):
        if field in NEUTRAL:
            continue
        verdict = _verdict(field, sent, recorded)
        if verdict != "equal":
            found.append(
                Difference(
                    field=f"HostConfig.{field}",
                    sent=sent.get(field),
                    recorded=recorded.get(field),
                    verdict=verdict,
                )
            )
    return found


def _verdict(field: str, sent: Mapping[str, Any], recorded: Mapping[str, Any]) -> Verdict:
    asked, got = sent.get(field), recorded.get(field)
    compare = COMPARATORS.get(field)
    if compare is not None:
        return compare(asked, got)
    return "equal" if _normal(asked) == _normal(got) else "weaker"


def _normal(value: Any) -> Any:
    """Fold the empty values together, inside lists and mappings too."""
    if isinstance(value, Mapping):
        return {
            key: folded for key, item in value.items() if (folded := _normal(item)) is not None
        } or None
    if isinstance(value, (list, tuple)):
        return [_normal(item) for item in value] or None
    return value or None


def _set_of(value: Any) -> frozenset[str]:
    return frozenset(str(item) for item in value or ())


def _subset(asked: Any, got: Any) -> Verdict:
    """Fewer is stricter: added capabilities, groups, ..."""
    if _set_of(asked) == _set_of(got):
        return "equal"
    return "stricter" if _set_of(got) < _set_of(asked) else "weaker"


def _superset(asked: Any, got: Any) -> Verdict:
    """More is stricter: dropped capabilities."""
    if _set_of(asked) == _set_of(got):
        return "equal"
    return "stricter" if _set_of(got) > _set_of(asked) else "weaker"


def _capabilities(asked: Any, got: Any) -> Verdict:
    """Podman and newer engines spell CAP_; the sets are what counts."""
    return _subset(
        [_capability(name) for name in asked or ()], [_capability(name) for name in got or ()]
    )


def _capability(name: str) -> str:
    return name.upper().removeprefix("CAP_")


def _true_is_stricter(asked: Any, got: Any) -> Verdict:
    if bool(asked) == bool(got):
        return "equal"
    return "stricter" if got else "weaker"


def _false_is_stricter(asked: Any, got: Any) -> Verdict:
    if bool(asked) == bool(got):
        return "equal"
    return "weaker" if got else "stricter"


def _lower_limit(asked: Any, got: Any) -> Verdict:
    """A limit: 0, null and -1 are unlimited; lower is stricter."""
    limit, recorded = _limit(asked), _limit(got)
    if limit == recorded:
        return "equal"
    return "stricter" if recorded < limit else "weaker"


def _limit(value: Any) -> float:
    return float(value) if value and value > 0 else float("inf")


def _masked(asked: Any, got: Any) -> Verdict:
    return _path_list(asked, got, MASKED)


def _read_only_paths(asked: Any, got: Any) -> Verdict:
    return _path_list(asked, got, READ_ONLY)


def _path_list(asked: Any, got: Any, default: frozenset[str]) -> Verdict:
    """Null is the engine's default list; [] unmasks everything. More paths are stricter."""
    wanted = default if asked is None else _set_of(asked)
    # An engine that leaves the list out of inspect applies its default.
    present = default if got is None else _set_of(got)
    if present >= wanted:
        return "equal" if asked is None or present == wanted else "stricter"
    return "weaker"


def _security_options(asked: Any, got: Any) -> Verdict:
    """Compare as sets; an option more is weaker, unless it is no-new-privileges."""
    wanted = {_security_option(option) for option in asked or ()}
    present = {_security_option(option) for option in got or ()}
    if wanted == present:
        return "equal"
    return (
        "stricter" if wanted < present and present - wanted == {"no-new-privileges"} else "weaker"
    )


def _security_option(option: str) -> str:
    name, separator, value = option.partition("=")
    if re.fullmatch(r"no-new-privileges([:=]true)?", option):
        return "no-new-privileges"
    return f"{name}{separator}{value}"


def _namespace(private: str) -> Callable[[Any, Any], Verdict]:
    def compare(asked: Any, got: Any) -> Verdict:
        wanted, present = asked or private, got or private
        if wanted == present:
            return "equal"
        return "stricter" if present in {private, "none"} else "weaker"

    return compare


def _ipc(asked: Any, got: Any) -> Verdict:
    """None < private < shareable < host. Null is the daemon's default, which may be shareable."""
    order = ["none", "private", "shareable", "host"]
    wanted, present = asked or "shareable", got or "shareable"
    if wanted == present:
        return "equal"
    if wanted in order and present in order and order.index(present) < order.index(wanted):
        return "stricter"
    return "weaker"


def _network(asked: Any, got: Any) -> Verdict:
    if asked == got or (asked, got) in {("bridge", "default"), ("default", "bridge")}:
        return "equal"
    return "stricter" if got == "none" else "weaker"


def _runtime(asked: Any, got: Any) -> Verdict:
    """Sandboxes such as runsc are stronger walls, but KFD does not work in them: not what was asked."""
    if asked:
        return "equal" if asked == got else "weaker"
    return "equal" if (got or "") in KNOWN_RUNTIMES else "weaker"


def _ulimits(asked: Any, got: Any) -> Verdict:
    """The daemon lists them in any order; a lower one is stricter, an extra one (but core=0) is not ours."""
    wanted = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in asked or ()}
    present = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in got or ()}
    if wanted == present:
        return "equal"
    if not set(wanted) <= set(present) or any(
        present[name] != (0, 0) for name in present.keys() - wanted.keys()
    ):
        return "weaker"
    lower = all(
        _ulimit(got_value) <= _ulimit(wanted_value)
        for name, pair in wanted.items()
        for got_value, wanted_value in zip(present[name], pair, strict=True)
    )
    return "stricter" if lower else "weaker"


def _ulimit(value: int) -> float:
    return float("inf") if value < 0 else float(value)


def _devices(asked: Any, got: Any) -> Verdict:
    wanted, present = _device_rights(asked), _device_rights(got)
    if wanted == present:
        return "equal"
    fewer = all(key in wanted and rights <= wanted[key] for key, rights in present.items())
    return "stricter" if fewer else "weaker"


def _device_rights(devices: Any) -> dict[tuple[str, str], frozenset[str]]:
    return {
        (device["PathOnHost"], device["PathInContainer"]): frozenset(device["CgroupPermissions"])
        for device in devices or ()
    }


def _mapping_subset(asked: Any, got: Any) -> Verdict:
    """Fewer entries are stricter (ports, sysctls); a changed or added one is weaker."""
    wanted, present = _normal(asked) or {}, _normal(got) or {}
    if wanted == present:
        return "equal"
    return (
        "stricter" if all(wanted.get(key) == value for key, value in present.items()) else "weaker"
    )


def _tmpfs(asked: Any, got: Any) -> Verdict:
    """Options must be the same, or have noexec in place of exec, or a smaller size."""
    wanted = {target: _tmpfs_options(text) for target, text in (asked or {}).items()}
    present = {target: _tmpfs_options(text) for target, text in (got or {}).items()}
    return "equal" if wanted == present else "weaker"


def _tmpfs_options(text: str) -> frozenset[str]:
    return frozenset(text.split(","))


def _restart(asked: Any, got: Any) -> Verdict:
    wanted = ((asked or {}).get("Name") or "no", (asked or {}).get("MaximumRetryCount") or 0)
    present = ((got or {}).get("Name") or "no", (got or {}).get("MaximumRetryCount") or 0)
    if wanted == present:
        return "equal"
    return "stricter" if present[0] == "no" else "weaker"


def _mounts(asked: Any, got: Any) -> Verdict:
    wanted = {mount["Target"]: _normal(mount) for mount in asked or ()}
    present = {mount["Target"]: _normal(mount) for mount in got or ()}
    if wanted == present:
        return "equal"
    if set(wanted) != set(present):
        return "weaker"
    stricter = all(
        {**wanted[target], "ReadOnly": True} == {**present[target], "ReadOnly": True}
        and (present[target].get("ReadOnly") or not wanted[target].get("ReadOnly"))
        for target in wanted
    )
    return "stricter" if stricter else "weaker"


def _ignore(asked: Any, got: Any) -> Verdict:  # noqa: ARG001
    return "equal"


COMPARATORS: dict[str, Callable[[Any, Any], Verdict]] = {
    "AutoRemove": _false_is_stricter,
    "CapAdd": _capabilities,
    "CapDrop": _superset,
    "CgroupnsMode": _namespace("private"),
    "CpusetCpus": lambda asked, got: (
        "stricter" if not asked and got else "equal" if (asked or "") == (got or "") else "weaker"
    ),
    "CpusetMems": lambda asked, got: (
        "stricter" if not asked and got else "equal" if (asked or "") == (got or "") else "weaker"
    ),
    "CpuShares": _ignore,
    "Devices": _devices,
    "GroupAdd": _subset,
    "Init": _ignore,
    "IpcMode": _ipc,
    "MaskedPaths": _masked,
    "Memory": _lower_limit,
    "MemorySwap": _lower_limit,
    "MemorySwappiness": _ignore,
    "MemoryReservation": _ignore,
    "Mounts": _mounts,
    "NanoCpus": _lower_limit,
    "NetworkMode": _network,
    "OomKillDisable": _false_is_stricter,
    "PidMode": _namespace(""),
    "PidsLimit": _lower_limit,
    "PortBindings": _mapping_subset,
    "Privileged": _false_is_stricter,
    "ReadonlyPaths": _read_only_paths,
    "ReadonlyRootfs": _true_is_stricter,
    "RestartPolicy": _restart,
    "Runtime": _runtime,
    "SecurityOpt": _security_options,
    "ShmSize": _lower_limit,
    "Sysctls": _mapping_subset,
    "Tmpfs": _tmpfs,
    "UTSMode": _namespace(""),
    "UsernsMode": _namespace(""),
    "Ulimits": _ulimits,
}


def _config_differences(request: Mapping[str, Any], config: Mapping[str, Any]) -> list[Difference]:
    """Compare the fields of Config that carry rights; the image's environment is merged in by the daemon."""
    found = []
    if request["User"] != config.get("User"):
        found.append(_config_difference("User", request["User"], config.get("User")))
    asked_env = dict(entry.partition("=")[::2] for entry in request["Env"])
    got_env = dict(entry.partition("=")[::2] for entry in config.get("Env") or ())
    changed = sorted(name for name, value in asked_env.items() if got_env.get(name) != value)
    if changed:
        # Names only: a value may be a secret.
        found.append(_config_difference("Env", changed, "other values"))
    found += [
        _config_difference(field, request[field], config.get(field))
        for field in ("Cmd", "Entrypoint")
        if field in request and _words(request[field]) != _words(config.get(field))
    ]
    return found


def _config_difference(field: str, sent: Any, recorded: Any) -> Difference:
    return Difference(field=f"Config.{field}", sent=sent, recorded=recorded, verdict="weaker")


def _words(value: Any) -> Sequence[str] | None:
    """An entrypoint reset as [""] comes back as null."""
    return None if value in (None, [], [""]) else list(value)


def _mount_differences(
    host_config: Mapping[str, Any], mounts: Sequence[Mapping[str, Any]]
) -> list[Difference]:
    """Find mounts that nobody asked for: an image VOLUME that became an anonymous volume, a plugin's bind."""
    asked = {mount["Target"] for mount in host_config.get("Mounts") or ()}
    asked |= {bind.split(":")[1] for bind in host_config.get("Binds") or ()}
    asked |= set(host_config.get("Tmpfs") or ())
    return [
        Difference(
            field=f"Mounts[{mount['Destination']}]",
            sent=None,
            recorded=mount.get("Source") or mount.get("Name"),
            verdict="weaker",
        )
        for mount in mounts
        if mount.get("Destination") not in asked
    ]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
