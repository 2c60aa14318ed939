"""Bytes and signals between the caller and the workload."""

import contextlib
import fcntl
import hashlib
import random
import select
import signal
import struct
import subprocess
import termios
from pathlib import Path

import docker
import pytest

from tests.docker.jobs import Jobs
from tests.docker.waiting import ended, exists, read_until, started, until, until_running
from tests.workspace import Workspace

WRITE_BOTH = """
import random, sys
for stream, seed in ((sys.stdout, 1), (sys.stderr, 2)) * 5:
    source = random.Random(seed)
    for _ in range(40):
        stream.buffer.write(source.randbytes(100_000))
    stream.flush()
"""
# 5 times the same 4 MB, so that a lost or doubled piece shows.
SIZE = 20_000_000

HASH_STDIN_THEN_TALK = """
import hashlib, sys, time
digest = hashlib.sha256(sys.stdin.buffer.read()).hexdigest()
time.sleep(0.2)
print(digest)
"""

# Written past Python's buffers: a signal may come before print() has returned, and no handler can print then.
TELL_SIGNALS = r"""
import os, signal, sys

def tell(number, frame):
    os.write(1, f"{signal.Signals(number).name}\n".encode())
    if number == signal.SIGTERM:
        sys.exit(43)

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, tell)
os.write(1, b"ready\n")
while True:
    signal.pause()
"""


def written(seed: int) -> bytes:
    source = random.Random(seed)
    return b"".join(source.randbytes(100_000) for _ in range(40)) * 5


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_both_outputs_arrive_byte_for_byte(jobs: Jobs, tmp_path: Path) -> None:
    """20 MB on each stream at once, with every byte value; our own words stand before them."""
    out, err = tmp_path / "out", tmp_path / "err"
    command = ("python3", "-c", WRITE_BOTH)
    with (
        out.open("wb") as stdout,
        err.open("wb") as stderr,
        jobs.started(jobs.python, "--", *command, stdout=stdout, stderr=stderr) as process,
    ):
        assert process.wait(timeout=280) == 0

    said, talk = err.read_bytes()[:-SIZE].decode(), err.read_bytes()[-SIZE:]
    assert (out.stat().st_size, sha(out.read_bytes())) == (SIZE, sha(written(1)))
    assert sha(talk) == sha(written(2))
    assert all(line.startswith(("rocmrun: ", "warning: ")) for line in said.splitlines())


def test_stdin_arrives_byte_for_byte_and_its_end_too(jobs: Jobs) -> None:
    """The workload sees the end of its input, and what it says afterwards still arrives."""
    data = random.Random(3).randbytes(5_000_000)
    command = ("python3", "-c", HASH_STDIN_THEN_TALK)
    with jobs.started(jobs.python, "-i", "--", *command, stdin=subprocess.PIPE) as process:
        out, _ = process.communicate(data, timeout=60)

    assert (process.returncode, out.decode().strip()) == (0, sha(data))


