"""Which GPU runtime a library is linked against: its needed names, read from the ELF file itself."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

# Bounds: a file that claims more is not a library that anything would load.
MAX_PROGRAM_HEADERS = 256
MAX_DYNAMIC_BYTES = 1 << 20
MAX_NEEDED = 512
MAX_NAME = 256
MAX_LIBRARIES = 400  # of one package
PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB = 1, 5
CLASS_64, LITTLE_ENDIAN = 2, 1
PROGRAM_HEADER_64 = "<IIQQQQQQ"
# Libraries that a wheel brings along have part of their hash in the name: libcudart.faf08d9a.so.13 in
# torchvision's, libcudart-c3a75b33.so.11.0 in others (auditwheel writes the second form).
BUNDLED = r"([-.][0-9a-f]{8})?"
# libc10_hip and libtorch_hip are those of a ROCm torch, libc10_cuda and libtorch_cuda of a CUDA one:
# a ROCm torch has no such file (huggingface/autotrain-advanced#735, pytorch/pytorch#139410).
ROCM_LIBRARY = re.compile(
    r"lib(amdhip64|hiprtc|hsa-runtime64|MIOpen|rccl|c10_hip|torch_hip"
    r"|(hip|roc)(blas|blaslt|fft|rand|solver|sparse|sparselt|tx64|profiler\w*))" + BUNDLED + r"\.so"
)
CUDA_LIBRARY = re.compile(
    r"lib(cuda|cudart|nccl|c10_cuda|torch_cuda|cu(blas|blasLt|fft|rand|solver|sparse|sparseLt|dnn\w*|pti)"
    r"|nv(rtc|JitLink|ToolsExt|jpeg))" + BUNDLED + r"\.so"
)


class Segment(NamedTuple):
    """One program header: what part of the file lies where in memory."""

    kind: int
    offset: int
    address: int
    size: int


def needed_libraries(path: str) -> list[str] | None:
    """Return the names in a library's DT_NEEDED entries; None when it is no 64-bit ELF file that has any."""
    try:
        with Path(path).open("rb") as file:
            segments = program_headers(file)
            dynamic = next((one for one in segments if one.kind == PT_DYNAMIC), None)
            if dynamic is None or dynamic.size > MAX_DYNAMIC_BYTES:
                return None
            entries = dynamic_entries(file, dynamic)
            tables = [value for tag, value in entries if tag == DT_STRTAB]
            offset = file_offset(tables[0], segments)
            needed = [value for tag, value in entries if tag == DT_NEEDED][:MAX_NEEDED]
            return [name_at(file, offset + value) for value in needed]
    except (OSError, ValueError, struct.error, LookupError, OverflowError):
        return None


def program_headers(file: BinaryIO) -> list[Segment]:
    """Return the program headers of a 64-bit little-endian ELF file.

    Raises:
        ValueError: it is none.
    """
    head = file.read(64)
    if head[:6] != bytes([0x7F, *b"ELF", CLASS_64, LITTLE_ENDIAN]):
        msg = "not a 64-bit little-endian ELF file"
        raise ValueError(msg)
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    if size < struct.calcsize(PROGRAM_HEADER_64) or count > MAX_PROGRAM_HEADERS:
        msg = "no program headers that can be read"
        raise ValueError(msg)
    segments = []
    for index in range(count):
        file.seek(offset + index * size)
        data = file.read(struct.calcsize(PROGRAM_HEADER_64))
        kind, _, begin, address, _, length, *_ = struct.unpack(PROGRAM_HEADER_64, data)
        segments.append(Segment(kind, begin, address, length))
    return segments


def dynamic_entries(file: BinaryIO, dynamic: Segment) -> list[tuple[int, int]]:
    """Return tag and value of each entry of the dynamic segment."""
    file.seek(dynamic.offset)
    data = file.read(dynamic.size)
    return list(struct.iter_unpack("<qQ", data[: len(data) // 16 * 16]))


def file_offset(address: int, segments: list[Segment]) -> int:
    """Return where in the file the byte at *address* is.

    Raises:
        LookupError: no segment holds it.
    """
    for segment in segments:
        if segment.kind == PT_LOAD and 0 <= address - segment.address < segment.size:
            return segment.offset + address - segment.address
    raise LookupError(address)


def name_at(file: BinaryIO, offset: int) -> str:
    """Return the string at *offset*."""
    file.seek(offset)
    return file.read(MAX_NAME).partition(b"\0")[0].decode(errors="replace")


def linked_to(needed: list[str]) -> str:
    """Return "rocm", "cuda", "both" or "none", by the names that a library needs."""
    rocm = any(ROCM_LIBRARY.match(name) for name in needed)
    cuda = any(CUDA_LIBRARY.match(name) for name in needed)
    return "both" if rocm and cuda else "rocm" if rocm else "cuda" if cuda else "none"


def libraries_below(places: list[str]) -> list[str]:
    """Return the shared libraries in these directories, and those of these files that are one."""
    found = [place for place in places if is_library(place) and Path(place).is_file()]
    for place in places:
        for folder, folders, names in os.walk(place):
            folders.sort()
            found += [f"{folder}/{name}" for name in sorted(names) if is_library(name)]
            if len(found) > MAX_LIBRARIES:
                return found[:MAX_LIBRARIES]
    return found


def is_library(path: str) -> bool:
    """Whether this is the name of a shared library: with or without a version behind."""
    return ".so" in Path(path).suffixes


def mapped_libraries() -> set[str]:
    """Return the shared libraries that this process has loaded."""
    lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) > 5}  # noqa: PLR2004 - the path is the sixth field
    return {path for path in paths if is_library(path)}


def linkage(libraries: list[str]) -> dict[str, list[str]]:
    """Return the libraries by what they are linked to; what is no ELF library is left out."""
    found: dict[str, list[str]] = {}
    for library in libraries:
        needed = needed_libraries(library)
        if needed is not None:
            found.setdefault(linked_to(needed), []).append(library)
    return found


def runtime_of(by_runtime: dict[str, Any]) -> str:
    """Return the one runtime that a package's libraries are linked to: "rocm", "cuda", "both" or "none"."""
    kinds = {kind for kind, libraries in by_runtime.items() if libraries and kind != "none"}
    if not kinds:
        return "none"
    return kinds.pop() if len(kinds) == 1 else "both"
