"""Processes that the set-up leaves running: found again, stopped, and never mistaken for others."""

import json
import os
import time
from pathlib import Path

from scripts import background

LONG = ["sleep", "600"]


def start(folder: Path, argv: list[str]) -> background.Background:
    return background.start(argv, log=folder / "log", record=folder / "record")


def wait_until_ended(record: Path) -> None:
    deadline = time.monotonic() + 60
    while background.running(record) and time.monotonic() < deadline:
        time.sleep(0.02)


def test_what_was_started_is_found_and_stopped_once(tmp_path: Path) -> None:
    """A process is found by its record, stopped, and forgotten."""
    ours = start(tmp_path, LONG)

    assert background.running(tmp_path / "record") == ours
    assert background.stop(tmp_path / "record", timeout_seconds=60) == ours
    assert background.stop(tmp_path / "record", timeout_seconds=60) is None
    assert os.waitstatus_to_exitcode(os.waitpid(ours.pid, 0)[1]) == -15


def test_it_does_not_belong_to_our_terminal(tmp_path: Path) -> None:
    """It leads a session of its own, so that Ctrl-C and the end of make do not reach it."""
    ours = start(tmp_path, LONG)

    assert os.getsid(ours.pid) == ours.pid

    background.stop(tmp_path / "record", timeout_seconds=60)


def test_a_process_that_got_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    """The same pid with another start time, or in another boot, is somebody else's."""
    ours = start(tmp_path, LONG)
    record = tmp_path / "record"
    true_record = record.read_text()
    boot, _, ticks = ours.born.partition(":")
    for born in (f"{boot}:{int(ticks) + 1}", f"another-boot:{ticks}"):
        record.write_text(json.dumps({"pid": ours.pid, "born": born, "name": "sleep"}))

        assert background.stop(record, timeout_seconds=60) is None

    record.write_text(true_record)
    assert background.stop(record, timeout_seconds=60) == ours


def test_one_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    """SIGTERM first; after the time-out SIGKILL."""
    ours = start(tmp_path, ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"])
    while not (tmp_path / "log").read_text():
        time.sleep(0.02)

    assert background.stop(tmp_path / "record", timeout_seconds=0.5) == ours
    assert os.waitstatus_to_exitcode(os.waitpid(ours.pid, 0)[1]) == -9


def test_one_that_ended_is_not_running(tmp_path: Path) -> None:
    """An ended child is not running, although the kernel keeps its entry until it is waited for."""
    start(tmp_path, ["true"])

    wait_until_ended(tmp_path / "record")

    assert background.running(tmp_path / "record") is None
