"""A log of any size costs what its bound says."""

from pathlib import Path

from rocmrun.system.log_files import read_bounded


def test_a_short_log_is_read_whole(tmp_path: Path) -> None:
    """Bytes that are no text do not stop it."""
    path = tmp_path / "log"
    path.write_bytes(b"a\n\xff\nb\n")

    assert read_bounded(str(path), 1000) == "a\n\ufffd\nb\n"


def test_a_long_log_keeps_its_ends_and_its_line_numbers(tmp_path: Path) -> None:
    """What lies between is empty lines."""
    path = tmp_path / "log"
    path.write_text(
        "".join(f"line {number:07d}\n" for number in range(1, 400_001)), encoding="utf-8"
    )

    text = read_bounded(str(path), 100_000)

    lines = text.split("\n")
    assert lines[0] == "line 0000001"
    assert lines[399_999] == "line 0400000"
    assert len(text) < 3_000_000


def test_a_log_of_nothing_but_line_ends_takes_no_memory_for_each(tmp_path: Path) -> None:
    """Numbers of lines are right up to a bound."""
    path = tmp_path / "log"
    path.write_bytes(b"\n" * (17 * 1024 * 1024 + 2000))

    assert len(read_bounded(str(path), 1000)) == 16 * 1024 * 1024 + 1000
