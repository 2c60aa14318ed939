"""Copies from each GPU to each other one, by a process that sees them all."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any, Mapping, NamedTuple

from rocmrun.probe.parts.arithmetic import rate
from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.events import say

PEER_BYTES = 64 << 20
PEER_BYTES_OF_MANY = 4 << 20  # 64 partitions are 4032 pairs
MANY_GPUS = 16
WARNING_SECONDS = 5  # time to stop the probe, once it has said what may come


class HangingBoard(NamedTuple):
    """A board whose host was seen to hang when its GPUs copied to each other."""

    name: str
    device_id: str
    source: str


HANGING_BOARDS = (
    HangingBoard(
        "Radeon AI PRO R9700", "0x7551", "https://github.com/ROCm/rocm-systems/issues/11348"
    ),
)


def known_hang(identities: list[dict[str, Any]]) -> str:
    """Return what is known of peer copies between these devices; "" where it is nothing bad."""
    for board in HANGING_BOARDS:
        here = [
            seen
            for seen in identities
            if board.name in str(seen.get("name")) or pci_device(seen) == board.device_id
        ]
        if len(here) > 1:
            return (
                f"{len(here)} {board.name}: direct copies between such GPUs have hung the whole host "
                f"({board.source}); NCCL_P2P_DISABLE=1 avoids them"
            )
    return ""


def reason_not_to_copy(hang: str, environment: Mapping[str, str]) -> str:
    """Return why the pairs are left alone; "" once they need not be, which takes a while after a warning."""
    if hang and environment.get("NCCL_P2P_DISABLE") == "1":
        return f"NCCL_P2P_DISABLE=1 is set: {hang}"
    if hang:
        say(f"warning: copies between all pairs of these GPUs start in {WARNING_SECONDS} s")
        time.sleep(WARNING_SECONDS)
    return ""


def pci_device(identity: dict[str, Any]) -> str:
    """Return the PCI device id, as sysfs writes it; "" where it cannot be read."""
    address = str(identity.get("pci_address") or "")
    if address:
        with contextlib.suppress(OSError):
            whole = address if "." in address else f"{address}.0"
            return Path(f"/sys/bus/pci/devices/{whole}/device").read_text().strip()
    return ""


def stage_peer_copies(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Copy from each GPU to each other one and compare."""
    with reporter.check("collectives", "peer_copies") as check:
        check.evidence.update(job["note"])
        check_peer_copies(check, state["torch"], job["message_bytes"])


def check_peer_copies(check: Check, torch: Any, most_bytes: int | None) -> None:
    """Fill a matrix, a row for each source: GB/s, and whether the driver grants direct access."""
    count = torch.cuda.device_count()
    size = most_bytes or (PEER_BYTES if count <= MANY_GPUS else PEER_BYTES_OF_MANY)
    speeds: list[list[float | None]] = [[None] * count for _ in range(count)]
    access: list[list[int | None]] = [[None] * count for _ in range(count)]
    check.evidence.update(bytes=size, gb_per_s=speeds, direct_access=access)
    wrong: list[str] = []
    for source in range(count):
        # 251 is odd and prime: no offset that a copy can slip by looks the same.
        values = torch.arange(size // 4, dtype=torch.int32, device=f"cuda:{source}") % 251 + source
        for target in range(count):
            if target == source:
                continue
            access[source][target] = int(torch.cuda.can_device_access_peer(source, target))
            speeds[source][target], differing = copied(torch, values, source, target)
            if differing:
                wrong.append(f"{differing} of {size // 4} from {source} to {target}")
    if wrong:
        msg = f"values changed on the way between GPUs: {'; '.join(wrong[:8])}"
        raise CheckFailed(msg)


def copied(torch: Any, values: Any, source: int, target: int) -> tuple[float, int]:
    """Copy once to set up the way, once for the time; return GB/s and how many values changed."""
    place = f"cuda:{target}"
    values.to(place)
    torch.cuda.synchronize(target)
    torch.cuda.synchronize(source)
    begin = time.monotonic()
    there = values.to(place)
    torch.cuda.synchronize(target)
    torch.cuda.synchronize(source)
    seconds = time.monotonic() - begin
    count = len(values)
    expected = torch.arange(count, dtype=torch.int32, device=place) % 251 + source
    return rate(4 * count, seconds), int((there != expected).sum().item())
