"""How many children fit into memory at once."""

from __future__ import annotations

from pathlib import Path

from rocmrun.probe.parts.machine import cgroup_value, memory_limit, number

# A rough figure of the host memory that one process with a GPU runtime needs; it only sizes waves.
MEMORY_PER_CHILD = 2 << 30
MAX_WAVE = 16


def wave_size(count: int) -> int:
    """Return how many of *count* children may run at once here, at least one."""
    return fitting_wave(count, free_memory())


def fitting_wave(count: int, free: int) -> int:
    """Return how many children half of *free* bytes hold, at least one and at most as many as make sense."""
    return max(1, min(count, MAX_WAVE, free // 2 // MEMORY_PER_CHILD))


def free_memory() -> int:
    """Return the bytes that the machine and the container's limit leave, whichever is less."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    limit = memory_limit()
    if limit is not None:
        used = number(cgroup_value("memory", "memory.current", "memory.usage_in_bytes")) or 0
        available.append(limit - used)
    return min(available, default=MEMORY_PER_CHILD)


def likely_devices(accelerator: str, dev: Path = Path("/dev")) -> int:
    """Return how many devices there are by their nodes: a guess, for processes to start on early."""
    return len(list(dev.glob("nvidia[0-9]*" if accelerator == "cuda" else "dri/renderD*")))