def test_stdin_is_passed_while_it_is_written(jobs: Jobs) -> None:
    """A conversation: each line is answered before the next is asked."""
    with jobs.started(jobs.tiny, "-i", "--", "cat", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for line in (b"one\n", b"\x00\xff\x1b\r\n", b"three\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert read_until(process.stdout, line) == line
        process.stdin.close()

        assert process.wait(timeout=60) == 0


def test_without_interactive_stdin_is_empty(jobs: Jobs) -> None:
    """A script's own input is not eaten by a launch inside it."""
    done = jobs.launch(jobs.tiny, "--", "cat", input="not for you")

    assert (done.returncode, done.stdout) == (0, "")


def test_a_reader_that_goes_away_ends_the_workload(engine: docker.DockerClient, jobs: Jobs) -> None:
    """`| head -1`: the code that a shell shows for SIGPIPE, and no container that writes for nobody."""
    name = jobs.new_name("head")
    with jobs.started(jobs.tiny, "--name", name, "--", "yes") as process:
        assert read_until(process.stdout, b"y\n").startswith(b"y\n")
        assert process.stdout is not None
        process.stdout.close()

        assert process.wait(timeout=60) == 141
    assert not exists(engine, name)


def test_a_full_disk_behind_stdout_is_told(engine: docker.DockerClient, jobs: Jobs) -> None:
    """`> /dev/full`: output that is lost is a failure, not an exit code of 0, and the workload ends."""
    name = jobs.new_name("full")
    with (
        Path("/dev/full").open("wb") as full,
        jobs.started(jobs.tiny, "--name", name, "--", "yes", stdout=full) as process,
    ):
        code, _, said = ended(process)

    assert code == 125
    assert "error[output-unwritable]: " in said
    assert "No space left on device" in said
    assert not exists(engine, name)


def test_signals_reach_the_workload_and_its_handlers_decide(jobs: Jobs) -> None:
    """Each in turn, as `docker run` forwards them; the handler's exit code is relayed."""
    numbers = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    with jobs.started(jobs.python, "--", "python3", "-c", TELL_SIGNALS) as process:
        read_until(process.stdout, b"ready\n")
        for number in numbers:
            process.send_signal(number)
            assert read_until(process.stdout, b"\n").decode() == f"{number.name}\n"

        assert process.wait(timeout=60) == 43


def test_unhandled_signals_end_it_with_the_shells_code(jobs: Jobs) -> None:
    """128 and the signal's number, for each of those that people send."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    command = ("sh", "-c", "echo ready; exec sleep 1000")
    codes = {}
    with contextlib.ExitStack() as stack:
        processes = {
            number: stack.enter_context(jobs.started(jobs.tiny, "--", *command))
            for number in numbers
        }
        for number, process in processes.items():
            read_until(process.stdout, b"ready\n")
            process.send_signal(number)
            codes[number] = process.wait(timeout=60)

    assert codes == {number: 128 + number for number in numbers}


def test_a_second_interrupt_kills(engine: docker.DockerClient, jobs: Jobs) -> None:
    """A workload that ignores Ctrl-C still ends with the second, and is removed."""
    name = jobs.new_name("stubborn")
    command = ("python3", "-c", TELL_SIGNALS)
    with jobs.started(jobs.python, "--name", name, "--", *command) as process:
        read_until(process.stdout, b"ready\n")
        process.send_signal(signal.SIGINT)
        read_until(process.stdout, b"SIGINT\n")
        process.send_signal(signal.SIGINT)
        code, _, said = ended(process)

    assert code == 137
    assert "press Ctrl-C again to kill it" in said
    assert "memory limit" not in said
    assert not exists(engine, name)


def test_a_workload_that_ignores_sigterm_is_killed_after_its_stop_timeout(
    workspace: Workspace, tiny_image: str
) -> None:
    """As `docker stop` does it: whoever stops a service knows when it is over."""
    profile = workspace.profile(tiny_image, "[container]\nstop_timeout = 1\n")
    deaf = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    words = ("launch", profile, "--no-probe", "--", "sh", "-c", deaf)
    with started(workspace.rocmrun, *words) as process:
        read_until(process.stdout, b"ready\n")
        process.send_signal(signal.SIGTERM)
        code, _, said = ended(process)

    assert code == 137
    assert "rocmrun: it still runs 1 s after SIGTERM\nrocmrun: killing the container\n" in said
    # Nobody looks for want of memory.
    assert "memory" not in said


def test_two_interrupts_end_a_workload_whose_output_nobody_takes(
    engine: docker.DockerClient, jobs: Jobs
) -> None:
    """A reader that is stuck: the engine would wait for it for ever, and with it everything else."""
    name = jobs.new_name("stuck")
    with jobs.started(jobs.tiny, "--name", name, "--", "yes") as process:
        until_running(engine, name)
        until(lambda: _is_full(process), "a full pipe")
        process.send_signal(signal.SIGINT)
        read_until(process.stderr, b"press Ctrl-C again")
        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=60) in {130, 137}
    assert not exists(engine, name)


def _is_full(process: subprocess.Popen[bytes]) -> bool:
    """Whether the pipe behind the process's stdout holds all that it can."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    waiting = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4))[0]
    return int(waiting) >= fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) - select.PIPE_BUF


@pytest.mark.cleans
def test_a_killed_rocmrun_leaves_what_clean_removes(
    engine: docker.DockerClient, jobs: Jobs
) -> None:
    """SIGKILL cannot be caught: the container runs on, and `clean` sees that nobody looks after it."""
    name = jobs.new_name("orphan")
    with jobs.strays():
        with jobs.started(jobs.tiny, "--name", name, "--", "sleep", "1000") as process:
            until_running(engine, name)
            looked_after = jobs.rocmrun("clean", "--dry-run", check=True).stdout
            process.kill()
            process.wait(timeout=60)
        cleaned = jobs.rocmrun("clean", check=True).stdout

    assert name not in looked_after
    assert f"{name}: workload of a rocmrun that is gone, still running" in cleaned
    assert not exists(engine, name)


def test_running_out_of_memory_is_told(jobs: Jobs) -> None:
    """137 alone does not say who killed it, and not every engine notices that the kernel did."""
    greedy = "b = bytearray(512 * 1024**2)"
    done = jobs.launch(jobs.python, "--memory", "64m", "--", "python3", "-c", greedy)

    assert done.returncode == 137
    assert "the container's memory limit" in done.stderr


def test_closed_output_is_not_the_end(jobs: Jobs) -> None:
    """A workload may close its own streams and work on: its exit code is still waited for."""
    command = ("sh", "-c", "exec >&- 2>&-; sleep 1; exit 5")

    assert jobs.launch(jobs.tiny, "--", *command).returncode == 5


@pytest.mark.slow
def test_silence_is_no_timeout(jobs: Jobs) -> None:
    """Longer than any single call to the engine may take, without a byte."""
    done = jobs.launch(jobs.tiny, "--", "sh", "-c", "sleep 75; echo awake", timeout=150)

    assert (done.returncode, done.stdout) == (0, "awake\n")
