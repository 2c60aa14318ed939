"""rocmrun plan, as a person and as a script see it."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from rocmrun.__main__ import run
from rocmrun.core.host_json import host_to_json
from tests.builders import host

JOB = """
accelerator = "rocm"
[image]
ref = "example.com/demo:1"
[[privileges]]
grant = "cap:SYS_PTRACE"
reason = "the debugger attaches"
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a directory with a profile and a saved host with two GPUs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "FORCE_COLOR", "ROCMRUN_LOCKFILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/job.toml").write_text(JOB)
    (tmp_path / "host.json").write_text(json.dumps(host_to_json(host(2))))
    return tmp_path


def planned(*options: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return what `rocmrun plan --json` prints."""
    assert run(["plan", "job", "--offline", "--host", "host.json", "--json", *options]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    body: dict[str, Any] = json.loads(captured.out)
    return body


def test_a_plan_as_json_holds_the_plan_its_hash_and_where_it_came_from(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = planned(capsys=capsys)

    assert (body["v"], body["ok"], body["engine"]) == (1, True, None)
    assert body["sources"] == {"profile": str(elsewhere / "profiles/job.toml"), "lock": None}
    assert [gpu["render_minor"] for gpu in body["plan"]["gpus"]] == [128, 129]
    assert len(body["hash"]) == 64
    assert shlex.split(body["docker_run"])[:2] == ["docker", "run"]
    assert body["create_request"]["HostConfig"]["CapAdd"] == ["SYS_PTRACE"]


def test_the_same_plan_is_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(capsys=capsys) == planned(capsys=capsys)


def test_options_change_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    body = planned("--gpu", "index:1", "-e", "A=1", "--", "python3", "x.py", capsys=capsys)

    assert [gpu["index"] for gpu in body["plan"]["gpus"]] == [1]
    assert ["A", "1"] in body["plan"]["env"]
    assert body["plan"]["command"] == ["python3", "x.py"]


def test_a_plan_for_people_names_every_right_with_its_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "job", "--offline", "--host", "host.json"]) == 0

    text = capsys.readouterr().out
    for words in (
        "not locked: launch refuses it until `rocmrun lock` pins it",
        "device:/dev/kfd:rw",
        "the debugger attaches",
        "[profile job: privileges[0]]",
        "0000:63:00.0",
        "Left out of AMD's usual docker line:",
        "device /dev/dri (the whole directory)",
        "The same container without rocmrun:",
        "docker run --rm",
    ):
        assert words in text


def test_nothing_is_made(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(elsewhere.rglob("*"))

    planned(capsys=capsys)

    assert sorted(elsewhere.rglob("*")) == before


def test_a_source_is_not_looked_for_on_behalf_of_another_machine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is missing here may well be there."""
    assert (
        run(["plan", "job", "--offline", "--host", "host.json", "-v", "/none/x:/x", "--json"]) == 0
    )

    mounts = json.loads(capsys.readouterr().out)["plan"]["mounts"]
    assert "/none/x" in [mount["source"] for mount in mounts]


@pytest.mark.parametrize(
    ("options", "slug", "code"),
    [
        (["--host", "none.json"], "input", 2),
        (["--gpu", "index:7", "--host", "host.json"], "gpu-selection", 8),
        (["-v", "/:/host", "--host", "host.json"], "policy", 10),
        (["-p", "8000:8000", "--host", "host.json"], "profile-invalid", 2),
    ],
)
def test_a_failure_has_its_own_code(
    options: list[str], slug: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "job", "--offline", *options, "--json"]) == code

    captured = capsys.readouterr()
    assert captured.err == ""
    error = json.loads(captured.out)["error"]
    assert (error["slug"], error["code"]) == (slug, code)
