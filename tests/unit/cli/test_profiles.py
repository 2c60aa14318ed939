"""rocmrun profiles, as a person and as a script see it."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rocmrun.__main__ import run

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty directory with an empty home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "ROCMRUN_PROFILE_DIR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write(directory: Path, name: str, text: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def json_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the one JSON object on stdout."""
    value = json.loads(capsys.readouterr().out)
    assert isinstance(value, dict)
    return value


def test_list_shows_names_and_origins(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(elsewhere / "profiles", "mine", 'description = "My\\nown"\naccelerator = "cpu"\n')

    assert run(["profiles", "list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "ACCELERATOR", "IMAGE", "FROM", "DESCRIPTION"]
    assert ["mine", "cpu", "no", "image", "project", "My", "own"] in [
        line.split() for line in lines
    ]
    assert len(lines) == 2 + len(list((ROOT / "profiles").glob("*.toml")))


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "list", "--json"]) == 0

    value = json_of(capsys)
    demo = next(profile for profile in value["profiles"] if profile["name"] == "demo")
    assert (value["v"], value["ok"]) == (1, True)
    assert (demo["image"], demo["accelerator"], demo["origin"], demo["shadows"]) == (
        "127.0.0.1:5055/rocmrun/demo:1",
        "cpu",
        "shipped",
        None,
    )


def test_a_shadowed_profile_is_said_aloud(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(elsewhere / "profiles", "base", "")

    for arguments in (["list"], ["check"], ["show", "demo"]):
        run(["profiles", *arguments])

        assert f"warning: profile base is {path}, not the shipped one" in capsys.readouterr().err


def test_a_profile_directory_comes_first(
    elsewhere: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(elsewhere / "profiles", "mine", 'description = "project"\n')
    write(elsewhere / "extra", "mine", 'description = "extra"\n')

    run(["profiles", "show", "mine", "--profile-dir", "extra", "--json"])
    assert json_of(capsys)["profile"]["description"] == "extra"

    monkeypatch.setenv("ROCMRUN_PROFILE_DIR", "extra")
    run(["profiles", "show", "mine", "--json"])
    assert json_of(capsys)["profile"]["description"] == "extra"


def test_show_prints_a_profile_with_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "show", "vllm-serve", "--set", "port=9000"]) == 0

    printed = capsys.readouterr()
    assert 'ports = ["127.0.0.1:9000:8000"]  # profile vllm-serve, --set port' in printed.out
    assert 'memory = "90%"  # profile base' in printed.out
    assert 'numa = "any"  # default' in printed.out
    assert tomllib.loads(printed.out)["mounts"] == [{"source": "${model_dir}", "target": "/model"}]
    assert "parameter model_dir is not set: directory with the weights" in printed.err


def test_show_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "show", "prod-inference", "--json"]) == 0

    value = json_of(capsys)
    assert [file["name"] for file in value["chain"]] == ["prod-inference", "base"]
    assert value["sources"]["support.policy"] == "profile prod-inference"
    assert value["profile"]["support"]["policy"] == "require"
    assert value["missing"] == {}


def test_an_unknown_setting_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "show", "vllm-serve", "--set", "modeldir=/x"]) == 2

    assert "error[usage]: profile vllm-serve has no parameter" in capsys.readouterr().err


def test_a_setting_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "show", "vllm-serve", "--set", "model_dir"]) == 2

    assert "'model_dir' is not NAME=VALUE" in capsys.readouterr().err


def test_check_says_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "check", "demo"]) == 0

    assert f"demo: ok ({ROOT / 'profiles' / 'demo.toml'})\n" == capsys.readouterr().out


def test_check_names_every_mistake(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(elsewhere, "bad", '[container]\npids = 0\nshm-size = "1g"\n')

    assert run(["profiles", "check", "./bad.toml"]) == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[:3] == [
        "error[profile-invalid]: profile bad has 2 mistakes",
        f"  {path}: container.pids: must be at least 1, and is 0",
        f'  {path}: container.shm-size: unknown key; did you mean "shm_size"?',
    ]


def test_check_as_json_says_why(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(elsewhere / "profiles", "bad", "[container]\npids = 0\n")

    assert run(["profiles", "check", "--json"]) == 2

    value = json_of(capsys)
    assert value["ok"] is False
    assert (value["error"]["slug"], value["error"]["code"]) == ("profile-invalid", 2)
    assert len(value["error"]["details"]) == 1


def test_a_wrong_name_gets_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "show", "demmo"]) == 2

    assert (
        'error[profile-not-found]: there is no profile "demmo"; did you mean "demo"?'
        in capsys.readouterr().err
    )


def test_schema_prints_the_shipped_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", "schema"]) == 0

    assert (ROOT / "schema" / "profile.schema.json").read_text(
        encoding="utf-8"
    ) == capsys.readouterr().out


def test_what_a_profile_says_cannot_drive_the_terminal(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(elsewhere / "profiles", "evil", 'description = "\\u001b[31mred\\u202e"\n')

    run(["profiles", "list"])
    run(["profiles", "show", "evil"])

    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\u202e" not in printed


@pytest.mark.parametrize("arguments", [[], ["list"], ["show"], ["check"], ["schema"]])
def test_every_command_has_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profiles", *arguments, "--help"]) == 0

    printed = capsys.readouterr().out
    assert not arguments or "Example" in printed
