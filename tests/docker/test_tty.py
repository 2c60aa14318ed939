"""A terminal in the container, through a pty: size, keys, and the caller's terminal as it was before."""

import docker

from tests.docker.jobs import Jobs
from tests.docker.terminals import terminal
from tests.docker.waiting import exists, until_running

# Tells its size until asked to stop, and each key that it gets as it gets it.
SHOW_SIZE = "while :; do stty size; sleep 0.1; done"
TELL_KEYS = r"""
import os, sys, termios, tty
print("tty", [os.isatty(number) for number in range(3)], flush=True)
tty.setraw(0)
os.write(1, b"ready\r\n")
while (key := os.read(0, 100)) != b"q":
    os.write(1, repr(key).encode() + b"\r\n")
"""
# Written past Python's buffers: a signal may come before print() has returned, and no handler can print then.
TELL_INTERRUPT = r"""
import os, signal, sys
def tell(number, frame):
    os.write(1, f"got {signal.Signals(number).name}\n".encode())
    sys.exit(7)
signal.signal(signal.SIGINT, tell)
os.write(1, b"ready\n")
signal.pause()
"""


def words(jobs: Jobs, profile: str, *options: str) -> tuple[str, ...]:
    return ("launch", profile, "--no-probe", "-it", *options)


def test_the_workload_has_a_terminal_and_gets_every_key(jobs: Jobs) -> None:
    """All three streams are one, and control characters are keys like others."""
    with terminal(
        jobs.rocmrun, *words(jobs, jobs.python), "--", "python3", "-c", TELL_KEYS
    ) as user:
        user.until(b"tty [True, True, True]")
        user.until(b"ready")
        for keys in (b"a", b"\x03", b"\x1a", b"\x04", b"\x10", b"\x11", "é".encode()):
            user.type(keys)
            user.until(repr(keys).encode())
        user.type(b"q")

        assert user.process.wait(timeout=60) == 0


def test_the_size_is_the_callers_and_follows_it(engine: docker.DockerClient, jobs: Jobs) -> None:
    """At the start and when the window changes."""
    name = jobs.new_name("size")
    command = ("sh", "-c", SHOW_SIZE)
    with terminal(
        jobs.rocmrun, *words(jobs, jobs.tiny, "--name", name), "--", *command, rows=31, columns=97
    ) as user:
        user.until(b"31 97")
        user.resize(50, 120)
        user.until(b"50 120")
        user.type(b"\x03")

        assert user.process.wait(timeout=60) == 130
    assert not exists(engine, name)


def test_ctrl_c_reaches_the_foreground_process(jobs: Jobs) -> None:
    """As a key: the terminal inside makes the signal, the handler's code is relayed."""
    command = ("python3", "-c", TELL_INTERRUPT)
    with terminal(jobs.rocmrun, *words(jobs, jobs.python), "--", *command) as user:
        user.until(b"ready")
        user.type(b"\x03")
        user.until(b"got SIGINT")

        assert user.process.wait(timeout=60) == 7


def test_the_callers_terminal_is_as_before(jobs: Jobs) -> None:
    """Raw while the workload has it, and given back after its end."""
    with terminal(
        jobs.rocmrun, *words(jobs, jobs.tiny), "--", "sh", "-c", "echo ready; read x"
    ) as user:
        user.until(b"ready")
        during = user.attributes()
        user.type(b"\n")

        assert user.process.wait(timeout=60) == 0
        assert during != user.before
        assert user.attributes() == user.before


def test_the_callers_terminal_is_as_before_after_a_failure(
    engine: docker.DockerClient, jobs: Jobs
) -> None:
    """Also when the container is taken away from outside."""
    name = jobs.new_name("taken")
    options = ("--name", name)
    with terminal(jobs.rocmrun, *words(jobs, jobs.tiny, *options), "--", "sleep", "1000") as user:
        until_running(engine, name)
        engine.api.remove_container(name, force=True, v=True)

        assert user.process.wait(timeout=60) != 0
        assert user.attributes() == user.before


def test_a_terminal_that_is_not_interactive(jobs: Jobs) -> None:
    """`-t` alone: the workload has a terminal to write to, and no keys."""
    done = jobs.launch(jobs.tiny, "-t", "--", "sh", "-c", "test -t 1 && echo terminal")

    assert (done.returncode, done.stdout) == (0, "terminal\r\n")


def test_a_pipe_is_no_terminal(jobs: Jobs) -> None:
    """`-it` with stdin from a pipe: the terminal inside would hang up before the last line was read."""
    done = jobs.launch(jobs.tiny, "-it", "--", "cat", input="a line\n")

    assert (done.returncode, done.stdout) == (125, "")
    assert "error[usage]: --tty and --interactive need a terminal" in done.stderr
    assert "hint: drop --tty" in done.stderr
