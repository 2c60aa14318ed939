"""A run in a fork of the tests' own process is a run of the program: words, streams, directory, variables, code."""

import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.warm_start import process_of
from tests.workspace import Rocmrun

LOG = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--version",), None),
        (("plan", "nowhere-to-be-found"), None),
        (("no-such-command",), None),
        (("doctor", "--log", "-", "--json"), LOG),
        (("profiles", "new", "é", "--from-docker-run", "docker run x"), None),
    ],
)
def test_it_says_and_returns_what_the_program_does(
    tmp_path: Path, words: tuple[str, ...], said: str | None
) -> None:
    rocmrun = Rocmrun(path=tmp_path)
    forked = rocmrun(*words, input=said)
    with rocmrun.start(*words, stdin=subprocess.PIPE) as process:
        out, err = process.communicate((said or "").encode())

    assert (process.returncode, out.decode(), err.decode()) == (
        forked.returncode,
        forked.stdout,
        forked.stderr,
    )


def test_it_has_its_own_directory_and_variables(tmp_path: Path) -> None:
    """Of this call alone: the next has them no more."""
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    (profiles / "here.toml").write_text('extends = "base"\n')
    config = tmp_path / "config"
    (config / "rocmrun" / "profiles").mkdir(parents=True)
    (config / "rocmrun" / "profiles" / "mine.toml").write_text('extends = "base"\n')
    rocmrun = Rocmrun(path=tmp_path)

    given = rocmrun("profiles", "list", env={"XDG_CONFIG_HOME": str(config)}, check=True).stdout
    after = rocmrun("profiles", "list", check=True).stdout

    assert ("here" in given, "mine" in given) == (True, True)
    assert ("here" in after, "mine" in after) == (True, False)


def test_one_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """As subprocess does it; its process is known by its number and its start."""
    rocmrun = Rocmrun(path=tmp_path)
    with (
        tempfile.TemporaryDirectory(prefix="rrt-") as folder,  # socket paths are short
        socket.socket(socket.AF_UNIX) as silent,
    ):
        silent.bind(f"{folder}/s")
        silent.listen()
        with pytest.raises(subprocess.TimeoutExpired):
            rocmrun("ps", env={"DOCKER_HOST": f"unix://{folder}/s"}, timeout=2)

    (process,) = rocmrun.started
    assert not _runs(process)


def _runs(process: str) -> bool:
    try:
        return process_of(int(process.partition(":")[0])) == process
    except FileNotFoundError:
        return False
