"""A GPU's sensors in sysfs at one moment. Formats are core's."""

from collections.abc import Iterable

from rocmrun.core.host import Gpu
from rocmrun.core.running.gpu_metrics import Throttling, parse_gpu_metrics
from rocmrun.core.running.sensors import FILES, HWMON_FILES, GpuSensors, parse_sensors
from rocmrun.system.sysfs.gpus import KFD, PCI_DEVICES
from rocmrun.system.sysfs.tree import Tree

_METRICS = "gpu_metrics"


def read_sensors(tree: Tree, gpus: Iterable[Gpu]) -> tuple[GpuSensors, ...]:
    """Return what the files of each GPU's device say now; partitions share those of their whole GPU."""
    places = [_place(tree, gpu) for gpu in gpus]
    found = {place: _read(tree, place) for place in dict.fromkeys(places)}
    return tuple(found[place] for place in places)


def _read(tree: Tree, place: str | None) -> GpuSensors:
    if place is None:
        return GpuSensors(unread=dict.fromkeys((*FILES, _METRICS), "its device is not in sysfs"))
    files, unread = {}, {}
    for name in FILES:
        text = tree.text(f"{place}/{name}")
        if text is None:
            unread[name] = _reason(tree, f"{place}/{name}")
        else:
            files[name] = text
    metrics = tree.data(f"{place}/{_METRICS}")
    if metrics is None:
        unread[_METRICS] = _reason(tree, f"{place}/{_METRICS}")
    throttling = Throttling() if metrics is None else parse_gpu_metrics(metrics)
    return parse_sensors(files, _hwmon(tree, place), throttling, unread)


def lists_processes(tree: Tree) -> bool:
    """Whether KFD lists here which processes use GPUs."""
    return tree.has(f"{KFD}/proc")


def _place(tree: Tree, gpu: Gpu) -> str | None:
    places = [f"{PCI_DEVICES}/{gpu.pci_address}"] if gpu.pci_address else []
    if gpu.render_minor is not None:
        places.append(f"/sys/class/drm/renderD{gpu.render_minor}/device")
    return next((place for place in places if tree.has(place)), None)


def _hwmon(tree: Tree, place: str) -> dict[str, str]:
    """Return the files of the first hwmon directory that has any of them."""
    for name in tree.names(f"{place}/hwmon"):
        base = f"{place}/hwmon/{name}"
        found = {
            file: text
            for file in tree.names(base)
            if HWMON_FILES.fullmatch(file) and (text := tree.text(f"{base}/{file}")) is not None
        }
        if found:
            return found
    return {}


def _reason(tree: Tree, path: str) -> str:
    # A driver's EPERM is a GPU in reset, or one that sleeps (amdgpu_pm.c).
    if path in tree.refused:
        return "the driver refuses it now: the GPU is in reset, or suspended"
    return "it cannot be read now" if tree.has(path) else "this GPU's driver has no such file"
