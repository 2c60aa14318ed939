"""Finding and reading profile files."""

import os
from pathlib import Path

import pytest

from rocmrun.core.profile.merge import ProfileFile
from rocmrun.errors import ProfileInvalid, ProfileNotFound
from rocmrun.system.profile_search import (
    ProfileSearch,
    default_search,
    read_profile,
    shipped_directory,
)


@pytest.fixture
def search(tmp_path: Path) -> ProfileSearch:
    """A whole search path below *tmp_path*, but for the shipped profiles, which are the real ones."""
    for name in ("extra", "work/profiles", "config/rocmrun/profiles", "etc"):
        (tmp_path / name).mkdir(parents=True)
    return default_search(
        environ={"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": "/home/me"},
        working_directory=tmp_path / "work",
        profile_directories=(Path("../extra"),),
        system_directory=tmp_path / "etc",
    )


def write(directory: Path, name: str, text: str = "") -> Path:
    path = directory / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_first_directory_wins(search: ProfileSearch, tmp_path: Path) -> None:
    expected = [
        ("etc", "system"),
        ("config/rocmrun/profiles", "user"),
        ("work/profiles", "project"),
        ("extra", "--profile-dir"),
    ]
    for name, origin in expected:
        write(tmp_path / name, "mine")

        found = search.find("mine")

        assert origin == found.origin
        assert Path(found.path).samefile(tmp_path / name / "mine.toml")


def test_a_shipped_profile_is_found_last(search: ProfileSearch, tmp_path: Path) -> None:
    assert search.find("base").origin == "shipped"
    assert search.find("base").shadows is None

    write(tmp_path / "etc", "base")

    assert search.find("base").origin == "system"
    assert search.find("base").shadows == str(shipped_directory() / "base.toml")


def test_the_shipped_directory_does_not_hide_itself() -> None:
    """In a checkout ./profiles are the shipped ones."""
    search = default_search(environ={}, working_directory=shipped_directory().parent)

    found = search.find("base")

    assert (found.origin, found.shadows) == ("project", None)


def test_all_lists_each_name_once(search: ProfileSearch, tmp_path: Path) -> None:
    for directory in ("extra", "etc"):
        write(tmp_path / directory, "mine")
    (tmp_path / "extra" / "notes.txt").write_text("no profile", encoding="utf-8")
    (tmp_path / "extra" / "folder.toml").mkdir()

    found = {file.name: file.origin for file in search.all()}

    assert found["mine"] == "--profile-dir"
    assert found["base"] == "shipped"
    assert {"notes", "folder"}.isdisjoint(found)
    assert sorted(found) == [file.name for file in search.all()]


def test_not_found_names_the_closest_and_where_it_looked(search: ProfileSearch) -> None:
    with pytest.raises(ProfileNotFound) as caught:
        search.find("prod-inferense")

    assert (
        caught.value.message
        == 'there is no profile "prod-inferense"; did you mean "prod-inference"?'
    )
    assert len(caught.value.details) == 5
    assert caught.value.details[-1] == f"looked in {shipped_directory()}"


@pytest.mark.parametrize("name", ["", "..", "a b", "-x", "\0"])
def test_what_is_no_name_is_not_found(search: ProfileSearch, name: str) -> None:
    with pytest.raises(ProfileNotFound):
        search.find(name)


def test_a_path_is_taken_as_it_is(search: ProfileSearch, tmp_path: Path) -> None:
    path = write(tmp_path / "work", "serve")

    for name in ("./serve.toml", "serve.toml", str(path)):
        found = search.find(name)

        assert (found.name, found.origin) == ("serve", "file")
        assert Path(found.path).samefile(path)


def test_a_path_that_leads_nowhere(search: ProfileSearch, tmp_path: Path) -> None:
    (tmp_path / "work" / "loop.toml").symlink_to("loop.toml")

    with pytest.raises(ProfileNotFound, match=r"no profile file .*/nope\.toml"):
        search.find("./nope.toml")
    with pytest.raises(ProfileNotFound):
        search.find("work/serve.toml/x")
    with pytest.raises(ProfileInvalid, match="Too many levels of symbolic links"):
        search.find("loop.toml")


def test_a_file_name_must_be_a_profile_name(search: ProfileSearch, tmp_path: Path) -> None:
    """The name goes into labels and directory names."""
    write(tmp_path / "work", "my profile")

    with pytest.raises(ProfileInvalid, match="no name for a profile"):
        search.find("./my profile.toml")
    with pytest.raises(ProfileInvalid, match="no name for a profile"):
        search.find("profiles/")


def test_the_user_directory_follows_the_xdg_rules(tmp_path: Path) -> None:
    def user_directory(**environ: str) -> list[str]:
        search = default_search(environ=environ, working_directory=tmp_path)
        return [str(item.path) for item in search.directories if item.origin == "user"]

    assert user_directory(XDG_CONFIG_HOME="/c", HOME="/h") == ["/c/rocmrun/profiles"]
    assert user_directory(HOME="/h") == ["/h/.config/rocmrun/profiles"]
    assert user_directory(XDG_CONFIG_HOME="relative", HOME="/h") == ["/h/.config/rocmrun/profiles"]
    assert user_directory() == []


def test_a_pipe_is_no_profile_and_nobody_waits_for_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    os.mkfifo(path)

    with pytest.raises(ProfileInvalid, match="cannot be read: not a regular file"):
        read_profile(ProfileFile(name="x", path=str(path), origin="file"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a = \n", "is not TOML: Invalid value (at line 1, column 5)"),
        (b"a = 1\na = 2\n", "is not TOML: Cannot overwrite a value (at line 2, column 6)"),
        (b"a = '\xff'\n", "is not TOML: byte 5 is not UTF-8"),
        (b"a = " + b"9" * 5000, "has an integer of more than 64 bits"),
        (b"a = [0x" + b"f" * 5000 + b"]", "has an integer of more than 64 bits"),
        (b"a" + b".a" * 5000 + b" = 1", "is nested too deeply"),
        (b"a = " + b"[" * 20_000, "is nested too deeply"),
    ],
)
def test_what_is_not_toml(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(content)

    with pytest.raises(ProfileInvalid) as caught:
        read_profile(ProfileFile(name="x", path=str(path), origin="file"))

    assert caught.value.message == f"profile {path} {says}"


def test_what_cannot_be_read(tmp_path: Path) -> None:
    directory = tmp_path / "x.toml"
    directory.mkdir()

    with pytest.raises(ProfileInvalid, match="cannot be read: Is a directory"):
        read_profile(ProfileFile(name="x", path=str(directory), origin="file"))


def test_a_directory_that_cannot_be_looked_into_offers_nothing(tmp_path: Path) -> None:
    """Here a name that no file system takes; a home that may not be searched fails the same way."""
    search = default_search(
        environ={}, working_directory=tmp_path, profile_directories=(Path("x" * 300),)
    )

    assert search.find("base").origin == "shipped"
    assert "base" in [file.name for file in search.all()]
