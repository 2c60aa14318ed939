"""Files are read with clear errors and written whole or not at all."""

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rocmrun.errors import LockBusy, LockUnreadable, ReportUnwritable
from rocmrun.system.files import guarded, make_directory, read_text, write_atomic


def test_absent_file_reads_as_none(tmp_path: Path) -> None:
    """A file that is not there is no error; who asks decides what it means."""
    (tmp_path / "file").touch()

    assert read_text(tmp_path / "absent", LockUnreadable) is None
    assert read_text(tmp_path / "file" / "below", LockUnreadable) is None


def test_text_is_utf8_and_line_ends_stay(tmp_path: Path) -> None:
    """Nothing is translated."""
    (tmp_path / "a").write_bytes("é\r\n".encode())

    assert read_text(tmp_path / "a", LockUnreadable) == "é\r\n"


def test_what_is_no_name_of_a_file_is_said(tmp_path: Path) -> None:
    """Names come from files that people edit: a zero byte ends one for the system."""
    for name in ("a\0b", "\ud800"):
        with pytest.raises(LockUnreadable, match="no file has such a name"):
            read_text(tmp_path / name, LockUnreadable)


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """The open of a pipe would wait for a writer, and a device never ends; a symlink to a file is one."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "text").write_text("a")
    (tmp_path / "good").symlink_to("text")

    for name in ("pipe", "link", "zero"):
        with pytest.raises(LockUnreadable, match="not a regular file"):
            read_text(tmp_path / name, LockUnreadable)
    assert read_text(tmp_path / "good", LockUnreadable) == "a"


def test_unreadable_files_say_why(tmp_path: Path) -> None:
    """A directory, a loop and bytes that are no text are each named."""
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "binary").write_bytes(b"ab\xff")

    for name, says in (
        ("directory", "Is a directory"),
        ("loop", "symbolic links"),
        ("binary", r"not UTF-8 text \(byte 2\)"),
    ):
        with pytest.raises(LockUnreadable, match=says):
            read_text(tmp_path / name, LockUnreadable)


def test_writes_a_new_file_with_the_umask(tmp_path: Path) -> None:
    """A new file gets what any program would give it, and nothing is left beside it."""
    path = tmp_path / "a"

    assert write_atomic(path, "x\n", error=ReportUnwritable) is True

    umask = os.umask(0)
    os.umask(umask)
    assert path.read_text() == "x\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert [path] == list(tmp_path.iterdir())


def test_keeps_the_mode(tmp_path: Path) -> None:
    """A replaced file has the mode it had."""
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)

    write_atomic(path, "new", error=ReportUnwritable)

    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (0o640, "new")


def test_an_equal_file_is_not_touched(tmp_path: Path) -> None:
    """Same bytes, same inode, same time."""
    path = tmp_path / "a"
    path.write_text("same")
    os.utime(path, ns=(1, 1))
    before = path.stat()

    assert write_atomic(path, b"same", error=ReportUnwritable) is False

    assert (before.st_ino, before.st_mtime_ns) == (path.stat().st_ino, path.stat().st_mtime_ns)


def test_a_symlink_is_followed(tmp_path: Path) -> None:
    """The link stays, its target is replaced; also when the target is yet to come."""
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real/file")

    write_atomic(link, "1", error=ReportUnwritable)
    write_atomic(link, "2", error=ReportUnwritable)

    assert link.is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "2"
    assert [tmp_path / "real" / "file"] == list((tmp_path / "real").iterdir())


def test_unwritable_places_say_why(tmp_path: Path) -> None:
    """A missing directory, a directory in the file's place and a loop are named, and leave nothing behind."""
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to("loop")

    for name, says in (
        ("absent/file", "No such file"),
        ("directory", "Is a directory"),
        ("loop", "symbolic links"),
    ):
        with pytest.raises(ReportUnwritable, match=says):
            write_atomic(tmp_path / name, "x", error=ReportUnwritable)
    assert {"directory", "loop"} == {path.name for path in tmp_path.iterdir()}


def test_a_failure_before_the_replace_leaves_the_old_file(tmp_path: Path) -> None:
    """Until the rename, the old content is what readers see, and no temporary file stays."""
    path = tmp_path / "a"
    path.write_text("old")

    def interrupt() -> None:
        assert path.read_text() == "old"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, "new", error=ReportUnwritable, before_replace=interrupt)

    assert path.read_text() == "old"
    assert [path] == list(tmp_path.iterdir())


