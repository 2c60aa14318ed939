"""The `lock` command: what it refuses, what it imports, what its JSON holds."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rocmrun.cli.lock import command
from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.errors import LockMissing, LockStale, UsageError

REF = "docker.io/team/x:1"
A = f"sha256:{'a' * 64}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one profile, and nothing of the caller's."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "serve.toml").write_text('[image]\nref = "team/x:1"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def lock(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, standalone_mode=False)


def write_lock(project: Path, platform: str = "linux/amd64") -> None:
    pin = PinnedImage(ref=REF, digest=A, platform=platform)
    (project / "rocmrun.lock").write_text(Lock.of([pin]).text())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--check", "--upgrade"], "does not go with --upgrade"),
        (["--check", "--upgrade-image", "x"], "does not go with --upgrade-image"),
        (["--check", "--dry-run"], "does not go with --dry-run"),
        (["--check", "--facts"], "does not go with --facts"),
        (["--offline"], "--offline goes with --check"),
    ],
)
def test_contradictions_are_refused(project: Path, arguments: list[str], says: str) -> None:
    """With the options as they were typed."""
    result = lock(*arguments)

    assert isinstance(result.exception, UsageError)
    assert says in result.exception.message


@pytest.mark.parametrize("platform", ["amd64", "linux/", "Linux/AMD64", "a/b/c/d"])
def test_a_platform_has_a_form(project: Path, platform: str) -> None:
    """What is none is refused before anything is read."""
    assert "OS/ARCHITECTURE" in str(lock("--platform", platform).exception)


def test_check_offline_says_what_is_wrong(project: Path) -> None:
    """No lock, a stale one, a good one."""
    assert isinstance(lock("--check", "--offline").exception, LockMissing)
    write_lock(project, "linux/arm64")
    assert isinstance(lock("--check", "--offline").exception, LockStale)
    write_lock(project)
    result = lock("--check", "--offline")
    assert (result.return_value, result.exception) == (0, None)
    assert result.stdout == f"{project}/rocmrun.lock: 1 image locked as the profiles ask\n"


def test_the_json_of_a_check_holds_the_error_and_every_finding(project: Path) -> None:
    """One object, and the exit code besides."""
    result = lock("--check", "--offline", "--json")

    report = json.loads(result.stdout)
    assert result.return_value == 3
    assert (report["v"], report["ok"], report["error"]["slug"]) == (1, False, "lock-missing")
    assert [finding["code"] for finding in report["findings"]] == [3]


def test_the_json_of_a_lock_holds_every_image(project: Path) -> None:
    """Full digests, before and after."""
    write_lock(project)

    report = json.loads(lock("--json").stdout)

    (file,) = report["locks"]
    assert (report["ok"], report["asked"], file["written"]) == (True, 0, False)
    assert (file["images"][0]["change"], file["images"][0]["after"]["digest"]) == ("kept", A)


def test_print_is_the_name_alone(project: Path) -> None:
    """For $(…) in a shell."""
    write_lock(project)

    assert f"docker.io/team/x@{A}\n" == lock("--print", "serve").stdout
    assert f"docker.io/team/x@{A}\n" == lock("--print", "team/x:1").stdout
    assert json.loads(lock("--print", "serve", "--json").stdout)["name"] == f"docker.io/team/x@{A}"
    assert isinstance(lock("--print", "team/y:1").exception, LockMissing)


def imported(project: Path, *arguments: str) -> set[str]:
    """Return the top-level modules that the command imports in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "rocmrun", "lock", *arguments],
        cwd=project,
        env={**os.environ, "HOME": str(project)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return {name.split(".")[0] for name in re.findall(r"\|\s+([\w.]+)$", done.stderr, re.MULTILINE)}


@pytest.mark.parametrize("arguments", [["--check", "--offline"], [], ["--print", "serve"]])
def test_who_asks_nobody_imports_no_client(project: Path, arguments: list[str]) -> None:
    """Neither an offline check nor an unchanged lock knows of docker or HTTP."""
    write_lock(project)

    modules = imported(project, *arguments)

    assert "pydantic" in modules
    assert not modules & {"docker", "requests", "urllib3", "rich"}
