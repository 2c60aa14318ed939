"""What a probe measured in an image, for the lock: versions and GPU targets as torch itself says them, not as a label claims."""

import re

from rocmrun.core.claims import gpu_targets, is_version
from rocmrun.core.lock import LockedFacts
from rocmrun.core.report.model import ProbeReport

SOURCE = "probe"
# "2.9.1+rocm7.2.4.git7e1940d4": what torch was built with. HIP's own version counts otherwise.
_ROCM_BUILD = re.compile(r"\+rocm([0-9]+(?:\.[0-9]+)+)")


def measured_facts(report: ProbeReport) -> LockedFacts | None:
    """Return what *report* measured of its image; None when it measured none of the facts of a lock."""
    torch = report.version_of("torch") or ""
    built = _ROCM_BUILD.search(torch)
    listed = report.find("build", "arch_list")
    targets = listed.evidence.get("arch_list") if listed else None
    names = targets if isinstance(targets, list | tuple) else ()
    values: dict[str, str | tuple[str, ...] | None] = {
        "rocm": built[1] if built else None,
        "torch": torch if is_version(torch) else None,
        "python": report.python if is_version(report.python) else None,
        "gfx": gpu_targets(map(str, names)),
    }
    found = {name: value for name, value in values.items() if value}
    if not found:
        return None
    return LockedFacts.model_validate({**found, "sources": dict.fromkeys(found, SOURCE)})


def with_measured(claimed: LockedFacts | None, measured: LockedFacts | None) -> LockedFacts | None:
    """Return *claimed* with what was measured in place of each claim that is not more exact ("7.2.4" for "7.2")."""
    if claimed is None or measured is None:
        return claimed or measured
    better = {
        name: getattr(measured, name)
        for name in measured.sources
        if not _refines(getattr(claimed, name), getattr(measured, name))
    }
    sources = claimed.sources | dict.fromkeys(better, SOURCE)
    return claimed.model_copy(update={**better, "sources": sources})


def _refines(claim: object, measured: object) -> bool:
    return isinstance(claim, str) and isinstance(measured, str) and claim.startswith(f"{measured}.")
