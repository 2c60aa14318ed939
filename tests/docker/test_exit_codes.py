"""Exit codes: the workload's own, those of a command that cannot run, and ours."""

import json
import time
from pathlib import Path

import docker
import pytest

from tests.docker.jobs import Jobs
from tests.docker.waiting import exists

SCRIPT = """\
#!/bin/sh
echo "$0 says $*"
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A directory to mount as /opt/tools, with commands of every kind in it."""
    tmp_path.chmod(0o755)
    (tmp_path / "run").write_text(SCRIPT)
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "plain").write_text(SCRIPT)
    (tmp_path / "plain").chmod(0o644)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("second")
    (tmp_path / "second").symlink_to("/opt/tools/run")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize("code", [0, 1, 7, 125, 126, 127, 255])
def test_the_workloads_code_is_relayed(jobs: Jobs, code: int) -> None:
    """Also those that mean something else when they are ours: nothing of ours is said then."""
    done = jobs.launch(jobs.tiny, "--", "sh", "-c", f"exit {code}")

    assert done.returncode == code
    assert "error[" not in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "slug", "words"),
    [
        ("no-such-command", 127, "command-not-found", "no-such-command: not found in 127.0.0.1:5055/rocmrun/tiny:1"),
        ("/no/such/command", 127, "command-not-found", "/no/such/command: not found"),
        ("/opt/tools/dangling", 127, "command-not-found", "/opt/tools/dangling: not found"),
        ("/opt/tools/loop", 127, "command-not-found", "/opt/tools/loop: not found"),
        ("/opt/tools/plain", 126, "command-not-executable", "/opt/tools/plain: has no execute permission"),
        ("/opt/tools/folder", 126, "command-not-executable", "/opt/tools/folder: is a directory"),
        ("/", 126, "command-not-executable", "/: is a directory"),
    ],
)  # fmt: skip
def test_a_command_that_cannot_run_is_known_before_anything_starts(
    engine: docker.DockerClient,
    jobs: Jobs,
    tools: Path,
    command: str,
    code: int,
    slug: str,
    words: str,
) -> None:
    """With an init process in front it would start, and end with a code that says nothing."""
    name = jobs.new_name("missing")
    done = jobs.launch(
        jobs.tiny, "--name", name, "-v", f"{tools}:/opt/tools:ro", "--", command, "-x"
    )

    assert done.returncode == code
    assert f"error[{slug}]: {words}" in done.stderr
    assert starts_of(engine, name) == 0
    assert not exists(engine, name)


def starts_of(engine: docker.DockerClient, name: str) -> int:
    """How often the engine started a container of that name until now; a later end would be waited for."""
    seen = engine.api.events(  # type: ignore[call-overload]  # the engine knows fractions of a second
        since=0,
        until=f"{time.time():.9f}",
        filters={"container": name, "event": "start"},
        decode=True,
    )
    return sum(1 for _ in seen)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "/opt/tools/run", "a"), "/opt/tools/run says a"),
        (("--", "/opt/tools/link", "b"), "/opt/tools/link says b"),
        (("-e", "PATH=/nowhere:/opt/tools:/bin", "--", "run", "c"), "run says c"),
    ],
    ids=["by path", "by a chain of links", "along PATH"],
)
def test_a_command_is_found_as_the_kernel_finds_it(
    jobs: Jobs, tools: Path, words: tuple[str, ...], said: str
) -> None:
    """Through mounts, links and the PATH that the container gets."""
    done = jobs.launch(jobs.tiny, "-v", f"{tools}:/opt/tools:ro", *words)

    assert (done.returncode, said in done.stdout) == (0, True)


def test_a_relative_command_starts_at_the_working_directory(
    jobs: Jobs, tools: Path, tiny_image: str
) -> None:
    """As the profile sets it."""
    profile = jobs.workspace.profile(
        tiny_image, '[container]\nworkdir = "/opt/tools"\n', name="workdir"
    )
    options = ("-v", f"{tools}:/opt/tools:ro", "--")
    found = jobs.launch(profile, *options, "./run", "here")
    missing = jobs.launch(profile, *options, "./walk")

    assert (found.returncode, found.stdout) == (0, "./run says here\n")
    assert (missing.returncode, "error[command-not-found]" in missing.stderr) == (127, True)


def test_a_missing_command_is_127_in_the_report_too(jobs: Jobs, tmp_path: Path) -> None:
    """Scripts read the class, people the sentence."""
    report = tmp_path / "report.json"
    done = jobs.launch(jobs.tiny, "--report", str(report), "--", "no-such-command")
    record = json.loads(report.read_text())

    assert done.returncode == 127
    assert record["exit_code"] is None
    assert (record["error"]["slug"], record["error"]["code"]) == ("command-not-found", 127)


def test_our_own_failure_is_125_and_named(jobs: Jobs, tmp_path: Path) -> None:
    """As `docker run` says it; the class stands in the message."""
    done = jobs.launch(jobs.tiny, "-v", f"{tmp_path}/absent:/data", "--", "true")

    assert done.returncode == 125
    assert "error[mount-source]: " in done.stderr
    assert done.stdout == ""
