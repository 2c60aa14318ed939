"""Which line of the support matrix is meant: models by PCI id, systems by os-release, kernels by series."""

import re
from collections.abc import Iterable

from rocmrun.core.gpu_table import GpuTable
from rocmrun.core.host import Gpu, HostFacts
from rocmrun.core.support.matrix import OsRow

# os-release ID → AMD's word.
DISTROS = {
    "ubuntu": "Ubuntu",
    "rhel": "RHEL",
    "sles": "SLES",
    "ol": "Oracle Linux",
    "debian": "Debian",
    "rocky": "Rocky Linux",
    "azurelinux": "Azure Linux",
    "centos": "CentOS",
}
_FAMILY_WORDS = re.compile(r"\b(amd|instinct|radeon|graphics)\b|[^a-z0-9+ ]")
_KERNEL = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?(?:-(\d+))?")
_SEGMENT = {"instinct": "Instinct", "radeon": "Radeon", "radeon-pro": "Radeon", "apu": "Ryzen"}


def model_names(gpu: Gpu, table: GpuTable) -> tuple[str, ...]:
    """Return every model that *gpu* can be by PCI device and revision; () where the table has none."""
    found = [name for model in table.models(gpu.device_id, gpu.revision) for name in model.names]
    names = (part for name in found for part in split_models(name))
    return tuple(sorted({name.removesuffix(" VF").removesuffix(" MxGPU") for name in names}))


def split_models(text: str) -> tuple[str, ...]:
    """Return the models of "AMD Instinct MI250X / MI250"."""
    return tuple(part.strip() for part in text.split(" / "))


def same_model(row: str, name: str) -> bool:
    """Whether *name* is one of the models that a line of the matrix names."""
    return _plain(name) in {_plain(part) for part in split_models(row)}


def _plain(name: str) -> str:
    return " ".join(_FAMILY_WORDS.sub(" ", name.lower()).split())


def is_model(short: str, names: Iterable[str]) -> bool:
    """Whether "MI300X", as restrictions spell it, is among *names*."""
    return any(_plain(short) == _plain(name) for name in names)


def system_name(host: HostFacts) -> str | None:
    """Return "Ubuntu 24.04" as AMD would write it; None for a system that AMD lists nowhere."""
    distro = DISTROS.get(host.os_id or "")
    return f"{distro} {host.os_version}" if distro and host.os_version else None


def is_system(row: str, host: str) -> bool:
    """Whether a line's "Ubuntu 24.04.3" or "Oracle Linux 9" is the system *host*.

    os-release tells Ubuntu's series and no point release, and a point release where AMD names a
    major version: the shorter of the two decides. SLES writes "15 SP7" and "15.7".
    """
    distro, _, version = _normal(row).rpartition(" ")
    other, _, own = _normal(host).rpartition(" ")
    if distro != other:
        return False
    parts, own_parts = version.split("."), own.split(".")
    shared = min(len(parts), len(own_parts))
    if distro == "Ubuntu":
        shared = min(2, shared)
    return parts[:shared] == own_parts[:shared]


def _normal(name: str) -> str:
    return re.sub(r" SP(\d+)$", r".\1", name)


def kernels_of(row: OsRow, kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the kernels of a line's cell, for GPUs of *kinds*: "6.8", "5.14.0-570"; () where it names none."""
    cell = row.kernel or ""
    segments = [part.partition(":") for part in cell.split(";") if ":" in part]
    if segments:
        wanted = {_SEGMENT.get(kind, "") for kind in kinds}
        cell = " ".join(text for word, _, text in segments if word.strip() in wanted)
        cell = cell.partition(" in ")[0]
    return tuple(match[0] for match in _KERNEL.finditer(cell))


def is_kernel(row: str, release: str) -> bool:
    """Whether the running kernel *release* is of the series, and where one is named the build, of *row*."""
    theirs, ours = _KERNEL.match(row), _KERNEL.match(release)
    if not theirs or not ours:
        return False
    return theirs.group(1, 2) == ours.group(1, 2) and theirs[3] in {None, ours[3]}
