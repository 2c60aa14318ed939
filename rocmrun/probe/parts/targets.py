"""Which code runs on which GPU: ROCm's targets, their generic forms and their families."""

from __future__ import annotations

from typing import Iterable

# An object built for a generic target runs on each of its members; gfx908 and gfx90a have none.
# Source: ROCm/rocm-systems 1b1610fc2 (2025-08-09), projects/rocr-runtime, isa.cpp.
GENERIC_TARGETS = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": tuple(f"gfx103{step}" for step in range(7)),
    "gfx11-generic": (
        *(f"gfx110{step}" for step in range(4)),
        *(f"gfx115{step}" for step in range(4)),
    ),
    "gfx12-generic": ("gfx1200", "gfx1201"),
}
# Builds for a whole family are named so, with -all, -dcgpu, -dgpu or -igpu behind it.
# Source: ROCm/TheRock cmake/therock_amdgpu_targets.cmake, its families on Linux.
FAMILIES = {
    "gfx90X": ("gfx906", "gfx908", "gfx90a"),
    "gfx94X": ("gfx942",),
    "gfx101X": ("gfx1010", "gfx1011", "gfx1012"),
    "gfx103X": GENERIC_TARGETS["gfx10-3-generic"],
    "gfx110X": tuple(f"gfx110{step}" for step in range(4)),
    "gfx115X": tuple(f"gfx115{step}" for step in range(4)),
    "gfx120X": GENERIC_TARGETS["gfx12-generic"],
}


def code_for(architecture: str, built: Iterable[str]) -> str:
    """Return how *built* covers a GPU such as "gfx90a:sramecc+:xnack-", or as the plan has it "gfx90a".

    "exact", "generic" or "family"; "features" where only xnack or sramecc differ; "none"; and
    "unknown" where nothing is listed: torch names no target while it sees no device.
    """
    gfx, _, features = architecture.partition(":")
    answers = set()
    listed = list(built)
    for entry in listed:
        name, _, wanted = entry.partition(":")
        how = "exact" if name == gfx else ""
        if gfx in GENERIC_TARGETS.get(name, ()):
            how = "generic"
        elif gfx in FAMILIES.get(name.partition("-")[0], ()):
            how = "family"
        if how:
            answers.add(how if fits(features, wanted) else "features")
    for how in ("exact", "generic", "family", "features"):
        if how in answers:
            return how
    return "none" if listed else "unknown"


def fits(features: str, wanted: str) -> bool:
    """Whether code that wants "sramecc+:xnack-" runs where *features* are set; what either leaves out fits."""
    own = {feature[:-1]: feature for feature in features.split(":") if feature}
    return all(own.get(name[:-1], name) == name for name in wanted.split(":") if name)
