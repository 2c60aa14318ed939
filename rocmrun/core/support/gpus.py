"""Whether AMD lists the GPUs of a job, and whether the image has code for them."""

import re
from collections.abc import Iterator

from rocmrun.core.host import Gpu
from rocmrun.core.lock import LockedFacts
from rocmrun.core.support.finding import Finding, Job, Verdict
from rocmrun.core.support.matrix import GpuRow
from rocmrun.core.support.names import is_system, same_model, system_name

# ROCr's registry of generic targets (ROCm/rocm-systems projects/rocr-runtime, isa.cpp, 2025-08).
GENERIC = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": tuple(f"gfx103{step}" for step in range(7)),
    "gfx11-generic": tuple(f"gfx11{step}" for step in ("00", "01", "02", "03", "50", "51", "52", "53")),
    "gfx12-generic": ("gfx1200", "gfx1201"),
}  # fmt: skip


def judge_gpus(job: Job) -> Iterator[Finding]:
    """Judge each model once, however many of it there are."""
    seen = set()
    for gpu in job.gpus:
        kind = (gpu.gfx, job.names[gpu.index])
        if kind not in seen:
            seen.add(kind)
            yield _of_gpu(job, gpu)


def _of_gpu(job: Job, gpu: Gpu) -> Finding:
    names, release = job.names[gpu.index], job.release
    called = f"{' or '.join(names) or 'a GPU of unknown model'} ({gpu.gfx or 'gfx unknown'})"
    if release is None or not release.gpus or gpu.gfx is None:
        why = "its target is not known" if gpu.gfx is None else _no_list(job)
        return job.found("gpu", "unknown", f"{called}: {why}")
    where = f"ROCm {release.version}, GPUs"
    rows = [row for row in release.gpus if row.gfx == gpu.gfx]
    if not rows:
        return job.found(
            "gpu", "unsupported", f"{called}: AMD does not list {gpu.gfx} for ROCm {release.version}",
            f"{where}: no {gpu.gfx}",
        )  # fmt: skip
    if not release.by_model or all(row.kind == "apu" for row in rows):
        return _by_target(job, called, rows, where)
    if not names:
        return job.found(
            "gpu", "unknown", f"{called}: AMD lists models, and this PCI id names none"
        )
    verdicts = [_of_model(job, name, rows, where) for name in names]
    if len({verdict for verdict, _, _ in verdicts}) > 1:
        return job.found(
            "gpu", "unknown", f"{called}: AMD lists one of them and not the other", where
        )
    verdict, why, row = verdicts[0]
    return job.found("gpu", verdict, f"{called}: {why}", row)


def _no_list(job: Job) -> str:
    return (
        f"no list of GPUs was found for ROCm {job.rocm}"
        if job.rocm
        else "no release to look it up in"
    )


def _by_target(job: Job, called: str, rows: list[GpuRow], where: str) -> Finding:
    """Judge by target, where the list names no models, or processors that PCI does not tell apart."""
    answers = {row.support for row in rows}
    row = f"{where}: {rows[0].gfx}"
    if len(answers) > 1 or None in answers:
        return job.found(
            "gpu",
            "unknown",
            f"{called}: the list does not tell the models of this target apart",
            row,
        )
    support = rows[0].support or "unsupported"
    system = system_name(job.host)
    allowed = [line for line in rows if _is_allowed(line, system)]
    if support == "supported" and system and not allowed:
        return job.found("gpu", "unsupported", f"{called}: listed, and not on {system}", row)
    return job.found("gpu", support, f"{called}: AMD lists the target as {support}", row)


def _of_model(job: Job, name: str, rows: list[GpuRow], where: str) -> tuple[Verdict, str, str]:
    line = next((row for row in rows if row.model and same_model(row.model, name)), None)
    if line is None:
        return "unsupported", "the list names models, and not this one", f"{where}: not listed"
    row = f"{where}: {line.model}" + (f" ({line.note})" if line.note else "")
    if line.support is None:
        return "unknown", "its status was not found", row
    system = system_name(job.host)
    if line.support == "supported" and system and _conflicting(job, name, system):
        return "unknown", f"AMD's own footnotes disagree about {system}", row
    if line.support == "supported" and not _is_allowed(line, system):
        return "unsupported", f"listed, and not on {system}", row
    return line.support, f"AMD lists it as {line.support}", row


def _conflicting(job: Job, name: str, system: str) -> bool:
    return any(
        job.release is not None
        and conflict.release == job.release.version
        and same_model(conflict.model, name)
        and is_system(conflict.system, system)
        for conflict in job.matrix.conflicts
    )


def judge_code(job: Job, facts: LockedFacts, override: str | None) -> Iterator[Finding]:
    """Judge whether the image has code that the GPUs can run."""
    targets = {target.partition(":")[0] for target in facts.gfx}
    source = facts.sources.get("gfx", "")
    for gfx in sorted({gpu.gfx for gpu in job.gpus if gpu.gfx}):
        if not targets:
            yield Finding(
                subject="code",
                verdict="unknown",
                sentence=f"{gfx}: which targets the image was built for is not known",
            )
        elif override and overridden(override) not in {None, gfx}:
            yield Finding(
                subject="code",
                verdict="outside",
                row=source,
                sentence=f"{gfx} is taken for {overridden(override)}, whose code runs on it: HSA_OVERRIDE_GFX_VERSION={override}",
            )
        elif gfx in targets or any(gfx in GENERIC.get(target, ()) for target in targets):
            yield Finding(
                subject="code",
                verdict="supported",
                sentence=f"{gfx} is among the image's targets",
                row=source,
            )
        else:
            built = f"the image was built for {', '.join(sorted(targets))}, not for {gfx}"
            if override:
                yield Finding(
                    subject="code",
                    verdict="outside",
                    row=source,
                    sentence=f"{built}; HSA_OVERRIDE_GFX_VERSION={override} takes it for another",
                )
            else:
                # A build argument is a wish; what a probe measured is what there is.
                verdict: Verdict = "incompatible" if source == "probe" else "outside"
                yield Finding(subject="code", verdict=verdict, sentence=built, row=source)


def overridden(version: str) -> str | None:
    """Return the target that HSA_OVERRIDE_GFX_VERSION names: "9.0.10" is gfx90a; None for what is no version."""
    parts = re.fullmatch(r"([0-9]{1,2})\.([0-9]{1,3})\.([0-9]{1,3})", version)
    return f"gfx{int(parts[1])}{int(parts[2]):x}{int(parts[3]):x}" if parts else None


def _is_allowed(row: GpuRow, system: str | None) -> bool:
    """Whether a GPU's line counts on *system*; an unknown system is judged by its own rows."""
    if system is None:
        return True
    if row.os_only and not any(is_system(name, system) for name in row.os_only):
        return False
    return not any(is_system(name, system) for name in row.os_except)
