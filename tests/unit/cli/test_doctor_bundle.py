"""`rocmrun doctor --bundle`, `--from` and `--host` as their users run them."""

import json
from pathlib import Path
from typing import Any

import pytest

from rocmrun.__main__ import run
from tests.builders import host as a_host
from tests.hosts import FakeGpu, FakeNode, build_host

DENIED = 'Unable to open /dev/kfd read-write: Permission denied\nnodes: {"/dev/kfd": "root:992 0660"}\ngroups: 1000 44\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text(f"open('/home/tsuzuki/x')\n{DENIED}", encoding="utf-8")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return build_host(tmp_path / "host", [FakeGpu()], kfd=FakeNode(mode=0o600))


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def test_a_bundle_is_judged_elsewhere_as_here(
    log: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Same exit code, checks and kinds; host and log are both in it, and what was masked is said."""
    path = tmp_path / "b.json"
    made = run(["doctor", "--host-root", str(root), "--log", str(log), "--bundle", str(path), "--json"])  # fmt: skip
    here = answer(capsys)
    read = run(["doctor", "--from", str(path), "--json"])
    there = answer(capsys)

    assert (made, read) == (1, 1)
    assert here["checks"] == there["checks"]
    assert [f["kind"] for f in here["findings"]] == [f["kind"] for f in there["findings"]]
    assert here["bundle"]["path"] == str(path)
    assert here["bundle"]["masked"]["user"] > 0
    assert there["from"]["found_then"] == there["from"]["found_now"]
    assert "tsuzuki" not in path.read_text()


def test_people_read_where_a_bundle_is_from(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Version, date, kind of host, and that this host has no part in it."""
    path = tmp_path / "b.json"
    run(["doctor", "--host-root", str(root), "--bundle", str(path)])
    said = capsys.readouterr().err
    run(["doctor", "--from", str(path)])
    text = capsys.readouterr().out

    assert "read it before you send it" in said
    assert "From a bundle of rocmrun 0.1.0, 20" in text
    assert "Ubuntu 24.04.3 LTS, x86_64, kernel 6.8.0-60-generic, 1 GPU (gfx942)" in text
    assert "Nothing of this host was looked at; the commands below are for that one." in text
    assert "host-udev-perms" in text


def test_what_another_version_found_is_said(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where this one finds something else."""
    path = tmp_path / "b.json"
    run(["doctor", "--host-root", str(root), "--bundle", str(path)])
    value = json.loads(path.read_text())
    value["found"]["findings"][0]["kind"] = "evil\x1b[2Jkind"
    value["made"]["host"] = "a\x1b]0;x\x07host"
    value["looked"]["refusal"] = ["policy", "m\x1b[1mm", "hint\x1b[2J"]
    value["host"]["gpus"][0] |= {"link_width": 4, "link_width_max": 16, "pci_bdf": "\x1b[31m0000"}
    path.write_text(json.dumps(value))
    capsys.readouterr()
    run(["doctor", "--from", str(path)])

    text = capsys.readouterr().out
    assert "That version found: evilkind." in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "more",
    [["demo"], ["--log", "x"], ["--probe-report", "x"], ["--host", "x"], ["--host-root", "/"], ["--bundle", "x"],
     ["--force"], ["--set", "a=b"], ["--lockfile", "x"], ["--profile-dir", "/"], ["--container", "x"]],
    ids=lambda more: more[0],
)  # fmt: skip
def test_a_bundle_is_judged_by_itself(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever else is asked for is refused, by its name."""
    assert run(["doctor", "--from", str(tmp_path / "b.json"), *more]) == 2
    name = more[0] if more[0].startswith("-") else "PROFILE"
    assert f"--from excludes {name}" in capsys.readouterr().err


def test_variables_of_the_environment_do_not_count_as_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They stand there for other commands."""
    monkeypatch.setenv("ROCMRUN_PROFILE_DIR", str(tmp_path))

    assert run(["doctor", "--from", str(tmp_path / "b.json")]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--force"], "--force is for --bundle"),
        (["--container", "x", "--bundle", "b"], "--container goes with neither"),
        (["--bundle", ".", "--force"], "is a directory"),
    ],
    ids=["force alone", "with a container", "a directory"],
)
def test_combinations_that_make_no_sense_are_refused(
    more: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Before anything is looked at."""
    monkeypatch.chdir(tmp_path)

    assert run(["doctor", *more]) == 2
    assert says in capsys.readouterr().err


def test_what_is_there_stays(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until it is to be replaced."""
    path = tmp_path / "b.json"
    path.write_text("mine")
    line = ["doctor", "--host-root", str(root), "--bundle", str(path)]

    assert run(line) == 2
    assert "bundle-unwritable" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert run([*line, "--force"]) == 1
    assert json.loads(path.read_text())["version"] == 1


def test_damage_is_told_as_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object, with the slug."""
    path = tmp_path / "b.json"
    path.write_text("{}")

    assert run(["doctor", "--from", str(path), "--json"]) == 2
    assert answer(capsys)["error"]["slug"] == "bundle-invalid"


def test_a_saved_host_is_looked_at_in_place_of_this_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `plan --host` does; the engine here is another machine's and is not asked."""
    from rocmrun.core.host_json import host_to_json

    path = tmp_path / "host.json"
    path.write_text(json.dumps({"v": 1, "ok": True, **host_to_json(a_host(2))}))
    run(["doctor", "--host", str(path), "--json"])

    checks = {check["id"]: check for check in answer(capsys)["checks"]}
    assert "2 GPU nodes" in checks["driver"]["evidence"]
    assert (checks["engine"]["result"], checks["engine"]["evidence"]) == ("unknown", "not asked")
    assert checks["engine"]["hint"] == ""
