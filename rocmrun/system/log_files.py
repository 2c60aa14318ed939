"""Logs of any size: their start and their end."""

import sys
from collections.abc import Callable
from pathlib import Path

_PIECE = 1 << 20
# Of a log of gigabytes with nothing in its lines: there, numbers of lines are not worth the memory.
_MOST_SKIPPED = 16 * 1024 * 1024


def read_bounded(path: str, most: int) -> str:
    """Return the text of *path* ("-" is standard input).

    Of more than *most* bytes it is a quarter from the start and the rest from the end; the lines between
    are empty, so that numbers of lines stay right.
    """
    if path == "-":
        return _ends(sys.stdin.buffer.read, most)
    with Path(path).open("rb") as file:
        return _ends(file.read, most)


def _ends(read: Callable[[int], bytes], most: int) -> str:
    head = read(most // 4)
    kept = most - len(head)
    tail, skipped = bytearray(), 0
    while piece := read(_PIECE):
        tail += piece
        # Trimmed in large steps, so that a long log costs no more than its length.
        if len(tail) > 2 * kept + _PIECE:
            skipped += tail.count(b"\n", 0, len(tail) - kept)
            del tail[: len(tail) - kept]
    return (head + b"\n" * min(skipped, _MOST_SKIPPED) + bytes(tail)).decode(
        "utf-8", errors="replace"
    )
