"""The cache directory: private, owned by who runs inside, and never through a link of somebody else."""

import os
from pathlib import Path

import pytest

from rocmrun.errors import HostNotReady
from rocmrun.system.cache_directories import make_cache_directory

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
