"""Small ELF files of our own: what a linker leaves of a library that needs others."""

import struct


def shared_library(*needed: str, machine: int = 62) -> bytes:
    """Return a 64-bit little-endian shared library that needs *needed*: headers, no code.

    The string table lies at another address than its offset in the file, as real ones do.
    """
    names = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    offsets = [names.index(name.encode() + b"\0") for name in needed]
    header_bytes, programs = 64 + 2 * 56, 2
    base = 0x10000
    dynamic = [(1, offset) for offset in offsets] + [(5, base + header_bytes), (10, len(names))]
    entries = b"".join(struct.pack("<qQ", tag, value) for tag, value in [*dynamic, (0, 0)])
    dynamic_at = header_bytes + len(names)
    total = dynamic_at + len(entries)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        3,
        machine,
        1,
        0,
        64,
        0,
        0,
        64,
        56,
        programs,
        0,
        0,
        0,
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, total, total, 4096)
    where = struct.pack(
        "<IIQQQQQQ",
        2,
        6,
        dynamic_at,
        base + dynamic_at,
        base + dynamic_at,
        len(entries),
        len(entries),
        8,
    )
    return head + load + where + names + entries
