"""Bad input: one clear error and the right code each, nothing started, nothing left behind."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.docker.engine_proxy import engine_proxy
from tests.docker.jobs import Jobs
from tests.docker.spare_engine import spare_engine
from tests.workspace import PROGRAM, Environment, Workspace

VERSION = re.compile(r"GET (/v[\d.]+)?/version\b")


def assert_refused(
    jobs: Jobs, words: tuple[str, ...], slug: str, code: int, env: Environment | None = None
) -> str:
    """Launch and probe fail with one error of that class, on stderr or as one JSON object; return the text."""
    launched = jobs.launch(*words, "--", "echo", "ran", env=env)
    probed = jobs.rocmrun("probe", *words, "--json", env=env)
    printed: dict[str, Any] = json.loads(probed.stdout)

    assert (launched.returncode, launched.stdout) == (125, "")
    assert launched.stderr.count("error[") == 1, launched.stderr
    assert f"error[{slug}]: " in launched.stderr
    assert "Traceback" not in launched.stderr
    assert (probed.returncode, printed["ok"]) == (code, False)
    assert (printed["error"]["slug"], printed["error"]["code"]) == (slug, code)
    return launched.stderr


def test_no_engine(jobs: Jobs, tmp_path: Path) -> None:
    said = assert_refused(
        jobs, (jobs.tiny,), "engine-unreachable", 6, {"DOCKER_HOST": f"unix://{tmp_path}/absent"}
    )

    assert f"no container engine answers at unix://{tmp_path}/absent" in said
    assert "hint: start it" in said


def test_an_engine_that_refuses_this_user(jobs: Jobs) -> None:
    """A socket that may not be opened; root itself may open any, unless it has given that up."""
    drop = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed, and root opens every socket")
        drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    with (
        tempfile.TemporaryDirectory(prefix="rrt-") as folder,
        socket.socket(socket.AF_UNIX) as server,
    ):
        server.bind(f"{folder}/s")
        server.listen()
        Path(folder, "s").chmod(0)
        done = subprocess.run(
            [*drop, PROGRAM, "launch", jobs.tiny, "--no-probe", "--", "true"],
            cwd=jobs.workspace.path,
            env=jobs.rocmrun.environment({"DOCKER_HOST": f"unix://{folder}/s"}),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert done.returncode == 125
    assert "error[engine-denied]: this user may not open the engine's socket" in done.stderr
    assert "docker group" in done.stderr


def test_an_engine_that_is_too_old(jobs: Jobs) -> None:
    """API 1.40 is Docker 19.03: it has no private cgroup namespace."""
    older = {VERSION: lambda version: {**version, "ApiVersion": "1.40"}}
    with engine_proxy(answers=older) as proxy:
        said = assert_refused(
            jobs, (jobs.tiny,), "engine-unsuitable", 8, {"DOCKER_HOST": proxy.address}
        )

    assert "speaks API 1.40" in said
    assert "hint: upgrade Docker Engine to 20.10 or newer" in said


def test_an_image_that_is_not_in_the_lock(jobs: Jobs) -> None:
    name = jobs.workspace.write(
        'extends = "base"\naccelerator = "cpu"\n[image]\nref = "127.0.0.1:5055/rocmrun/other:1"\n'
        '[gpus]\nselect = ["none"]\n',
        name="unlocked",
    )
    said = assert_refused(jobs, (name,), "lock-missing", 3)

    assert "127.0.0.1:5055/rocmrun/other:1" in said
    assert f"rocmrun lock {name}" in said


@pytest.mark.parametrize(
    "text",
    ["version = 1\n[[image]\n", "<<<<<<< ours\nversion = 1\n", "version = 99\n", "\x00\xff"],
    ids=["no TOML", "merge markers", "newer", "no text"],
)
def test_a_lock_that_cannot_be_read(jobs: Jobs, tmp_path: Path, text: str) -> None:
    lock = tmp_path / "rocmrun.lock"
    lock.write_text(text, encoding="latin-1")
    said = assert_refused(jobs, (jobs.tiny, "--lockfile", str(lock)), "lock-unreadable", 3)

    assert str(lock) in said


def test_a_profile_with_several_mistakes(jobs: Jobs) -> None:
    """All at once, each with its key and, where one is near, the word that was meant."""
    name = jobs.workspace.write(
        'extends = "base"\n[container]\nuzer = "image"\nmemory = "lots"\n'
        'ports = ["8000"]\n[gpus]\nselect = ["index:x"]\n',
        name="wrong",
    )
    said = assert_refused(jobs, (name,), "profile-invalid", 2)

    assert f"profile {name} has " in said
    for words in ("container.uzer", "container.memory", "container.ports[0]", "gpus.select[0]"):
        assert words in said
    assert 'did you mean "user"?' in said


def test_a_profile_that_does_not_exist(jobs: Jobs) -> None:
    wrong = jobs.tiny.replace("tiny", "tyni")
    said = assert_refused(jobs, (wrong,), "profile-not-found", 2)

    assert f'did you mean "{jobs.tiny}"?' in said
    assert f"looked in {jobs.workspace.profiles}" in said


def test_a_parameter_that_is_not_set(jobs: Jobs) -> None:
    said = assert_refused(jobs, ("vllm-serve",), "parameter-missing", 2)

    assert "model_dir" in said
    assert "--set model_dir=" in said


def test_mount_sources_that_cannot_be_used(jobs: Jobs, tmp_path: Path) -> None:
    """Every one of them in one error; nothing is made where a source is missing."""
    (tmp_path / "file").write_text("")
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    sources = [("absent", "/a"), ("file/", "/b"), ("one", "/c")]
    volumes = [
        word for source, target in sources for word in ("-v", f"{tmp_path}/{source}:{target}:ro")
    ]
    said = assert_refused(jobs, (jobs.tiny, *volumes), "mount-source", 2)

    assert f"{tmp_path}/absent → /a: does not exist" in said
    assert f"{tmp_path}/file/ → /b: is a file, not a directory" in said
    assert f"{tmp_path}/one → /c: is a loop of symbolic links" in said
    assert not (tmp_path / "absent").exists()


def test_a_file_over_a_directory_of_the_image(jobs: Jobs, tmp_path: Path) -> None:
    """Only the engine knows what the image has there; what it says has a name and a hint."""
    (tmp_path / "file").write_text("")
    done = jobs.launch(jobs.python, "-v", f"{tmp_path}/file:/usr:ro", "--", "true")

    assert done.returncode == 125
    assert "error[mount-source]: " in done.stderr
    assert "hint: a file can only be mounted over a file" in done.stderr


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("absent/report.json", "absent is no directory"),
        (".", "is a directory"),
    ],
)
def test_a_report_that_cannot_be_written(jobs: Jobs, tmp_path: Path, path: str, words: str) -> None:
    """Known before the run, not after it."""
    said = assert_refused(
        jobs, (jobs.tiny, "--report", str(tmp_path / path)), "report-unwritable", 2
    )

    assert words in said


def test_the_report_has_the_class_of_a_failure_before_the_plan(jobs: Jobs, tmp_path: Path) -> None:
    """Where there is a report there is no need to read messages."""
    report = tmp_path / "report.json"
    done = jobs.launch("vllm-serve", "--report", str(report))
    record = json.loads(report.read_text())

    assert done.returncode == 125
    assert (record["error"]["slug"], record["error"]["code"]) == ("parameter-missing", 2)


def test_an_absent_image_that_may_not_be_pulled(workspace: Workspace, tiny_image: str) -> None:
    """An engine that never saw it, and --pull never."""
    profile = workspace.profile(tiny_image)
    with spare_engine() as address:
        env = {"DOCKER_HOST": address}
        launched = workspace.rocmrun("launch", profile, "--no-probe", "--pull", "never", env=env)
        probed = workspace.rocmrun("probe", profile, "--pull", "never", "--json", env=env)

    assert (launched.returncode, probed.returncode) == (125, 5)
    assert "error[image-gone]: " in launched.stderr
    assert json.loads(probed.stdout)["error"]["slug"] == "image-gone"


def test_out_of_disk_during_a_pull(workspace: Workspace, demo_image: str) -> None:
    """The engine tells it in the stream of progress, not as a status: it must not be overlooked."""
    profile = workspace.profile(demo_image)
    with spare_engine(disk="220m") as address:
        env = {"DOCKER_HOST": address}
        done = workspace.rocmrun("launch", profile, "--no-probe", "--", "echo", "ran", env=env)
        client = docker.DockerClient(base_url=address)
        left = (client.api.containers(all=True), client.api.images())
        client.close()

    assert (done.returncode, done.stdout) == (125, "")
    assert "error[out-of-disk]: the engine's disk is full" in done.stderr
    assert "hint: free some space" in done.stderr
    assert left == ([], [])


def test_usage_mistakes_of_the_command_line(jobs: Jobs) -> None:
    """Told as every other failure, with the code that says that nothing ran."""
    unknown = jobs.rocmrun("launch", jobs.tiny, "--no-such-option")
    missing = jobs.rocmrun("launch")

    assert (unknown.returncode, missing.returncode) == (125, 125)
    assert "error[usage]: no such option" in unknown.stderr
    assert "error[usage]: missing argument 'PROFILE'" in missing.stderr


def test_a_signal_before_anything_is_read(jobs: Jobs) -> None:
    """However early: no traceback. Python itself is still starting in the first of these."""
    for pause in (0.02, 0.1, 0.2, 0.3):
        process = jobs.rocmrun.start("launch", jobs.tiny, "--no-probe", "--", "true")
        with process:
            try:
                process.wait(timeout=pause)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
        assert process.returncode in {0, 143, -signal.SIGTERM}
        assert b"Traceback" not in said
