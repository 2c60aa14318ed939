"""What a run is told: level, accelerator, limits, and what the plan expects."""

from __future__ import annotations

from typing import Any

from rocmrun.probe.parts.own_settings import complete_own_checks

PROTOCOL_VERSION = 1
PROBE_VERSION = "0.1.0"
LEVELS = ("quick", "standard", "full")
ACCELERATORS = ("rocm", "cuda", "cpu")
RUNTIMES = ("torch", "hip")
# Seconds that one stage of one child may take. A cold import of torch from a slow disk takes minutes.
TIMEOUTS = {
    "environment": 30,
    "isolation": 30,
    "tools": 300,
    "import": 240,
    "build": 60,
    "device": 120,
    "collectives": 90,
    "peer_copies": 120,
    "operators": 240,
    "hip_runtime": 60,
    "hip": 120,
    "model": 300,
}
DEVICE_SECONDS = {"quick": 120, "standard": 300, "full": 600}
COLLECTIVES_SECONDS = {"quick": 90, "standard": 180, "full": 300}
# Square matrices: a CPU needs some seconds for all three formats, most of them for fp16 and bf16.
SIZES = {
    "cpu": {"quick": 256, "standard": 512, "full": 512},
    "gpu": {"quick": 2048, "standard": 4096, "full": 8192},
}


class SettingsError(Exception):
    """The settings cannot be used."""


def complete_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return *given* with every default filled in.

    Raises:
        SettingsError: a value is not one that this probe knows.
    """
    settings = {
        "level": "quick",
        "accelerator": "rocm",
        "runtime": "torch",
        "timeout_seconds": 600,
        "size": None,
        "message_bytes": None,  # no collective sends more
        "timeouts": {},
        "expect": {},
        "checks": [],
        "operators": [],
        **{key: value for key, value in given.items() if value is not None},
    }
    for key, known in (
        ("level", LEVELS),
        ("accelerator", ACCELERATORS),
        ("runtime", RUNTIMES),
        ("v", (PROTOCOL_VERSION,)),
    ):
        if settings.get(key, known[0]) not in known:
            msg = f"{key} is {settings[key]!r}, this probe knows {', '.join(map(str, known))}"
            raise SettingsError(msg)
    if settings["runtime"] == "hip" and settings["accelerator"] != "rocm":
        msg = f"runtime hip is for accelerator rocm, not {settings['accelerator']}"
        raise SettingsError(msg)
    settings["checks"], problem = complete_own_checks(settings["checks"], settings["level"])
    if problem:
        raise SettingsError(problem)
    kind = "cpu" if settings["accelerator"] == "cpu" else "gpu"
    settings["size"] = settings["size"] or SIZES[kind][settings["level"]]
    settings["timeouts"] = {
        **TIMEOUTS,
        "device": DEVICE_SECONDS[settings["level"]],
        "collectives": COLLECTIVES_SECONDS[settings["level"]],
        **settings["timeouts"],
    }
    return settings


def stages_of(settings: dict[str, Any]) -> list[str]:
    """Return the stages that a level runs: what it does not name, it does not prove."""
    on_rocm = settings["accelerator"] == "rocm" and settings["level"] != "quick"
    tools = ["tools"] if on_rocm else []
    if settings["runtime"] == "hip":
        return ["environment", "isolation", *tools, "hip", *(["own"] if settings["checks"] else [])]
    stages = ["environment", "isolation", *tools, "build", "device"]
    # At quick HIP is asked only when torch has failed: a process a GPU takes seconds.
    if on_rocm:
        stages.insert(stages.index("build"), "hip")
    if settings["accelerator"] != "cpu" or settings["level"] != "quick":
        stages.append("collectives")
    if settings["level"] != "quick":
        stages.append("operators")
    if settings["level"] == "full":
        stages.append("model")
    if settings["checks"]:
        stages.append("own")
    return stages
