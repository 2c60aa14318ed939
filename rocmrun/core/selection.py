"""Which GPUs a profile or a --gpu option means. Pure: the support verdict never filters a selection."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from rocmrun.core.host import Gpu
from rocmrun.core.kfd import MI300_TARGET
from rocmrun.errors import DevicesMissing, GpuSelection, UsageError

FORMS = (
    "all                    every GPU; client iGPUs only where there is nothing else",
    "none                   no GPU",
    "discrete               every GPU that is no client iGPU",
    "index:0                by position in KFD order, as HIP counts",
    "pci:0000:63:00.0       by PCI address, with or without the domain",
    "uuid:GPU-<16 hex>      by unique id; also bare or with 0x",
    "numa:1                 by NUMA node",
    "arch:gfx942            by target",
    "render:128             by DRM render minor",
    "partition:0.3          GPU 0 (of the physical ones), compute partition 3",
)
_LISTED = 16
_NO_GPU = "this host shows no AMD GPU"

_NUMBER = re.compile(r"[0-9]{1,10}")
_PCI = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2})\.(?P<function>[0-7])"
)
_UUID = re.compile(r"(?:gpu-|0x)?([0-9a-f]{1,16})")
_ARCH = re.compile(r"gfx[0-9]{1,2}[0-9a-f]{2}")
_PARTITION = re.compile(r"([0-9]{1,5})\.([0-9]{1,3})")


class LeftOutGpu(NamedTuple):
    """A GPU that `all` or `discrete` did not take, and why."""

    gpu: Gpu
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The GPUs to pass, in KFD order, and those that stay outside for a reason worth telling."""

    selected: tuple[Gpu, ...]
    left_out: tuple[LeftOutGpu, ...] = ()


def select_gpus(selectors: Sequence[str], gpus: Sequence[Gpu]) -> Selection:
    """Return the GPUs that *selectors* name together.

    `all` and `discrete` leave out what cannot be passed and say so; a GPU named in another way is
    returned even when its render node is missing, for the planner to say what to do. On a host
    without GPUs `all` selects none.

    Raises:
        UsageError: a selector has none of the forms, or `none` stands beside another.
        GpuSelection: a selector names nothing here, more than one thing, or a hidden GPU.
        DevicesMissing: there are GPUs, but `all` finds none that can be passed.
    """
    if "none" in selectors and len(set(selectors)) > 1:
        msg = "'none' cannot be combined with other GPU selectors"
        raise UsageError(msg)
    chosen: set[int] = set()
    left_out: dict[int, LeftOutGpu] = {}
    for selector in selectors:
        if selector in ("all", "discrete"):
            taken = _sweep(selector, gpus)
            chosen |= {gpu.node for gpu in taken.selected}
            left_out |= {entry.gpu.node: entry for entry in taken.left_out}
        elif selector != "none":
            chosen |= {gpu.node for gpu in _named(selector, gpus)}
    return Selection(
        selected=tuple(gpu for gpu in gpus if gpu.node in chosen),
        left_out=tuple(left_out[node] for node in sorted(left_out.keys() - chosen)),
    )


def is_selector(text: str) -> bool:
    """Return whether *text* has one of FORMS, whatever GPUs a host has."""
    kind, _, value = text.partition(":")
    if kind in _MATCHERS:
        return _MATCHERS[kind](value.lower(), ()) is not None
    return text in {"all", "none", "discrete"}


def is_client_igpu(gpu: Gpu) -> bool:
    """Return whether *gpu* is the graphics part of a client processor; an MI300A is an APU but no such thing."""
    return gpu.apu is True and gpu.gfx != MI300_TARGET


def unusable_reason(gpu: Gpu) -> str | None:
    """Return why *gpu* cannot be passed to a container at all; None when it can."""
    if not gpu.permitted:
        return "hidden from this process by its device cgroup"
    if gpu.render_minor is None:
        return "the kernel names no render node for it"
    if gpu.render_node is None:
        return f"/dev/dri/renderD{gpu.render_minor} is not there"
    return None


def _sweep(selector: str, gpus: Sequence[Gpu]) -> Selection:
    """Return what `all` or `discrete` takes, and what it leaves out."""
    usable = [gpu for gpu in gpus if unusable_reason(gpu) is None]
    only_discrete = selector == "discrete" or not all(map(is_client_igpu, usable))
    left_out = []
    for gpu in gpus:
        reason = unusable_reason(gpu)
        if reason is None and only_discrete and is_client_igpu(gpu):
            reason = f"client iGPU; select {_name(gpu)} to use it"
        if reason:
            left_out.append(LeftOutGpu(gpu, reason))
    outside = {entry.gpu.node for entry in left_out}
    selected = tuple(gpu for gpu in gpus if gpu.node not in outside)
    if not selected and (gpus or selector == "discrete"):
        _no_gpu_left(selector, left_out)
    return Selection(selected=selected, left_out=tuple(left_out))


