"""A first profile: written once, checked as every profile is, and never over another."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from rocmrun.errors import ProfileInvalid, ProfileNotFound, UsageError
from rocmrun.system.profile_search import ProfileSearch, default_search
from rocmrun.usecases.new_profile import NewProfileRequest, new_profile, open_parameters
from rocmrun.usecases.profiles import check_profiles, load_profile

LINE = "docker run -d --gpus all --privileged -e HF_TOKEN=hf_secret -v ./m:/m -p 8000:8000 x/y:1.0 serve $ROOT"


@pytest.fixture
def search(tmp_path: Path) -> ProfileSearch:
    """The search path of a folder without profiles."""
    return default_search(environ={}, working_directory=tmp_path, system_directory=tmp_path / "no")


def asked(search: ProfileSearch, **values: Any) -> NewProfileRequest:
    """Return a request for profile "mine"."""
    return NewProfileRequest(**{"name": "mine", "search": search, "settings": {}, **values})


def test_a_profile_on_a_shipped_one_is_ready(search: ProfileSearch) -> None:
    """Its parameters have the values given; what has none is said."""
    (search.working_directory / "models").mkdir()

    made = new_profile(asked(search, parent="vllm-serve", model="models", port=9000))

    loaded = load_profile("mine", search=search)
    assert made.path == str(search.working_directory / "profiles/mine.toml")
    assert dict(made.missing) == {}
    assert str(search.working_directory / "models") == loaded.profile.mounts[0].source
    assert [str(port) for port in loaded.profile.container.ports] == ["127.0.0.1:9000:8000"]


def test_a_parameter_without_a_value_stays_one(search: ProfileSearch) -> None:
    """Nobody was asked, so nothing was made up."""
    made = new_profile(asked(search, parent="vllm-serve"))

    assert list(made.missing) == ["model_dir"]
    assert [file.name for file in check_profiles(["mine"], search)] == ["mine"]
    assert list(open_parameters(asked(search, parent="vllm-serve", force=True))) == ["model_dir"]


@pytest.mark.parametrize(
    "name", ["base", "prod-inference", "train-multi-gpu", "dev-shell", "vllm-serve", "demo"]
)
def test_every_shipped_profile_can_be_built_on(search: ProfileSearch, name: str) -> None:
    """The text is a profile, whatever the parent's parameters are."""
    new_profile(asked(search, parent=name))

    assert [file.name for file in check_profiles(["mine"], search)] == ["mine"]


def test_a_profile_from_a_line_names_what_it_lacks(search: ProfileSearch) -> None:
    """In its comments and to whoever asked; the value of a secret is in neither."""
    made = new_profile(asked(search, line=LINE, settings={"root": "/srv"}))

    text = Path(made.path or "").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    assert "# - --privileged: never" in text
    assert [item.what for item in made.left_out] == ["--privileged"]
    assert "hf_secret" not in text + str(made.left_out) + str(made.changed)
    assert {"default": "/srv"}.items() <= data["parameters"]["root"].items()
    assert list(load_profile("mine", search=search).profile.container.command or ()) == ["serve", "/srv"]  # fmt: skip


def test_nothing_is_written_over(search: ProfileSearch) -> None:
    """Unless it is asked for."""
    first = Path(new_profile(asked(search, parent="demo")).path or "")
    first.write_text("# mine\n", encoding="utf-8")

    with pytest.raises(UsageError, match="there already"):
        new_profile(asked(search, parent="demo"))
    assert first.read_text(encoding="utf-8") == "# mine\n"

    new_profile(asked(search, parent="demo", force=True))
    assert 'extends = "demo"' in first.read_text(encoding="utf-8")


def test_stdout_writes_no_file(search: ProfileSearch) -> None:
    """Also beside a file of the same name."""
    made = new_profile(asked(search, parent="demo", output="-"))

    assert made.path is None
    assert not (search.working_directory / "profiles").exists()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"name": "a/b", "parent": "demo"}, "no name for a profile"),
        ({"name": "demo", "parent": "demo"}, "extend itself"),
        ({"parent": "demo", "model": "/m"}, "does not have"),
        ({"parent": "demo", "port": 1}, "does not have"),
        ({"parent": "vllm-serve", "settings": {"modle": "x"}}, "no parameter 'modle'"),
        ({"line": "docker ps"}, "cannot be read"),
        ({"line": "docker run -e Z=\udcff x:1"}, "no UTF-8"),
    ],
)
def test_what_does_not_fit_is_one_error(
    search: ProfileSearch, values: dict[str, Any], words: str
) -> None:
    """Before anything is written."""
    with pytest.raises(UsageError, match=words):
        new_profile(asked(search, **values))
    assert not (search.working_directory / "profiles").exists()


def test_a_value_that_makes_no_profile_is_refused(search: ProfileSearch) -> None:
    """With the key that it would break; nothing is written."""
    with pytest.raises(ProfileInvalid, match="nothing was written") as caught:
        new_profile(asked(search, parent="vllm-serve", settings={"port": "http"}))

    assert any("ports" in detail for detail in caught.value.details)
    assert not (search.working_directory / "profiles").exists()


def test_a_parent_must_exist(search: ProfileSearch) -> None:
    """The error is the one of every profile that is not found."""
    with pytest.raises(ProfileNotFound, match="nosuch"):
        new_profile(asked(search, parent="nosuch"))


def test_hiding_a_shipped_profile_is_said(search: ProfileSearch) -> None:
    """It may be meant."""
    assert new_profile(asked(search, name="demo", parent="base")).shadows
    assert not new_profile(asked(search, parent="base")).shadows
