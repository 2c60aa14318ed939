"""How far a probe is, device by device, from what it says while it runs. Has no clock: whoever adds says when."""

from collections import Counter
from dataclasses import dataclass, field

from rocmrun.core.report.model import ProbeCheck, ProbeEvent

DeviceName = int | str | None
WITHOUT_DEVICE = "container"
SHOWN_DEVICES = 16


@dataclass(slots=True, kw_only=True)
class DeviceProgress:
    """One device, or what is about none.

    Attributes:
        counts: How many checks ended with each status.
        doing: The check under way, "" when none is.
        since_seconds: When that began.
    """

    counts: Counter[str] = field(default_factory=Counter)
    doing: str = ""
    since_seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class ProbeProgress:
    """All of them."""

    devices: dict[DeviceName, DeviceProgress] = field(default_factory=dict)

    def add(self, event: ProbeEvent, now_seconds: float) -> None:
        """Take the next event."""
        progress = self.devices.setdefault(event.device, DeviceProgress())
        if isinstance(event, ProbeCheck):
            progress.counts[event.status] += 1
            progress.doing = ""
            if event.group == "collectives":  # told when all ranks have ended
                for device in self.devices.values():
                    device.doing = ""
        else:
            progress.doing, progress.since_seconds = event.name, now_seconds

    @property
    def done(self) -> int:
        """How many checks have ended."""
        return sum(progress.counts.total() for progress in self.devices.values())

    def rows(self, now_seconds: float) -> tuple[tuple[str, str, str], ...]:
        """Return a row for each device: its name, how its checks ended, what is under way.

        Those with something wrong come first when there are more than a terminal should show.
        """
        names = sorted(self.devices, key=_order)
        if len(names) > SHOWN_DEVICES:
            names.sort(key=lambda name: not self._wrong(name))
        rows = [self._row(name, now_seconds) for name in names[:SHOWN_DEVICES]]
        if len(names) > SHOWN_DEVICES:
            rows.append((f"and {len(names) - SHOWN_DEVICES} more", "", ""))
        return tuple(rows)

    def under_way(self) -> str:
        """Return what is under way in one line."""
        busy = [name for name in sorted(self.devices, key=_order) if self.devices[name].doing]
        shown = [f"{label(name)} {self.devices[name].doing}" for name in busy[:SHOWN_DEVICES]]
        more = [f"{len(busy) - SHOWN_DEVICES} more"] if len(busy) > SHOWN_DEVICES else []
        return ", ".join([*shown, *more])

    def _wrong(self, name: DeviceName) -> bool:
        counts = self.devices[name].counts
        return bool(counts["fail"] or counts["degraded"])

    def _row(self, name: DeviceName, now_seconds: float) -> tuple[str, str, str]:
        progress = self.devices[name]
        ended = ", ".join(
            f"{progress.counts[status]} {status}"
            for status in ("fail", "degraded", "pass", "skipped")
            if progress.counts[status]
        )
        seconds = now_seconds - progress.since_seconds
        return label(name), ended, f"{progress.doing} {seconds:.0f} s" if progress.doing else ""


def label(name: DeviceName) -> str:
    """Return what a device is called: "device 0"; what is about none is about the container."""
    return WITHOUT_DEVICE if name is None else f"device {name}"


def _order(name: DeviceName) -> tuple[int, int, str]:
    if name is None:
        return 0, 0, ""
    return (1, name, "") if isinstance(name, int) else (2, 0, name)
