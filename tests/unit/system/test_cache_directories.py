"""The cache directory: private, owned by who runs inside, and never through a link of somebody else."""

import os
from pathlib import Path

import pytest

from rocmrun.errors import HostNotReady
from rocmrun.system.cache_directories import (
    cache_directories,
    make_cache_directory,
    remove_cache_directory,
    size_of,
)

ROOT = os.getuid() == 0
UID, GID = (65532, 65532) if ROOT else (os.getuid(), os.getgid())


def make(root: Path, *parts: str, uid: int = UID, gid: int = GID) -> Path:
    """Make a cache directory below *root* and return it."""
    path = root.joinpath(*parts)
    make_cache_directory(str(path), str(root), uid, gid)
    return path


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_it_is_private_and_the_way_to_it_can_be_entered(tmp_path: Path) -> None:
    """The container's user has to get there."""
    path = make(tmp_path / "cache", "job", "7f7f", "gfx942", "1000")

    found = path.stat()
    assert (found.st_uid, found.st_gid, mode(path)) == (UID, GID, 0o700)
    way = (path.parents[3], path.parents[2], path.parents[1], path.parents[0])
    assert (way[0], {mode(parent) for parent in way}) == (tmp_path / "cache", {0o755})


def test_what_is_there_already_stays(tmp_path: Path) -> None:
    path = make(tmp_path, "a", "b")
    (path / "kernel.bin").touch()

    assert make(tmp_path, "a", "b") == path

    assert (path / "kernel.bin").exists()


def test_one_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = make(tmp_path, "a")
    path.chmod(0o755)

    make(tmp_path, "a")

    assert mode(path) == 0o700


@pytest.mark.parametrize("parts", [("link",), ("link", "below")])
def test_a_link_is_not_followed(tmp_path: Path, parts: tuple[str, ...]) -> None:
    """Whoever can write there could point it at anything, and root would give it away."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    root = tmp_path / "cache"
    root.mkdir()
    (root / "link").symlink_to(elsewhere)

    with pytest.raises(HostNotReady, match="cannot make the cache directory") as caught:
        make(root, *parts)

    assert list(elsewhere.iterdir()) == []
    assert elsewhere.stat().st_uid == os.getuid()
    assert 'mode = "tmpfs"' in (caught.value.hint or "")


def test_a_file_on_the_way_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    with pytest.raises(HostNotReady, match="Not a directory"):
        make(tmp_path, "a", "b")


@pytest.mark.skipif(not ROOT, reason="only root can make a directory of somebody else")
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path, "a", uid=4711, gid=4711)

    with pytest.raises(HostNotReady, match="belongs to uid 4711, the container runs as 65532"):
        make(tmp_path, "a")

    assert path.stat().st_uid == 4711


@pytest.mark.skipif(ROOT, reason="root may give directories away")
def test_a_user_cannot_make_one_for_another(tmp_path: Path) -> None:
    with pytest.raises(HostNotReady, match="belongs to uid"):
        make(tmp_path, "a", uid=os.getuid() + 1)


@pytest.mark.skipif(not ROOT, reason="needs a file system that takes no directories from root")
def test_a_place_where_nothing_can_be_made_is_said(tmp_path: Path) -> None:
    with pytest.raises(HostNotReady, match="cannot make the cache directory /proc/rocmrun/a"):
        make(Path("/proc/rocmrun"), "a")


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # a Path iterator holds one itself

    for number in range(5):
        make(tmp_path, "a", str(number))
    (tmp_path / "file").touch()
    with pytest.raises(HostNotReady):
        make(tmp_path, "file", "b")

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("loose", [0o777, 0o757, 0o722])
def test_a_directory_above_it_that_others_may_write_is_refused(tmp_path: Path, loose: int) -> None:
    """As sshd does it: whoever can write there can put another cache in its place."""
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(loose)

    with pytest.raises(HostNotReady, match=rf"{above}, above the cache, may be written by others"):
        make(above / "cache", "a", "b")


@pytest.mark.parametrize("mode", [0o1777, 0o755, 0o700])
def test_a_sticky_directory_above_it_is_fine(tmp_path: Path, mode: int) -> None:
    """/tmp: everybody makes files there, and nobody moves another's."""
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(mode)

    assert make(above / "cache", "a").is_dir()


@pytest.mark.skipif(not ROOT, reason="only root can give directories away")
def test_a_directory_above_it_that_belongs_to_somebody_else_is_refused(tmp_path: Path) -> None:
    """Its owner may rename what is in it; the container's own user may."""
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 4711, 4711)
    (tmp_path / "own").mkdir()
    os.chown(tmp_path / "own", UID, GID)

    with pytest.raises(HostNotReady, match="theirs, above the cache, belongs to uid 4711"):
        make(tmp_path / "theirs", "a")
    assert make(tmp_path / "own", "a").is_dir()


@pytest.mark.skipif(not ROOT, reason="only root can give directories away")
def test_the_group_that_is_made_for_one_user_may_write(tmp_path: Path) -> None:
    """Many distributions give each user a group and a umask of 002."""
    (tmp_path / "own").mkdir()
    os.chown(tmp_path / "own", UID, UID)
    (tmp_path / "own").chmod(0o775)

    assert make(tmp_path / "own", "a").is_dir()


def test_a_loose_directory_that_a_link_stands_in_is_refused(tmp_path: Path) -> None:
    """The way behind the link is as private as can be; the link itself can be exchanged."""
    (tmp_path / "real").mkdir(mode=0o755)
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    (loose / "cache").symlink_to(tmp_path / "real")

    with pytest.raises(HostNotReady, match="loose, above the cache, may be written by others"):
        make(loose / "cache", "a")


def test_a_loose_directory_between_root_and_cache_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "job", "7f7f", "cpu", "1")
    (tmp_path / "job" / "7f7f").chmod(0o777)

    with pytest.raises(HostNotReady, match="7f7f, above the cache, may be written by others"):
        make(tmp_path, "job", "7f7f", "cpu", "1")


def test_caches_are_listed_with_their_profile(tmp_path: Path) -> None:
    make_cache_directory(
        str(tmp_path / "job-12/7f7f/cpu/1"), str(tmp_path), UID, GID, profile="/srv/job.toml"
    )
    make(tmp_path, "old", "8080", "gfx942", "1")
    (tmp_path / "old" / "8080" / "gfx942" / "link").symlink_to(tmp_path)

    found = cache_directories(tmp_path)

    assert [(cache.name, cache.digest, cache.profile) for cache in found] == [
        ("job-12", "7f7f", "/srv/job.toml"),
        ("old", "8080", ""),
    ]


def test_a_cache_is_removed_with_the_empty_directories_above_it(tmp_path: Path) -> None:
    """Read-only directories in it are no obstacle, and links lead nowhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    root = tmp_path / "root"
    for digest in ("7f7f", "8080"):
        path = root / "job" / digest / "cpu" / "1"
        make_cache_directory(str(path), str(root), UID, GID, profile="/srv/job.toml")
    first, second = cache_directories(root)
    (first.path / "module").mkdir()
    (first.path / "module" / "file").write_bytes(b"x" * 8192)
    (first.path / "module").chmod(0o555)
    (first.path / "link").symlink_to(outside)

    assert size_of(first.path) >= 8192
    assert remove_cache_directory(first, root) is None
    assert sorted(path.name for path in root.rglob("*")) == [".profile", "1", "8080", "cpu", "job"]
    assert remove_cache_directory(second, root) is None
    assert (list(root.iterdir()), list(outside.iterdir())) == ([], [outside / "kept"])
