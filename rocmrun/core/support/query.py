"""Read the support matrix: which lines are about a GPU, a release, a system."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rocmrun.core.closest import did_you_mean
from rocmrun.core.gpu_table import GpuTable
from rocmrun.core.lock import PinnedImage
from rocmrun.core.support.gpus import GENERIC
from rocmrun.core.support.matrix import GpuRow, Matrix, OsRow, Release
from rocmrun.core.support.names import DISTROS, is_model, is_system, same_model, split_models
from rocmrun.errors import UsageError

OLD_AFTER_DAYS = 90
_GFX = re.compile(r"gfx[0-9a-f]{3,5}")
_PCI_ID = re.compile(r"0x[0-9a-f]{4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the reader wants to know of.

    Attributes:
        models: Models meant; () with a target alone.
        targets: gfx targets meant; () is every GPU.
    """

    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One release with those of its lines that were asked for."""

    release: Release
    gpus: tuple[GpuRow, ...]
    os: tuple[OsRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self.release) | {
            "gpus": [asdict(row) for row in self.gpus],
            "os": [asdict(row) for row in self.os],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was asked of the matrix.

    Attributes:
        age_days: Days since its newest fact.
        images: References whose locks record that they serve the GPU, with where that was read; None
            where no GPU was asked about.
    """

    matrix: Matrix
    age_days: int
    answers: tuple[Answer, ...]
    images: tuple[tuple[str, str], ...] | None

    @property
    def old(self) -> bool:
        """Whether AMD has probably published more since."""
        return self.age_days > OLD_AFTER_DAYS


def asked_gpu(word: str | None, matrix: Matrix, table: GpuTable) -> Asked:
    """Return what *word* names: "MI300X", "gfx942", or a PCI device id "0x74a1".

    Raises:
        UsageError: nothing in the matrix or the table has that name.
    """
    if word is None:
        return Asked()
    small = word.lower()
    if _GFX.fullmatch(small):
        return Asked(targets=(small,))
    by_id = bool(_PCI_ID.fullmatch(small))
    known = [model for model in table.gpus if not by_id or model.pci_device_id == small]
    pairs = [
        (name, model.gfx) for model in known for text in model.names for name in split_models(text)
    ]
    pairs += [
        (name, row.gfx)
        for release in matrix.releases
        for row in release.gpus
        if row.model and not by_id
        for name in split_models(row.model)
    ]
    found = [pair for pair in pairs if by_id or is_model(word, [pair[0]])]
    if not found:
        near = did_you_mean(small, {name.lower().rpartition(" ")[2] for name, _ in pairs})
        msg = f"no GPU is known as {word!r}{near}"
        raise UsageError(
            msg, hint="a model (MI300X), a target (gfx942) or a PCI device id (0x74a1)"
        )
    return Asked(
        models=tuple(sorted({name for name, _ in found})),
        targets=tuple(sorted({gfx for _, gfx in found})),
    )


def answers(
    matrix: Matrix, gpu: Asked, *, rocm: str | None = None, system: str | None = None
) -> tuple[Answer, ...]:
    """Return the releases that have lines for what is asked, the newest first.

    Raises:
        UsageError: the matrix has no such release or system.
    """
    releases: Iterable[Release] = reversed(matrix.releases)
    if rocm is not None:
        release = matrix.release(rocm)
        if release is None:
            known = ", ".join(release.version for release in matrix.releases)
            msg = f"the matrix has no ROCm {rocm!r}"
            raise UsageError(msg, hint=f"it has {known}")
        releases = (release,)
    if system is not None:
        system = _system(matrix, system)
    found = []
    for release in releases:
        gpus = tuple(row for row in release.gpus if _is_about(row, gpu))
        rows = tuple(row for row in release.os if system is None or is_system(row.name, system))
        if (gpus or not gpu.targets) and (rows or system is None):
            found.append(Answer(release=release, gpus=gpus, os=rows))
    return tuple(found)


def _is_about(row: GpuRow, gpu: Asked) -> bool:
    if not gpu.targets:
        return True
    # A list of targets has lines without a model: they are about every model of the target.
    by_model = (
        row.model is None or not gpu.models or any(same_model(row.model, m) for m in gpu.models)
    )
    return row.gfx in gpu.targets and by_model


def _system(matrix: Matrix, word: str) -> str:
    """Return "Ubuntu 24.04" for "ubuntu 24.04"."""
    rows = [row for release in matrix.releases for row in release.os]
    name, _, version = word.strip().rpartition(" ")
    distros = {row.distro.lower(): row.distro for row in rows}
    wanted = f"{distros.get(name.lower()) or DISTROS.get(name.lower())} {version}"
    if any(is_system(row.name, wanted) for row in rows):
        return wanted
    msg = f"no release of the matrix lists {word!r}"
    raise UsageError(
        msg,
        hint=f"a distribution and a version, 'ubuntu 24.04'; it has {', '.join(sorted(distros.values()))}",
    )


def carriers(pins: Iterable[PinnedImage], gpu: Asked) -> tuple[tuple[str, str], ...]:
    """Return the images whose recorded targets serve every target asked for: (reference, source)."""
    found = []
    for pin in pins:
        facts = pin.facts
        targets = {target.partition(":")[0] for target in facts.gfx} if facts else set()
        if gpu.targets and all(_serves(targets, gfx) for gfx in gpu.targets):
            found.append((pin.ref, facts.sources.get("gfx", "unknown") if facts else "unknown"))
    return tuple(sorted(set(found)))


def _serves(targets: set[str], gfx: str) -> bool:
    return gfx in targets or any(gfx in GENERIC.get(target, ()) for target in targets)