def _no_gpu_left(selector: str, left_out: Sequence[LeftOutGpu]) -> NoReturn:
    details = tuple(f"{gpu.label}: {reason}" for gpu, reason in left_out[:_LISTED])
    msg = f"{selector!r} finds no GPU on this host that can be passed"
    if selector == "all":
        raise DevicesMissing(msg, hint="rocmrun host", details=details)
    raise GpuSelection(msg, hint="rocmrun host", details=details or (_NO_GPU,))


def _named(selector: str, gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return the GPUs that one selector of the form "kind:value" names."""
    kind, _, value = selector.partition(":")
    matcher = _MATCHERS.get(kind)
    matches = matcher(value.lower(), gpus) if matcher else None
    if matches is None:
        msg = f"{selector!r} is no GPU selector"
        raise UsageError(msg, details=FORMS)
    if not matches:
        _refuse(f"no GPU here matches {selector!r}", gpus)
    if kind in _SINGULAR and not _is_one_gpu(matches):
        _refuse(f"{selector!r} matches more than one GPU", matches)
    for gpu in matches:
        if not gpu.permitted:
            _refuse(f"{selector!r} is {unusable_reason(gpu)}", gpus)
    return matches


def _refuse(message: str, gpus: Sequence[Gpu]) -> NoReturn:
    lines = [_line(gpu) for gpu in gpus[:_LISTED]] or [_NO_GPU]
    if len(gpus) > _LISTED:
        lines.append(f"and {len(gpus) - _LISTED} more")
    raise GpuSelection(message, hint="rocmrun host", details=tuple(lines))


def _line(gpu: Gpu) -> str:
    facts = [f"index:{gpu.index}"]
    if not gpu.permitted:
        return f"{facts[0]} (hidden by the device cgroup)"
    facts += [f"arch:{gpu.gfx}"] if gpu.gfx else []
    facts += [f"pci:{gpu.pci_address}"] if gpu.pci_address else []
    facts += [f"partition {gpu.partition}"] if gpu.partition is not None else []
    facts += [f"render:{gpu.render_minor}"] if gpu.render_minor is not None else []
    facts += [f"uuid:GPU-{gpu.unique_id}"] if gpu.unique_id else []
    facts += [f"numa:{gpu.numa_node}"] if gpu.numa_node is not None else []
    return " ".join(facts)


def _name(gpu: Gpu) -> str:
    return f"pci:{gpu.pci_address}" if gpu.pci_address else f"index:{gpu.index}"


def _is_one_gpu(gpus: Sequence[Gpu]) -> bool:
    """Return whether *gpus* are one GPU, or all partitions of one."""
    addresses = {gpu.pci_address for gpu in gpus}
    partitions = {gpu.partition for gpu in gpus}
    return len(gpus) == 1 or (len(addresses) == 1 and len(partitions) == len(gpus))


def _by_number(attribute: str) -> Callable[[str, Sequence[Gpu]], list[Gpu] | None]:
    def match(value: str, gpus: Sequence[Gpu]) -> list[Gpu] | None:
        if not _NUMBER.fullmatch(value):
            return None
        return [gpu for gpu in gpus if getattr(gpu, attribute) == int(value)]

    return match


def _by_pci(value: str, gpus: Sequence[Gpu]) -> list[Gpu] | None:
    match = _PCI.fullmatch(value)
    if not match:
        return None
    place = f"{match['bus']:0>2}:{match['device']:0>2}.{match['function']}"
    if match["domain"] is None:
        return [gpu for gpu in gpus if (gpu.pci_address or "").partition(":")[2] == place]
    return [gpu for gpu in gpus if gpu.pci_address == f"{int(match['domain'], 16):04x}:{place}"]


def _by_uuid(value: str, gpus: Sequence[Gpu]) -> list[Gpu] | None:
    match = _UUID.fullmatch(value)
    return [gpu for gpu in gpus if gpu.unique_id == match[1].zfill(16)] if match else None


def _by_arch(value: str, gpus: Sequence[Gpu]) -> list[Gpu] | None:
    return [gpu for gpu in gpus if gpu.gfx == value] if _ARCH.fullmatch(value) else None


def _by_partition(value: str, gpus: Sequence[Gpu]) -> list[Gpu] | None:
    match = _PARTITION.fullmatch(value)
    if not match:
        return None
    # Physical GPUs in the order in which KFD first shows them: partitions of one share an address.
    physical = list(
        dict.fromkeys(gpu.pci_address or str(gpu.node) for gpu in gpus if gpu.permitted)
    )
    wanted = physical[int(match[1])] if int(match[1]) < len(physical) else None
    return [gpu for gpu in gpus if gpu.pci_address == wanted and gpu.partition == int(match[2])]


_SINGULAR = ("index", "pci", "uuid", "render", "partition")
_MATCHERS: dict[str, Callable[[str, Sequence[Gpu]], list[Gpu] | None]] = {
    "index": _by_number("index"),
    "numa": _by_number("numa_node"),
    "render": _by_number("render_minor"),
    "pci": _by_pci,
    "uuid": _by_uuid,
    "arch": _by_arch,
    "partition": _by_partition,
}
