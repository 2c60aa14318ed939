"""Which images a `rocmrun lock` is about, read from real profile files."""

from pathlib import Path

import pytest

from rocmrun.core.signature import SignatureRule
from rocmrun.errors import (
    ParameterMissing,
    ProfileInvalid,
    ProfileNotFound,
    ReferenceInvalid,
    UsageError,
)
from rocmrun.system.profile_search import ProfileDirectory, ProfileSearch
from rocmrun.usecases.lock_selection import Selection, select


@pytest.fixture
def search(tmp_path: Path) -> ProfileSearch:
    origins = ("project", "user", "shipped")
    for origin in origins:
        (tmp_path / origin / "profiles").mkdir(parents=True)
    return ProfileSearch(
        directories=tuple(
            ProfileDirectory(path=tmp_path / origin / "profiles", origin=origin)
            for origin in origins
        ),
        working_directory=tmp_path,
        home=str(tmp_path),
    )


def write(search: ProfileSearch, place: str, text: str) -> None:
    (search.working_directory / f"{place}.toml").write_text(text)


def refs(selection: Selection) -> dict[str, str]:
    return {reference.profile: reference.ref for reference in selection.references}


def chosen(search: ProfileSearch, *names: str, **settings: str) -> Selection:
    return select(names, search=search, settings=settings)


def test_named_profiles_and_nothing_else(search: ProfileSearch) -> None:
    """Wherever they are; then nothing may be dropped."""
    write(search, "project/profiles/a", '[image]\nref = "team/a:1"')
    write(
        search,
        "shipped/profiles/b",
        '[image]\nref = "team/b:1"\nplatform = "linux/arm64"\nmoving_tags = "refuse"',
    )

    selection = chosen(search, "b")

    (reference,) = selection.references
    assert (reference.profile, reference.ref) == ("b", "docker.io/team/b:1")
    assert (reference.platform, reference.moving_tags) == ("linux/arm64", "refuse")
    assert (reference.origin, reference.path.name) == ("shipped", "b.toml")
    assert selection.used is None


def test_without_names_the_projects_own(search: ProfileSearch) -> None:
    """The shipped and the user's are used, so their pins stay, but are not locked here."""
    write(search, "project/profiles/a", '[image]\nref = "team/a:1"')
    write(search, "project/profiles/base", 'description = "no image"')
    write(search, "user/profiles/u", '[image]\nref = "team/u:1"')
    write(search, "shipped/profiles/s", '[image]\nref = "team/s:1"')

    selection = chosen(search)

    assert refs(selection) == {"a": "docker.io/team/a:1"}
    assert frozenset(f"docker.io/team/{name}:1" for name in "asu") == selection.used


def test_an_inherited_image_belongs_to_the_profile_that_inherits(search: ProfileSearch) -> None:
    """Its lock is the one of its own directory."""
    write(search, "shipped/profiles/s", '[image]\nref = "team/s:1"')
    write(search, "project/profiles/a", 'extends = "s"')

    (reference,) = chosen(search).references

    assert (
        reference.profile,
        reference.ref,
        reference.origin,
    ) == ("a", "docker.io/team/s:1", "project")


def test_an_image_to_probe_with_is_locked_too(search: ProfileSearch) -> None:
    """What is started is locked, whatever for."""
    write(search, "project/profiles/a", '[image]\nref = "a:1"\n[probe]\nimage = "probe:1"')

    assert [reference.ref for reference in chosen(search, "a").references] == [
        "docker.io/library/a:1",
        "docker.io/library/probe:1",
    ]


def test_the_platform_of_the_command_line_counts(search: ProfileSearch) -> None:
    """--platform stands in for every profile's."""
    write(search, "project/profiles/a", '[image]\nref = "a:1"')

    selection = select(("a",), search=search, settings={}, platform="linux/arm64")

    assert selection.references[0].platform == "linux/arm64"


PARAMETER = '[parameters]\nimage = { help = "which" }\nother = { help = "x" }\n'


def test_parameters_in_the_reference_are_needed_and_others_are_not(search: ProfileSearch) -> None:
    """A missing model directory keeps nobody from locking."""
    write(
        search,
        "project/profiles/a",
        PARAMETER + '[image]\nref = "${image}:1"\n[container]\nworkdir = "/${other}"',
    )

    assert refs(chosen(search, "a", image="x")) == {"a": "docker.io/library/x:1"}
    with pytest.raises(ParameterMissing) as caught:
        chosen(search, "a")
    assert caught.value.hint == "--set image=…"


