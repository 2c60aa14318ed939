"""Hosts with GPUs that are null devices: enough to see who may open them, and nothing to compute with."""

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocmrun.system import gpu_locks
from tests.hosts import FakeGpu, FakeNode, build_host

_used: list[int] = []


def render_minors(count: int) -> list[int]:
    """Return minors that no other test has: the guard's lock files and labels are the whole machine's."""
    while True:
        first = 1000 + secrets.randbelow(30_000) * 10
        minors = [first + position for position in range(count)]
        if not any(map(os.path.exists, map(_lock_file, minors))):
            _used.extend(minors)
            return minors


def forget_minors() -> None:
    """Remove the lock files of all minors that were given out: no real GPU has them."""
    for minor in _used:
        _lock_file(minor).unlink(missing_ok=True)


def _lock_file(minor: int) -> Path:
    return gpu_locks.DIRECTORY / f"renderD{minor}.lock"


def gpu_host(
    root: Path,
    minors: Sequence[int],
    *,
    kfd: FakeNode,
    render: FakeNode,
    holders: Mapping[int, Sequence[int]] | None = None,
) -> Path:
    """Build a host with one MI300X for each render minor and return its root."""
    gpus = [
        FakeGpu(
            address=f"0000:{5 + position:02x}:00.0",
            minor=minor,
            unique_id=0xA0 + position,
            node=render,
        )
        for position, minor in enumerate(minors)
    ]
    return build_host(root, gpus, kfd=kfd, holders=holders)
