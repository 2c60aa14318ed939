"""The two sides of diff-privileges: a profile's catalogue items taken out of it, and any set of them put back in.

An item is a grant as plans spell it: "cap:SYS_NICE", "device:/dev/kfd:rw", "network:bridge", "shm:2147483648".
Everything else of the profile stays as it is, so that two sides differ in catalogue items alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from rocmrun.core import baseline
from rocmrun.core.grants import parse_grant
from rocmrun.core.host import DeviceNode, HostFacts
from rocmrun.core.host_paths import touches
from rocmrun.core.plan import PlannedGpu
from rocmrun.core.privileges import (
    AMD_RECIPE,
    NOT_MONOTONE,
    narrower_than,
    privilege_of,
    severity_of,
)
from rocmrun.core.profile.model import Device, Privilege, Profile
from rocmrun.core.profile.values import Size
from rocmrun.core.search_space import Space
from rocmrun.core.text import GIB, MIB
from rocmrun.core.tmpfs_offer import TMPFS

ROOT = "user:root"
UNCONFINED = "seccomp:unconfined"
NVIDIA = "/dev/nvidia"
RECIPE_SHM = 8 * GIB
RECIPE_REASON = "in AMD's usual docker line"
TRIED_REASON = "tried in the place of something wider (rocmrun diff-privileges)"
TAILORED_REASON = (
    "refuses system calls that the job was seen to do without (rocmrun diff-privileges --seccomp)"
)
_GROUP_OF_MOUNT = "group:path:"
_LEVELS = {"network": ("none", "bridge", "host"), "ipc": ("private", "shareable", "host")}
_RULES = {"seccomp:+mempolicy": "cap:SYS_NICE", "seccomp:+pidfd": "cap:SYS_PTRACE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a profile has of the catalogue.

    Attributes:
        items: Sorted.
        reasons: Item → the profile's own reason for it, or where else it is from.
        shm_baseline: The size of /dev/shm in bytes without an item for it.
        tmpfs: Item "tmpfs:PATH" → its size in bytes, for those that are no part of the job.
    """

    items: tuple[str, ...]
    reasons: Mapping[str, str]
    shm_baseline: int
    tmpfs: Mapping[str, int] = field(default_factory=dict)


def items_of(profile: Profile, host: HostFacts, *, shm_baseline: int, debug: bool = False) -> Asked:
    """Return the catalogue items that *profile* asks for on *host*, the nodes that its globs match one by one."""
    reasons: dict[str, str] = {}
    for entry in profile.privileges:
        reasons.setdefault(_spelled(entry.grant), entry.reason)
    for text in profile.debug.privileges if debug else ():
        reasons.setdefault(_spelled(text), "asked for with --debug")
    for device in profile.devices:
        if _is_gpu(profile, device):
            continue
        for node in matching(host, device.path):
            reasons.setdefault(f"device:{node.path}:{device.permissions}", device.reason)
    container = profile.container
    for group in container.groups:
        reasons.setdefault(f"group:{group}", "under [container] groups")
    if container.network != "none" and not container.ports:
        reasons.setdefault(f"network:{container.network}", "under [container] network")
    size = container.shm_size
    if size is not None and size.bytes > shm_baseline and "ipc:host" not in reasons:
        reasons[f"shm:{size.bytes}"] = "under [container] shm_size"
    for item in [item for item in reasons if item.startswith("device:") and "*" in item]:
        reasons |= _nodes_of(item, reasons.pop(item), host)
    return Asked(items=tuple(sorted(reasons)), reasons=reasons, shm_baseline=shm_baseline)


def with_tmpfs(found: Asked, profile: Profile, job: Profile) -> Asked:
    """Return what was *found* in *profile* with the tmpfs that it has and the *job* has not, nor anything else there."""
    taken = {mount.target for mount in job.mounts} | {secret.path for secret in job.secrets}
    taken |= {*job.container.tmpfs, baseline.TMP, baseline.HOME}
    sizes = {
        f"{TMPFS}{path}": size.bytes
        for path, size in profile.container.tmpfs.items()
        if not any(touches(path, target) for target in taken)
    }
    return replace(found, items=tuple(sorted({*found.items, *sizes})), tmpfs=sizes)


def matching(host: HostFacts, pattern: str) -> tuple[DeviceNode, ...]:
    """Return the nodes of *host* that a device's path or glob names."""
    return tuple(node for node in host.devices if fnmatchcase(node.path, pattern))


def _is_gpu(profile: Profile, device: Device) -> bool:
    """Whether an entry is the other vendor's GPUs, which `[gpus]` does not select: they are the job's."""
    return profile.accelerator == "cuda" and device.path.startswith(NVIDIA)


def _spelled(text: str) -> str:
    return str(parse_grant(text))


def _nodes_of(item: str, reason: str, host: HostFacts) -> dict[str, str]:
    parsed = parse_grant(item)
    return {f"device:{n.path}:{parsed.extra}": reason for n in matching(host, parsed.value)}


