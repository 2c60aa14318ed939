"""Which lock answers for a profile, and which one is written."""

from pathlib import Path

import pytest

from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.core.profile.image import Image
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.profile.merge import ProfileFile
from rocmrun.core.profile.model import Profile
from rocmrun.errors import LockMissing, LockStale, LockUnreadable
from rocmrun.usecases.locks import LockPlaces, find_pin, shipped_lock
from tests.registries import digest

REF = "docker.io/team/x:1"


def places(tmp_path: Path, lockfile: Path | None = None) -> LockPlaces:
    return LockPlaces(
        option=lockfile,
        project=tmp_path / "project" / "rocmrun.lock",
        user=tmp_path / "user" / "rocmrun.lock",
        system=tmp_path / "system" / "rocmrun.lock",
        shipped=tmp_path / "shipped" / "rocmrun.lock",
    )


def write(path: Path, letter: str, platform: str = "linux/amd64") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pin = PinnedImage(ref=REF, digest=digest(letter), platform=platform)
    path.write_text(Lock.of([pin]).text())


def loaded(tmp_path: Path, origin: str, directory: str = "project/profiles") -> LoadedProfile:
    file = ProfileFile(name="serve", path=str(tmp_path / directory / "serve.toml"), origin=origin)
    profile = Profile(image=Image(ref="team/x:1"))
    return LoadedProfile(profile=profile, file=file, chain=(file,), provenance={})


@pytest.mark.parametrize(
    ("origin", "directory", "lock"),
    [
        ("project", "project/profiles", "project/rocmrun.lock"),
        ("user", "user/profiles", "user/rocmrun.lock"),
        ("system", "system/profiles", "system/rocmrun.lock"),
        ("--profile-dir", "any/where", "any/rocmrun.lock"),
        ("file", "alone", "alone/rocmrun.lock"),
        ("file", "project/profiles", "project/rocmrun.lock"),
    ],
)
def test_a_lock_stands_beside_its_profile_directory(
    tmp_path: Path, origin: str, directory: str, lock: str
) -> None:
    """And that one alone answers for the profiles in it, and is written."""
    where, profile = places(tmp_path), tmp_path / directory / "serve.toml"

    assert (tmp_path / lock,) == where.candidates(origin, profile)
    assert tmp_path / lock == where.to_write(origin, profile)


def test_the_option_outranks_every_place(tmp_path: Path) -> None:
    """--lockfile is the only lock then, for reading and writing."""
    where = places(tmp_path, tmp_path / "mine.lock")

    for origin in ("project", "shipped", "file"):
        assert where.candidates(origin, tmp_path / "p.toml") == (tmp_path / "mine.lock",)
        assert where.to_write(origin, tmp_path / "p.toml") == tmp_path / "mine.lock"


def test_a_shipped_profile_is_covered_by_the_first_lock_that_knows_it(tmp_path: Path) -> None:
    """The project's, the user's, the system's, the shipped one."""
    where, profile = places(tmp_path), loaded(tmp_path, "shipped")

    for path, letter in (
        (where.shipped, "a"),
        (where.system, "b"),
        (where.user, "c"),
        (where.project, "d"),
    ):
        write(path, letter)
        pin, found = find_pin(profile, places=where)
        assert (digest(letter), path) == (pin.digest, found)


def test_the_shipped_lock_is_never_written(tmp_path: Path) -> None:
    """A project pins shipped profiles for itself; elsewhere the user does."""
    where = places(tmp_path)
    profile = tmp_path / "shipped" / "profiles" / "serve.toml"

    assert where.user == where.to_write("shipped", profile)
    (tmp_path / "project" / "profiles").mkdir(parents=True)
    assert where.project == where.to_write("shipped", profile)
    (tmp_path / "project" / "profiles").rmdir()
    where.project.touch()
    assert where.project == where.to_write("shipped", profile)


def test_not_locked_lists_where_it_looked(tmp_path: Path) -> None:
    """And whether there was a file at all."""
    where = places(tmp_path)
    where.user.parent.mkdir()
    where.user.write_text(Lock().text())

    with pytest.raises(LockMissing, match="the image of profile serve, is not locked") as caught:
        find_pin(loaded(tmp_path, "shipped"), places=where)

    assert (
        f"{where.project}: no such file",
        f"{where.user}: does not hold it",
        f"{where.system}: no such file",
        f"{where.shipped}: no such file",
    ) == caught.value.details
    assert caught.value.hint == "rocmrun lock serve"


def test_the_first_lock_decides_also_when_it_has_another_platform(tmp_path: Path) -> None:
    """A later lock must not answer instead without a word."""
    where = places(tmp_path)
    write(where.project, "a", "linux/arm64")
    write(where.shipped, "b")

    with pytest.raises(LockStale, match="locked for linux/arm64"):
        find_pin(loaded(tmp_path, "shipped"), places=where)


def test_an_unreadable_lock_on_the_way_is_an_error(tmp_path: Path) -> None:
    """It could have been the one that decides."""
    where = places(tmp_path)
    where.project.parent.mkdir()
    where.project.write_text("nonsense")
    write(where.user, "a")

    with pytest.raises(LockUnreadable):
        find_pin(loaded(tmp_path, "shipped"), places=where)


@pytest.mark.parametrize(
    ("environment", "user"),
    [
        ({"HOME": "/home/me"}, "/home/me/.config/rocmrun/rocmrun.lock"),
        ({"HOME": "/home/me", "XDG_CONFIG_HOME": "/c"}, "/c/rocmrun/rocmrun.lock"),
        ({"HOME": "/home/me", "XDG_CONFIG_HOME": "c"}, "/home/me/.config/rocmrun/rocmrun.lock"),
    ],
)
def test_places_follow_the_environment(environment: dict[str, str], user: str) -> None:
    """The same rules as for profiles."""
    where = LockPlaces.of(lockfile=None, environment=environment, directory=Path("/here"))

    assert Path(user) == where.user
    assert Path("/here/rocmrun.lock") == where.project
    assert Path("/etc/rocmrun/rocmrun.lock") == where.system


def test_the_shipped_lock_is_one() -> None:
    """What is shipped reads, and covers the profiles whose digests are published."""
    text = shipped_lock().read_text()
    from rocmrun.core.lock import parse_lock

    lock = parse_lock(text, "rocmrun.lock")

    assert text == lock.text()
    ref = "docker.io/rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.9.1"
    assert (
        lock.require(ref, "linux/amd64").digest
        == "sha256:7fe531fa185af260352fe7fbb3fa64ad749abe72adf0600a648c4692801b125a"
    )
