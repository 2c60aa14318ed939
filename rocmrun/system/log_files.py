"""Logs of any size: their start and their end."""

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rocmrun.core.text import human_size

_PIECE = 1 << 20
# Of a log of gigabytes with nothing in its lines: there, numbers of lines are not worth the memory.
_MOST_SKIPPED = 16 * 1024 * 1024
# Bytes that are no text become a character of two or four bytes each: that much less is looked at.
_OF_NO_TEXT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedText:
    """What was read of a log.

    Attributes:
        text: Its start and its end, with empty lines for those between, so that numbers of lines stay right.
        size: How many bytes it has.
        left_out: How many of them, in the middle, were not read.
        is_text: Whether its start looks like text.
    """

    text: str
    size: int
    left_out: int = 0
    is_text: bool = True

    @property
    def unread(self) -> str:
        """What was not read, in words; "" where all was."""
        if not self.left_out:
            return ""
        why = "" if self.is_text else ": it looks like no text"
        return f"{human_size(self.left_out)} in the middle of the log's {human_size(self.size)} were not read{why}"


def read_bounded(path: str, most: int) -> BoundedText:
    """Return the text of *path* ("-" is standard input).

    Of more than *most* bytes it is a quarter from the start and the rest from the end; of what is no text a
    sixteenth of that.
    """
    if path == "-":
        return read_ends(sys.stdin.buffer.read, most)
    with Path(path).open("rb") as file:
        return read_ends(file.read, most)


def read_ends(read: Callable[[int], bytes], most: int) -> BoundedText:
    """Return the start and the end of what *read* gives, piece by piece."""
    head = read(most // 4)
    start = head.decode("utf-8", errors="replace")
    is_text = start.count("\ufffd") * 10 <= len(start)
    if not is_text:
        most //= _OF_NO_TEXT
    rest, kept = head[most // 4 :], most - most // 4
    start = ""  # of a character's width each: no second time beside the whole
    pieces, held, size, skipped = deque([rest]), len(rest), len(head), 0
    while piece := read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        held += len(piece)
        while held - len(pieces[0]) >= kept:
            gone = pieces.popleft()
            held -= len(gone)
            skipped += gone.count(b"\n")
    tail = b"".join(pieces)
    pieces.clear()
    over = max(0, len(tail) - kept)
    skipped += tail.count(b"\n", 0, over)
    data = head[: most // 4] + b"\n" * min(skipped, _MOST_SKIPPED) + tail[over:]
    left_out = max(0, size - most)
    del head, tail
    return BoundedText(
        text=data.decode("utf-8", errors="replace"), size=size, left_out=left_out, is_text=is_text
    )