def recipe_items(host: HostFacts, gpus: tuple[PlannedGpu, ...]) -> tuple[str, ...]:
    """Return AMD's usual docker line as catalogue items: with GPUs, every node of /dev/dri, and all with mknod."""
    nodes = (*host.card_nodes, *host.render_nodes, *((host.kfd,) if host.kfd else ()))
    devices = {f"device:{node.path}:rwm" for node in nodes} if gpus else set()
    return tuple(sorted({*AMD_RECIPE, *devices}))


def with_items(profile: Profile, items: Iterable[str], asked: Asked) -> Profile:
    """Return *profile* with exactly these catalogue items, in place of those that it *asked* for."""
    held = realised(items)
    sizes = [int(item.removeprefix("shm:")) for item in held if item.startswith("shm:")]
    mounts = [item for item in held if item.startswith(_GROUP_OF_MOUNT)]
    network = next((i.partition(":")[2] for i in held if i.startswith("network:")), "none")
    container = profile.container
    in_memory = {
        item.removeprefix(TMPFS): Size.parse(_size_text(asked.tmpfs[item]))
        for item in held
        if item.startswith(TMPFS)
    }
    changes = {
        "tmpfs": container.tmpfs | in_memory,
        "groups": tuple(item.removeprefix("group:") for item in mounts),
        "network": "bridge" if network == "none" and container.ports else network,
        "shm_size": _shm(container.shm_size, sizes, asked.shm_baseline, held),
    }
    privileges = tuple(
        Privilege(grant=item, reason=asked.reasons.get(item) or TRIED_REASON)
        for item in held
        if not item.startswith(("shm:", "network:bridge", TMPFS, _GROUP_OF_MOUNT))
    )
    return profile.model_copy(
        update={
            "container": container.model_copy(update=changes),
            "privileges": privileges,
            "devices": tuple(d for d in profile.devices if _is_gpu(profile, d)),
        }
    )


def _shm(own: Size | None, sizes: list[int], baseline: int, held: tuple[str, ...]) -> Size | None:
    """Return the size of /dev/shm: one that the profile sets below the default stays, one above it is an item."""
    if "ipc:host" in held:
        return None
    if sizes:
        return Size.parse(_size_text(max(sizes)))
    return own if own is not None and own.bytes <= baseline else None


def _size_text(size: int) -> str:
    exact = ((unit, name) for unit, name in ((GIB, "GiB"), (MIB, "MiB")) if size % unit == 0)
    return next((f"{size // unit}{name}" for unit, name in exact), str(size))


def realised(items: Iterable[str]) -> tuple[str, ...]:
    """Return what a set of items comes to: the strongest of each chain, and for root a capability in place of a rule."""
    held = set(items)
    if ROOT in held:
        held = {_RULES.get(item, item) for item in held}
    if UNCONFINED in held:
        held -= {item for item in held if item.startswith("seccomp:") and item != UNCONFINED}
    for kind, levels in _LEVELS.items():
        present = [level for level in levels if f"{kind}:{level}" in held]
        held -= {f"{kind}:{level}" for level in present[:-1]}
    held -= {item.removesuffix("m") for item in held if item.startswith("device:") and item.endswith(":rwm")}  # fmt: skip
    if "ipc:host" in held:
        held = {item for item in held if not item.startswith("shm:")}
    return tuple(sorted(without_smaller(held)))


def without_smaller(items: Iterable[str]) -> set[str]:
    """Return *items* with the largest of several sizes of /dev/shm alone."""
    held = set(items)
    sizes = sorted(int(item.removeprefix("shm:")) for item in held if item.startswith("shm:"))
    return held - {f"shm:{size}" for size in sizes[:-1]}


def space_of(
    asked: Iterable[str], base: Iterable[str], *, shm_baseline: int, offered: Iterable[str] = ()
) -> Space:
    """Return what is searched: what one side has beyond the other, and alternatives that may do in its place.

    Args:
        asked: Items of the permissive side.
        base: Items of the minimal side, which are there whatever is left out.
        shm_baseline: Where sizes of /dev/shm start.
        offered: Alternatives that runs of the job have shown.
    """
    fixed = set(realised(base))
    varying = set(asked) - fixed
    root = ROOT in varying or ROOT in fixed
    narrower = {
        narrow
        for item in varying
        for narrow in _alternatives(item, shm_baseline, root=ROOT in fixed)
    }
    elements = (varying | narrower | set(offered)) - fixed
    ordered = sorted(elements, key=lambda item: (severity_of(item, root=root), item))
    return Space(
        elements=tuple(ordered),
        asked=frozenset(varying),
        groups={item: privilege_of(item, root=root).group for item in ordered},
        pairs=frozenset((harm, cure) for harm, cure, _ in NOT_MONOTONE if harm not in fixed),
    )


def _alternatives(item: str, shm_baseline: int, *, root: bool) -> tuple[str, ...]:
    if item == "ipc:host":
        return _sizes(RECIPE_SHM, shm_baseline)
    if item.startswith("shm:"):
        return _sizes(int(item.removeprefix("shm:")), shm_baseline)
    return narrower_than(item, root=root)


def _sizes(most: int, least: int) -> tuple[str, ...]:
    """Return *most* and its halves, as long as they are more than what there is anyway."""
    found = []
    size = most
    while size > least:
        found.append(f"shm:{size}")
        size //= 2
    return tuple(found)
