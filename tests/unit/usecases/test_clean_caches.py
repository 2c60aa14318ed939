"""`rocmrun clean --caches`: caches of images that no lock pins go, and what somebody may read again stays."""

import os
from pathlib import Path

import pytest

from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.errors import LockUnreadable
from rocmrun.system.cache_directories import make_cache_directory
from rocmrun.usecases.clean_caches import CleanedCaches, clean_caches
from rocmrun.usecases.locks import LockPlaces
from tests.fakes import FakeEngine
from tests.registries import digest


@pytest.fixture
def places(tmp_path: Path) -> LockPlaces:
    names = ("project", "user", "system", "shipped")
    return LockPlaces(option=None, **{name: tmp_path / f"{name}.lock" for name in names})


def write_lock(path: Path, letter: str) -> Path:
    path.write_text(Lock.of([PinnedImage(ref="docker.io/team/x:1", digest=digest(letter))]).text())
    return path


def cache(root: Path, letter: str, *, name: str = "job", profile: str = "") -> Path:
    """Make a cache of the image *letter* with something in it."""
    path = root / "cache" / name / digest(letter).removeprefix("sha256:")[:12] / "cpu" / "1"
    make_cache_directory(str(path), str(root / "cache"), os.getuid(), os.getgid(), profile=profile)
    (path / "kernel.so").write_bytes(b"x" * 4096)
    return path


def clean(
    tmp_path: Path,
    places: LockPlaces,
    *lockfiles: Path,
    dry_run: bool = False,
    engine: FakeEngine | None = None,
) -> CleanedCaches:
    return clean_caches(
        engine or FakeEngine(),
        root=tmp_path / "cache",
        places=places,
        lockfiles=lockfiles,
        dry_run=dry_run,
    )


def test_a_cache_of_an_image_that_no_lock_pins_goes(tmp_path: Path, places: LockPlaces) -> None:
    write_lock(places.project, "a")
    named = write_lock(tmp_path / "named.lock", "b")
    paths = [cache(tmp_path, letter) for letter in "abc"]

    (gone,) = clean(tmp_path, places, named).caches

    assert [path.exists() for path in paths] == [True, True, False]
    assert (gone.path, gone.stays) == (str(paths[2]), "")
    assert gone.why == f"no lock pins image {paths[2].parts[-3]}"
    assert gone.size_bytes >= 4096


def test_a_dry_run_removes_nothing(tmp_path: Path, places: LockPlaces) -> None:
    path = cache(tmp_path, "a")

    (unused,) = clean(tmp_path, places, dry_run=True).caches

    assert (unused.path, unused.stays) == (str(path), "")
    assert (path / "kernel.so").exists()


def test_the_lock_beside_a_caches_own_profile_counts(tmp_path: Path, places: LockPlaces) -> None:
    """Another project's caches are none of ours: nobody has to stand in its directory."""
    project = tmp_path / "other"
    (project / "profiles").mkdir(parents=True)
    profile = project / "profiles/serve.toml"
    profile.touch()
    lock = write_lock(project / "rocmrun.lock", "a")
    path = cache(tmp_path, "a", profile=str(profile))

    cleaned = clean(tmp_path, places)

    assert cleaned == CleanedCaches(caches=(), locks=(str(lock),))
    assert path.exists()


def test_a_cache_of_a_profile_that_is_gone_goes(tmp_path: Path, places: LockPlaces) -> None:
    """Also while a lock still pins its image."""
    write_lock(places.project, "a")
    path = cache(tmp_path, "a", profile=str(tmp_path / "gone.toml"))

    (gone,) = clean(tmp_path, places).caches

    assert gone.why == f"its profile {tmp_path}/gone.toml is gone"
    assert not path.exists()


@pytest.mark.parametrize(
    ("state", "stays"), [("running", True), ("created", True), ("exited", False)]
)
def test_a_cache_that_a_container_uses_stays(
    tmp_path: Path,
    places: LockPlaces,
    state: str,
    stays: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """Whoever made that container; one that has ended uses nothing."""
    path = cache(tmp_path, "a")
    user = {"Id": "1", "Names": ["/server"], "Labels": {}, "State": state,
            "Mounts": [{"Source": str(path)}]}  # fmt: skip

    (found,) = clean(tmp_path, places, engine=FakeEngine(others=[user])).caches

    assert found.stays == ("container server uses it" if stays else "")
    assert path.exists() is stays


def test_nothing_is_removed_while_a_lock_cannot_be_read(tmp_path: Path, places: LockPlaces) -> None:
    path = cache(tmp_path, "a")
    places.user.write_text("<<<<<<< ours\n")

    with pytest.raises(LockUnreadable):
        clean(tmp_path, places)

    assert path.exists()


def test_no_caches_are_nothing_to_clean(tmp_path: Path, places: LockPlaces) -> None:
    assert clean(tmp_path, places).caches == ()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_link_is_followed_to_a_cache(tmp_path: Path, places: LockPlaces, depth: int) -> None:
    """Whoever may write below the root could point at anything of that depth."""
    path = cache(tmp_path, "a")
    outside = tmp_path / "outside"
    way = path.relative_to(tmp_path / "cache").parts
    link = (tmp_path / "cache").joinpath(*way[:depth])
    link.rename(outside)
    link.symlink_to(outside)

    assert clean(tmp_path, places).caches == ()
    assert outside.joinpath(*way[depth:], "kernel.so").exists()


def test_what_has_another_form_is_no_cache(tmp_path: Path, places: LockPlaces) -> None:
    """A root that holds other things keeps them."""
    other = tmp_path / "cache/a/b/c/d"
    other.mkdir(parents=True)

    assert clean(tmp_path, places).caches == ()
    assert other.exists()


def test_where_others_could_lead_the_way_elsewhere_nothing_is_removed(
    tmp_path: Path, places: LockPlaces
) -> None:
    path = cache(tmp_path, "a")
    path.parents[1].chmod(0o777)

    (found,) = clean(tmp_path, places).caches

    assert "may be written by others (0777)" in found.stays
    assert path.exists()
