"""What an image says of itself, and which of it a reader of a plan should know, each with why it matters."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rocmrun.core.claims import claims
from rocmrun.core.host import Gpu
from rocmrun.core.image import ImageFacts
from rocmrun.core.lock import LockedFacts
from rocmrun.core.reference import parse_reference

_NAMES = {"rocm": "ROCm", "torch": "torch", "python": "Python", "gfx": "targets", "user": "user"}
# They only make the library talk.
_HARMLESS = frozenset({"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_VERSION"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One thing that an image says it holds: a claim, with where it was read."""

    fact: str
    value: str
    source: str

    def __str__(self) -> str:
        """Return "ROCm 7.2.4 (tag)"."""
        return f"{_NAMES[self.fact]} {self.value} ({self.source})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReport:
    """An image's own settings and claims.

    Attributes:
        known: Whether the image is here, so that its settings could be read; claims may come from the lock.
        user: USER as written; "" is root.
        declared: What it says it holds.
    """

    known: bool
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    declared: tuple[Declared, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def image_claims(image: ImageFacts | None, recorded: LockedFacts | None, ref: str) -> LockedFacts:
    """Return what the lock recorded when the registry was asked; what it lacks, the local image says."""
    here = claims(
        env=image.environment if image else {},
        labels=dict(image.labels) if image else {},
        history=(),
        user=image.user if image else "",
        tag=parse_reference(ref).tag,
    )
    found = here.model_dump(exclude_defaults=True) if here else {}
    told = recorded.model_dump(exclude_defaults=True) if recorded else {}
    sources = {**found.get("sources", {}), **told.get("sources", {})}
    return LockedFacts.model_validate({**found, **told, "sources": sources})


def image_report(image: ImageFacts | None, claimed: LockedFacts | None) -> ImageReport:
    """Return what a plan shows of its image."""
    values = claimed.model_dump(exclude_defaults=True, exclude={"sources"}) if claimed else {}
    declared = tuple(
        Declared(
            fact=fact,
            value=", ".join(values[fact]) if fact == "gfx" else values[fact],
            source=claimed.sources.get(fact, "unknown") if claimed else "unknown",
        )
        for fact in _NAMES
        if fact in values
    )
    if image is None:
        return ImageReport(known=False, declared=declared)
    return ImageReport(
        known=True,
        user=image.user,
        entrypoint=image.entrypoint,
        command=image.command,
        volumes=image.volumes,
        declared=declared,
    )


def environment_lints(baked: Mapping[str, str], planned: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each variable of the image that changes what GPUs do; what the plan sets counts no more."""
    found = []
    for name, value in sorted(baked.items()):
        why = None if name in planned else _why(name, value)
        if why:
            found.append(
                f'the image bakes {name}="{value}": {why}; [container] env can set another value'
            )
    return tuple(found)


def _why(name: str, value: str) -> str | None:
    if name == "HSA_OVERRIDE_GFX_VERSION":
        return "every GPU is taken for that target, and kernels built for another GPU can crash or compute wrong"
    if name == "HSA_ENABLE_IPC_MODE_LEGACY" and value not in {"", "0"}:
        return "hipIpcGetMemHandle fails with upstream kernels (ROCm/rocm-systems#2209), which breaks jobs of several processes"
    if name.startswith("NCCL_") and name not in _HARMLESS:
        return "RCCL takes it over its own choice of interface and transport"
    return None


def target_lints(claimed: LockedFacts | None, gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """Return a sentence where the image says that it was built for other GPUs."""
    if claimed is None or not claimed.gfx:
        return ()
    built = {target.partition(":")[0] for target in claimed.gfx}
    missing = sorted({gpu.gfx for gpu in gpus if gpu.gfx and gpu.gfx not in built})
    if not missing:
        return ()
    source = claimed.sources.get("gfx", "unknown")
    return (
        f"the image says its kernels are built for {', '.join(claimed.gfx)} ({source}): those for {', '.join(missing)} may be missing",
    )
