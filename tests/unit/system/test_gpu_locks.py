"""Lock files of GPUs: held by one, in one order, dropped with their holder, usable by every user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocmrun.errors import GpuBusy, HostNotReady
from rocmrun.system.gpu_locks import held, now


def take(directory: Path, *minors: int, wait_seconds: float = 0) -> None:
    with held(minors, wait_seconds=wait_seconds, directory=directory):
        pass


def test_one_holds_a_gpu_and_another_is_told(tmp_path: Path) -> None:
    with held([128, 129], wait_seconds=0, directory=tmp_path / "locks"):
        with pytest.raises(GpuBusy, match="another launch is starting on /dev/dri/renderD129"):
            take(tmp_path / "locks", 129)
        take(tmp_path / "locks", 130)
    take(tmp_path / "locks", 128, 129)


def test_a_lock_that_is_not_given_gives_the_others_back(tmp_path: Path) -> None:
    with held([129], wait_seconds=0, directory=tmp_path):
        with pytest.raises(GpuBusy):
            take(tmp_path, 128, 129)
        take(tmp_path, 128)


def test_waiting_takes_the_time_it_was_given(tmp_path: Path) -> None:
    before = now()
    with held([128], wait_seconds=0, directory=tmp_path), pytest.raises(GpuBusy):
        take(tmp_path, 128, wait_seconds=0.3)

    assert now() - before >= 0.3


def test_a_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    """Also when it was killed."""
    script = (
        "import sys, time; from pathlib import Path; from rocmrun.system.gpu_locks import held\n"
        "with held([128], wait_seconds=0, directory=Path(sys.argv[1])):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(GpuBusy):
            take(tmp_path, 128)
        child.kill()

    take(tmp_path, 128, wait_seconds=60)


def test_every_user_can_use_the_files(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        take(tmp_path / "locks", 128)
    finally:
        os.umask(old)

    assert (tmp_path / "locks").stat().st_mode & 0o7777 == 0o1777
    assert (tmp_path / "locks/renderD128.lock").stat().st_mode & 0o777 == 0o666


def test_a_link_in_place_of_a_lock_file_is_refused(tmp_path: Path) -> None:
    """In a directory that everybody may write."""
    (tmp_path / "target").touch()
    (tmp_path / "renderD128.lock").symlink_to(tmp_path / "target")

    with pytest.raises(HostNotReady, match="cannot make the lock file") as caught:
        take(tmp_path, 128)

    assert "--share" in (caught.value.hint or "")


def test_a_place_where_there_can_be_no_lock_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(HostNotReady, match=r"renderD128\.lock"):
        take(tmp_path / "file", 128)