def test_an_open_reference_keeps_a_project_from_dropping_anything(search: ProfileSearch) -> None:
    """Nobody knows which pins it uses; the rest is locked all the same, and it is said."""
    write(search, "project/profiles/a", PARAMETER + '[image]\nref = "${image}:1"')
    write(search, "project/profiles/b", '[image]\nref = "b:1"')

    selection = chosen(search)

    assert (refs(selection), selection.used) == ({"b": "docker.io/library/b:1"}, None)
    assert "rocmrun lock a --set image=…" in selection.notes[0]


def test_an_open_reference_of_a_shipped_profile_keeps_nothing(search: ProfileSearch) -> None:
    """It would fit any image, and no project could ever drop one."""
    write(search, "shipped/profiles/s", PARAMETER + '[image]\nref = "${image}"')
    write(search, "project/profiles/b", '[image]\nref = "b:1"')

    selection = chosen(search)

    assert selection.used == frozenset({"docker.io/library/b:1"})
    assert selection.notes == ()


def test_a_broken_profile_elsewhere_only_keeps_from_dropping(search: ProfileSearch) -> None:
    """The user's mistake is not the project's."""
    write(search, "project/profiles/b", '[image]\nref = "b:1"')
    write(search, "user/profiles/u", "nonsense")

    selection = chosen(search)

    assert (refs(selection), selection.used) == ({"b": "docker.io/library/b:1"}, None)


def test_broken_profiles_of_the_project_are_all_named(search: ProfileSearch) -> None:
    """At once."""
    write(search, "project/profiles/a", "nonsense")
    write(search, "project/profiles/b", "unknown = 1")

    with pytest.raises(ProfileInvalid) as caught:
        chosen(search)

    text = "\n".join(caught.value.details)
    assert "a.toml" in text
    assert "unknown" in text


def test_a_reference_that_is_none_names_its_profile(search: ProfileSearch) -> None:
    """With the file, since the reference alone may come from a parent."""
    write(
        search,
        "project/profiles/a",
        '[image]\nref = "Team/${x}"\n[parameters]\nx = { default = "y", help = "z" }',
    )

    with pytest.raises((ReferenceInvalid, ProfileInvalid)) as caught:
        chosen(search, "a", x="y z")
    assert "a.toml" in "\n".join((caught.value.message, *caught.value.details))


def test_nothing_to_lock_is_said(search: ProfileSearch) -> None:
    """No project, no image, no such profile."""
    write(search, "shipped/profiles/base", "")

    with pytest.raises(UsageError, match="there are no profiles in"):
        chosen(search)
    with pytest.raises(ProfileInvalid, match="names no image"):
        chosen(search, "base")
    with pytest.raises(ProfileNotFound):
        chosen(search, "absent")


def test_whose_signature_a_profile_asks_for(search: ProfileSearch) -> None:
    """Of its own image, not of the one that it is probed with; the key starts at the file that names it."""
    text = '[image]\nref = "a:1"\n[image.verify]\nkey = "a.pub"\n[probe]\nimage = "b:1"'
    write(search, "shipped/profiles/a", text)
    write(search, "project/profiles/b", 'extends = "a"\n[image]\nref = "c:1"')

    own, probed_with = chosen(search, "b").references

    shipped = search.working_directory / "shipped/profiles"
    assert own.rule == SignatureRule(key=str(shipped / "a.pub"))
    assert (own.wanted.rules, probed_with.rule) == ((own.rule,), None)


def test_a_signer_may_be_a_parameter(search: ProfileSearch) -> None:
    parameters = '[parameters]\nkey = { help = "h" }\nother = { help = "h" }\n'
    text = '[image]\nref = "a:1"\nverify = { key = "${key}" }\n[container]\nworkdir = "${other}"\n'
    write(search, "project/profiles/a", parameters + text)

    (found,) = chosen(search, "a", key="own.pub").references
    with pytest.raises(ParameterMissing, match="whose signature profile a asks for") as caught:
        chosen(search, "a")

    assert found.rule == SignatureRule(key=str(search.working_directory / "own.pub"))
    assert caught.value.hint == "--set key=…"
