"""The frames in which an engine sends a log: stream, three bytes of nothing, length; then that many bytes."""

import struct
from collections.abc import Iterable, Iterator

_HEADER = struct.Struct(">BxxxL")


def frames_of(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (1 for stdout or 2 for stderr, bytes), however *chunks* are cut; what is incomplete in the end is lost."""
    data = b""
    for chunk in chunks:
        data += chunk
        while len(data) >= _HEADER.size:
            stream, length = _HEADER.unpack_from(data)
            end = _HEADER.size + length
            if len(data) < end:
                break
            yield stream, data[_HEADER.size : end]
            data = data[end:]
