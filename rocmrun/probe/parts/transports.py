"""How ranks reach each other: what NCCL and RCCL say about it under NCCL_DEBUG=INFO."""

from __future__ import annotations

import os
import re
from typing import Any

KEPT_TRANSPORT_LINES = 6  # of each rank: one says what hundreds repeat, a channel each
KEPT_WARNINGS = 8
# "Channel 00/0 : 0[3000] -> 1[d000] via P2P/IPC comm 0x2bc1f840 nRanks 02" (RCCL names the
# communicator), "Channel 01 : 0[1] -> 1[1] [send] via NET/Socket/0", "… via direct shared memory" (before 2.8)
CHANNEL_LINE = re.compile(
    r"NCCL INFO (?:Channel|Ring) \d+(?:/\d+)? : (\d+)(?:\[\w+\])? -> (\d+)(?:\[\w+\])? "
    r"(?:\[(?:send|receive)\] )?via (.+?)(?: comm \w+.*)?$"
)
VERSION_LINE = re.compile(r"\b([NR]CCL version ?:? ?[0-9][\w.+-]*)")
NETWORK_LINE = re.compile(r"NCCL INFO (?:Bootstrap ?: Using|NET/\w+ ?: Using) (.+)$")
WARNING_LINE = re.compile(r"NCCL (?:WARN|ERROR) (.+)$|\[FATAL ERROR\]: (.+)$")
# What NCCL, RCCL (posix_fallocate, ftruncate) and torch print when /dev/shm is full.
SHARED_MEMORY_FULL = re.compile(
    r"No space left on device|Error while creating shared memory segment|failed to extend /dev/shm"
    r"|posix_fallocate failed|signal SIGBUS|killed by SIGBUS"
)


def transport_environment() -> dict[str, str]:
    """Return what makes a rank say how it reaches the others, a line at a time.

    On a pipe C's standard output holds lines back, and a rank that hangs or is killed never lets them
    go; a debug file is written a line at a time (setlinebuf in RCCL's src/debug.cc), and this one is
    standard output again. The channels belong to the subsystem INIT.
    """
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV",
        "NCCL_DEBUG_FILE": "/proc/self/fd/1",
    }


def transport_kind(text: str) -> str:
    """Return "P2P/IPC", "SHM/direct" or "NET/Socket" from what follows "via"."""
    if "shared memory" in text:
        return "SHM/direct"
    return "/".join(text.split("/")[:2])


class TransportLog:
    """What one rank's lines say. Bounded: takes any number of them."""

    def __init__(self) -> None:
        self.version = ""
        self.network = ""
        self.kinds: dict[str, int] = {}
        self.lines: list[str] = []
        self.warnings: list[str] = []

    def take(self, line: str) -> None:
        """Note what *line* says; most say nothing about transports."""
        channel = CHANNEL_LINE.search(line)
        if channel:
            source, target, via = channel.groups()
            kind = transport_kind(via)
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            said = f"{source} -> {target} via {via}"
            if said not in self.lines and len(self.lines) < KEPT_TRANSPORT_LINES:
                self.lines.append(said)
            return
        warning = WARNING_LINE.search(line)
        if warning:
            text = next(filter(None, warning.groups()))
            if text not in self.warnings and len(self.warnings) < KEPT_WARNINGS:
                self.warnings.append(text)
            return
        version, network = VERSION_LINE.search(line), NETWORK_LINE.search(line)
        self.version = self.version or (version.group(1) if version else "")
        self.network = self.network or (network.group(1) if network else "")

    def evidence(self) -> dict[str, Any]:
        """Return what was noted."""
        return {
            "channels": self.kinds,
            "lines": self.lines,
            "network": self.network,
            "warnings": self.warnings,
        }


def shared_memory_bytes() -> int | None:
    """Return the size of /dev/shm, None where there is none."""
    try:
        state = os.statvfs("/dev/shm")
    except OSError:
        return None
    return state.f_blocks * state.f_frsize


def shared_memory_reason(texts: list[str]) -> str:
    """Return that /dev/shm is too small where one of *texts* says so, else nothing."""
    for text in texts:
        if SHARED_MEMORY_FULL.search(text):
            size = shared_memory_bytes()
            holds = "is missing"
            if size is not None:
                whole = f"{size / (1 << 20):g} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
                holds = f"holds {whole}"
            return (
                f"/dev/shm {holds}, too little for the ranks' shared memory: "
                "give the container more (shm_size, --shm-size)"
            )
    return ""
