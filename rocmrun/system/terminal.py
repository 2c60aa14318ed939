"""The caller's terminal: raw mode and its size. Knows nothing of containers."""

import contextlib
import os
import sys
import termios
import tty
from collections.abc import Iterator


def is_terminal(descriptor: int) -> bool:
    """Return whether *descriptor* is a terminal; a closed one is not."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def size() -> tuple[int, int]:
    """Return (rows, columns) of the terminal; (24, 80) where it does not say."""
    for descriptor in (sys.__stdout__, sys.__stdin__, sys.__stderr__):
        if descriptor is None:
            continue
        with contextlib.suppress(OSError, ValueError):
            columns, rows = os.get_terminal_size(descriptor.fileno())
            if rows and columns:
                return rows, columns
    return 24, 80


@contextlib.contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Pass every key through while the block runs, and give the terminal back as it was."""
    saved = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, saved)
