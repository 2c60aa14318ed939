"""A log of any size costs what its bound says."""

import subprocess
import sys
from pathlib import Path

from rocmrun.system.log_files import read_bounded


def test_a_short_log_is_read_whole(tmp_path: Path) -> None:
    """Bytes that are no text do not stop it."""
    path = tmp_path / "log"
    path.write_bytes(b"a\n\xff\nb\n")

    assert read_bounded(str(path), 1000).text == "a\n\ufffd\nb\n"


def test_a_long_log_keeps_its_ends_and_its_line_numbers(tmp_path: Path) -> None:
    """What lies between is empty lines."""
    path = tmp_path / "log"
    path.write_text(
        "".join(f"line {number:07d}\n" for number in range(1, 400_001)), encoding="utf-8"
    )

    text = read_bounded(str(path), 100_000).text

    lines = text.split("\n")
    assert lines[0] == "line 0000001"
    assert lines[399_999] == "line 0400000"
    assert len(text) < 3_000_000


def test_a_log_of_nothing_but_line_ends_takes_no_memory_for_each(tmp_path: Path) -> None:
    """Numbers of lines are right up to a bound."""
    path = tmp_path / "log"
    path.write_bytes(b"\n" * (17 * 1024 * 1024 + 2000))

    assert len(read_bounded(str(path), 1000).text) == 16 * 1024 * 1024 + 1000


def test_what_was_not_read_is_told(tmp_path: Path) -> None:
    """Of what is no text a sixteenth is looked at: each of its bytes becomes a character of several."""
    text, binary, short = (tmp_path / name for name in ("text", "binary", "short"))
    text.write_bytes(b"step 1 loss 2.3\n" * 64 * 1024 * 4)
    binary.write_bytes(b"\x80\xff\n\xfe" * 1024 * 1024)
    short.write_bytes(b"\xff" * 10)
    read = {path.name: read_bounded(str(path), 1024 * 1024) for path in (text, binary, short)}

    assert read["text"].unread == "3 MiB in the middle of the log's 4 MiB were not read"
    assert read["binary"].unread == "3.9 MiB in the middle of the log's 4 MiB were not read: it looks like no text"  # fmt: skip
    assert read["binary"].text.count("\n") == 1024 * 1024
    assert (read["short"].unread, read["short"].text) == ("", "\ufffd" * 10)


# In a process of its own, whose peak is its own: what the doctor and a bundle read of a log that never was on a disk.
READER = """
import random, resource
from rocmrun.core.bundle_bounds import bounded_log
from rocmrun.core.diagnosis.log_text import MOST_CHARACTERS, lines_of
from rocmrun.system.log_files import read_ends

piece, left = random.Random(1).randbytes(1 << 20), 96 * 1024 * 1024
def read(size):
    global left
    size = min(size, left)
    left -= size
    return (piece * (size // len(piece) + 1))[:size]

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
log = read_ends(read, MOST_CHARACTERS)
lines = lines_of(log.text)
parts, cut = bounded_log(log.text, str, log.unread)
assert log.unread in cut, cut
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_what_is_no_text_takes_bounded_memory() -> None:
    """Of 96 MiB; what is left out is said in the bundle. Each byte was once a character of four, several times."""
    done = subprocess.run([sys.executable, "-c", READER], capture_output=True, text=True, check=False, timeout=120)  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 250  # MiB; 90 were measured, and more than 1000 before it was bounded