def test_make_directory_says_why_not(tmp_path: Path) -> None:
    """A file in the way is named."""
    (tmp_path / "file").touch()
    make_directory(tmp_path / "a" / "b", error=ReportUnwritable)

    assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(ReportUnwritable, match="cannot make the directory"):
        make_directory(tmp_path / "file" / "b", error=ReportUnwritable)


KILLED = """
import os, signal, sys
from pathlib import Path
from rocmrun.errors import ReportUnwritable
from rocmrun.system.files import guarded, write_atomic

path = Path(sys.argv[1])
for number in range(100):
    if os.fork() == 0:
        with guarded(path, timeout_seconds=60, error=ReportUnwritable):
            write_atomic(path, f"version {number}\\n" * 1000, error=ReportUnwritable,
                         before_replace=lambda: os.kill(os.getpid(), signal.SIGKILL))
        os._exit(1)
    _, status = os.wait()
    assert os.WTERMSIG(status) == signal.SIGKILL, status
    assert path.read_text() == "old", number
"""


def test_killed_between_write_and_rename_a_hundred_times(tmp_path: Path) -> None:
    """kill -9 with the new content on disk leaves the old file whole; the next writer is not held up and tidies."""
    path = tmp_path / "a"
    path.write_text("old")

    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=True, timeout=120)
    with guarded(path, timeout_seconds=0, error=ReportUnwritable):
        write_atomic(path, "new", error=ReportUnwritable)

    assert path.read_text() == "new"
    assert [path] == list(tmp_path.iterdir())


def test_a_held_guard_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    """Who cannot get the guard in time says so, and may try again."""
    path = tmp_path / "a"
    context = multiprocessing.get_context("fork")
    held, release = context.Event(), context.Event()

    def hold() -> None:
        with guarded(path, timeout_seconds=60, error=ReportUnwritable):
            held.set()
            release.wait(60)

    process = context.Process(target=hold)
    process.start()
    try:
        assert held.wait(60)
        with (
            pytest.raises(LockBusy, match="another process"),
            guarded(path, timeout_seconds=0.1, error=ReportUnwritable),
        ):
            pass
    finally:
        release.set()
        process.join(60)
    with guarded(path, timeout_seconds=60, error=ReportUnwritable):
        pass
    assert list(tmp_path.iterdir()) == []


def _add_lines(path: Path, name: str) -> None:
    for number in range(50):
        with guarded(path, timeout_seconds=60, error=ReportUnwritable):
            old = read_text(path, ReportUnwritable) or ""
            time.sleep(0.0005)
            write_atomic(path, f"{old}{name} {number}\n", error=ReportUnwritable)


def test_read_change_write_by_three_processes_loses_nothing(tmp_path: Path) -> None:
    """The guard is removed and made anew all the time, and still only one process is ever inside."""
    path = tmp_path / "a"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_add_lines, args=(path, name)) for name in "abc"]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)

    assert [process.exitcode for process in processes] == [0, 0, 0]
    expected = sorted(f"{name} {number}" for name in "abc" for number in range(50))
    assert expected == sorted(path.read_text().splitlines())
    assert [path] == list(tmp_path.iterdir())


def test_a_killed_holder_frees_the_guard(tmp_path: Path) -> None:
    """The kernel drops the flock of a dead process; its guard file is taken over."""
    path = tmp_path / "a"
    context = multiprocessing.get_context("fork")
    held = context.Event()

    def hold() -> None:
        with guarded(path, timeout_seconds=60, error=ReportUnwritable):
            held.set()
            signal.pause()

    process = context.Process(target=hold)
    process.start()
    assert held.wait(60)
    process.kill()
    process.join(60)

    with guarded(path, timeout_seconds=0, error=ReportUnwritable):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_device_or_fifo_is_written_into_and_stays_what_it_is(tmp_path: Path) -> None:
    """Replacing /dev/null by a file would break the whole machine."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    write_atomic(fifo, "record", error=LockUnreadable)

    assert os.read(reader, 100) == b"record"
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    os.close(reader)


def test_a_fifo_that_nobody_reads_is_an_error(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    with pytest.raises(LockUnreadable, match="cannot write"):
        write_atomic(fifo, "record", error=LockUnreadable)
