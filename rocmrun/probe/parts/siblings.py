"""Devices of one model, compared with each other."""

from __future__ import annotations

from statistics import median
from typing import Any

from rocmrun.probe.parts.events import made_check

SIBLING_SHARE = 0.8
SIBLING_SOURCE = (
    "share of the median of the other devices of its model: good ones of one machine differ by "
    "5 % and more, a fifth leaves room for a busy host"
)


SAME_SIZE = 0.1


class Siblings:
    """The speeds of all devices; they are compared when every device has finished."""

    def __init__(self) -> None:
        self._models: dict[Any, tuple[str, int]] = {}  # name, and memory: partitions have less
        self._speeds: dict[str, dict[Any, float]] = {}  # by what was measured, then by device
        self._long_enough: set[tuple[str, Any]] = set()  # runs that are no noise of the host

    def note(self, check: dict[str, Any], device: Any) -> None:
        """Keep what a device's check says of its model and its speed."""
        evidence = check["evidence"]
        if check["name"] == "identity" and evidence.get("name"):
            self._models[device] = (evidence["name"], evidence.get("total_memory_bytes") or 0)
        if "figure" in evidence:
            self._speeds.setdefault(check["name"], {})[device] = evidence[evidence["figure"]]
            if evidence["long_enough"]:
                self._long_enough.add((check["name"], device))

    def judged(self) -> list[dict[str, Any]]:
        """Return one check for each device that has siblings: degraded where it is much slower."""
        found = []
        for device in sorted(self._models):
            shares = {}
            for name, speeds in sorted(self._speeds.items()):
                others = [speed for other, speed in speeds.items() if self._alike(device, other)]
                if (name, device) in self._long_enough and others and median(others) > 0:
                    shares[name] = round(speeds[device] / median(others), 3)
            if shares:
                found.append(self._check(device, shares))
        return found

    def _alike(self, device: Any, other: Any) -> bool:
        """Whether two devices are of one model and size; how much memory is set aside differs a little."""
        if other == device or other not in self._models:
            return False
        (name, memory), (other_name, other_memory) = self._models[device], self._models[other]
        return name == other_name and abs(memory - other_memory) <= SAME_SIZE * memory

    def _check(self, device: Any, shares: dict[str, float]) -> dict[str, Any]:
        slow = [f"{name} {share:.3g}x" for name, share in shares.items() if share < SIBLING_SHARE]
        check = made_check(
            "device",
            "siblings",
            "degraded" if slow else "pass",
            reason=f"slower than its siblings: {', '.join(slow)}" if slow else "",
            device=device,
            evidence={"share_of_others_median": shares},
        )
        check.update(threshold=SIBLING_SHARE, threshold_source=SIBLING_SOURCE)
        return check
