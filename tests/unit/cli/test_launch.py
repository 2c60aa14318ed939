"""rocmrun launch: what the options become, and failures before an engine is there."""

import gc
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocmrun.__main__ import run
from rocmrun.cli.asking import make_ask
from rocmrun.console.output import settings

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

JOB = 'accelerator = "cpu"\n[image]\nref = "example.com/demo:1"\n[gpus]\nselect = ["none"]\n'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stand in an empty directory with a profile, and no engine anywhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CI", "ROCMRUN_LOCKFILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/job.toml").write_text(JOB)
    yield tmp_path
    settings.quiet = settings.verbose = False
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            # It imports docker, or waits for the engine: the next test would meet it half-way.
            thread.join(10)
    # The SDK leaves the socket that it could not connect to the collector.
    gc.collect()


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["job"], "engine-unreachable"),
        (["job", "--dry-run"], "engine-unreachable"),
        (["nosuch"], "profile-not-found"),
        (["job", "--detach", "--tty"], "usage"),
        (["job", "--detach", "--interactive"], "usage"),
        (["job", "-v", "nothing"], "usage"),
        (["job", "-e", "=x"], "usage"),
        (["job", "--memory", "much"], "profile-invalid"),
        (["job", "--network", "host"], "profile-invalid"),
        (["job", "--report", "no/such/dir/r.json"], "report-unwritable"),
        (["job", "--set", "nosuch=1"], "usage"),
    ],
)
def test_what_goes_wrong_before_the_workload_is_125(
    arguments: list[str], slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The class is in the message; stdout belongs to the workload."""
    assert run(["launch", *arguments]) == 125

    captured = capsys.readouterr()
    assert f"error[{slug}]: " in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    "arguments",
    [[], ["job", "--nosuch"], ["job", "--probe-level", "deep"], ["job", "--wait", "-1"]],
)
def test_wrong_options_are_125_too(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["-q", "--color", "never", "launch", *arguments]) == 125
    assert capsys.readouterr().err.startswith("error[usage]: ")


def test_the_report_names_the_class_of_a_failure(elsewhere: Path) -> None:
    """Whose code the exit code hides."""
    assert run(["launch", "job", "--report", "r.json"]) == 125

    report = json.loads((elsewhere / "r.json").read_text())
    assert (report["error"]["slug"], report["error"]["code"]) == ("engine-unreachable", 6)


def test_no_engine_says_how_to_get_one(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["launch", "job"])

    error = capsys.readouterr().err
    assert f"no container engine answers at unix://{elsewhere}/none.sock" in error
    assert "hint: start it" in error


def test_options_become_a_request(elsewhere: Path) -> None:
    shared = {
        "profile_dirs": (), "settings": {"a": "1"}, "lockfile": Path("x.lock"),
        "host_root": Path("/"), "narrow": ("index:0",), "env": ("A=1",), "volumes": ("/a:/b",),
        "ports": ("127.0.0.1:1:1",), "network": "bridge", "entrypoint": "sh", "shm_size": "1g",
        "memory": "2g", "interactive": True, "tty": True, "debug": True,
    }  # fmt: skip

    ask = make_ask("job", ("true", "--json"), shared, unlocked=True, pull=False)

    assert (ask.profile, ask.settings, ask.lockfile) == ("job", {"a": "1"}, Path("x.lock"))
    assert (ask.narrow, ask.interactive, ask.tty, ask.debug) == (("index:0",), True, True, True)
    assert (ask.unlocked, ask.pull) == (True, False)
    options = ask.options
    assert (options.env, options.volumes, options.ports) == (
        ("A=1",),
        ("/a:/b",),
        ("127.0.0.1:1:1",),
    )
    assert (options.network, options.entrypoint, options.shm_size, options.memory) == (
        "bridge", "sh", "1g", "2g",
    )  # fmt: skip
    assert options.command == ("true", "--json")
    assert ask.search.working_directory == elsewhere


def test_words_after_the_dashes_are_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Also those that look like options of ours."""
    assert run(["launch", "job", "--", "python3", "--detach", "--tty", "--json"]) == 125
    assert "error[engine-unreachable]" in capsys.readouterr().err


def test_an_option_may_come_from_the_environment(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCMRUN_LAUNCH_REPORT", "from-environment.json")

    run(["launch", "job"])

    assert (elsewhere / "from-environment.json").exists()
