"""HIP without torch: one process that counts the GPUs, then one for each of them that sees it alone."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from rocmrun.probe.parts.processes import device_environment
from rocmrun.probe.parts.waves import wave_size

HIP_PASSED, HIP_FAILED, HIP_ABSENT = "passed", "failed", "absent"
TORCH_IS_BROKEN = (
    "HIP works without torch on every GPU: what is broken is torch, or what torch brings along"
)
ONLY_UNDER_TORCH = (
    "HIP's own, smaller checks pass on every GPU: what is wrong shows only under torch"
)
HIP_IS_BROKEN = "HIP itself fails, without torch as well"
ONLY_HIP_FAILS = "torch works on every GPU: HIP fails only without it"


class HipLayer:
    """Runs HIP's stages with what the controller lends."""

    def __init__(
        self,
        planned: list[dict[str, Any]] | None,
        *,
        child: Callable[[str, dict[str, str]], Any],
        close: Callable[[Any], None],
        do: Callable[..., bool],
        skip: Callable[..., None],
        counts: dict[str, int],
    ) -> None:
        self._planned = planned
        self._child, self._close, self._do, self._skip = child, close, do, skip
        self._counts = counts  # how many devices each stage saw
        self.passed: dict[int, bool] = {}  # each GPU, and whether it passed on its own

    def run(self, *, sole: bool) -> str:
        """Return whether HIP passed, failed, or is absent; *sole* when nothing else computes."""
        child = self._child("hip", dict(os.environ))
        count = len(self._planned) if self._planned else None
        passed = self._do(child, "hip_runtime", gpus=count, sole=sole)
        self._close(child)
        found = self._counts.get("hip_runtime")
        if not found:
            for index in range(count or 0) if not passed else ():
                self._skip("hip", "identity", "HIP finds no device here", index)
                self.passed[index] = False
            return HIP_ABSENT if passed else HIP_FAILED
        self._devices(count or found, sole=sole)
        return HIP_PASSED if passed and all(self.passed.values()) else HIP_FAILED

    def _devices(self, count: int, *, sole: bool) -> None:
        """Exercise every GPU, as many at a time as fit into memory."""
        wave = wave_size(count)

        def exercise(index: int) -> None:
            child = self._child(f"hip {index}", device_environment("rocm", index, wave))
            fields = {"index": index, "planned": self._planned, "sole": sole}
            self.passed[index] = self._do(child, "hip", index, **fields)
            self._close(child)

        with ThreadPoolExecutor(wave) as pool:
            list(pool.map(exercise, range(count)))  # the list raises what a thread raised


def which_is_broken(*, works: bool, reached: bool, hip: str | None) -> str:
    """Return what torch and HIP together say; "" where all is well, or HIP could not be asked.

    Args:
        works: Whether torch passed on every GPU.
        reached: Whether it got as far as exercising one: a GPU that then computes wrong accuses
            itself as much as torch, since what HIP computes here is small.
        hip: How HIP fared; None when it was not asked.
    """
    if works:
        return ONLY_HIP_FAILS if hip == HIP_FAILED else ""
    passed = ONLY_UNDER_TORCH if reached else TORCH_IS_BROKEN
    return {HIP_PASSED: passed, HIP_FAILED: HIP_IS_BROKEN}.get(hip or "", "")
