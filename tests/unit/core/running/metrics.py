"""Tables as amdgpu writes them into gpu_metrics: filled with ones, then the header, then what the firmware knows."""

import struct

SIZES = {
    (1, 0): 80, (1, 1): 96, (1, 2): 104, (1, 3): 120, (1, 4): 288, (1, 5): 360, (1, 6): 1664,
    (1, 7): 2208, (1, 8): 3872, (2, 1): 120, (2, 2): 128, (2, 4): 168, (3, 0): 256,
}  # fmt: skip
RESIDENCIES = {(1, 6): 32, (1, 7): 40, (1, 8): 40}


def table(revision: tuple[int, int], *fields: tuple[str, int, int], size: int = 0) -> bytes:
    """Return a table with *fields* (struct format, offset, value)."""
    length = size or SIZES[revision]
    data = bytearray(b"\xff" * length)
    struct.pack_into("<HBB", data, 0, length, *revision)
    for kind, offset, value in fields:
        struct.pack_into(f"<{kind}", data, offset, value)
    return bytes(data)


def residencies(revision: tuple[int, int], cycles: int, *counts: int) -> bytes:
    """Return a table with the counter of cycles and the residencies that follow it."""
    at = RESIDENCIES[revision]
    values = (cycles, *counts)
    return table(revision, *(("I", at + 4 * place, value) for place, value in enumerate(values)))
