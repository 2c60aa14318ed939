"""A path is walked as the kernel walks it."""

import os
import socket
import struct
import tempfile
from pathlib import Path

from rocmrun.core.path_facts import PathFacts
from rocmrun.system.sysfs import read_path
from rocmrun.system.sysfs.paths import sockets_in


def test_a_path_is_walked_component_by_component(tmp_path: Path) -> None:
    """Modes and owners of every directory from the root on, the symlink resolved."""
    target = tmp_path / "real" / "models"
    target.mkdir(parents=True)
    target.chmod(0o2750)
    (tmp_path / "link").symlink_to("real/../real")

    facts = read_path(f"{tmp_path}/link/models")

    assert (facts.kind, facts.real_path) == ("directory", str(target))
    assert facts.path == f"{tmp_path}/link/models"
    assert [entry[0] for entry in facts.components] == [
        *map(str, [*target.parents][::-1]),
        str(target),
    ]
    assert facts.components[-1][1:] == (0o2750, os.getuid(), target.stat().st_gid)


def test_dot_dot_follows_symlinks(tmp_path: Path) -> None:
    """link/.. is the parent of the target, as the kernel has it, not of the link."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a/b")

    assert read_path(f"{tmp_path}/link/..").real_path == f"{tmp_path}/a"
    assert read_path("/..").real_path == "/"


def test_kinds_of_paths_are_told_apart(tmp_path: Path) -> None:
    """What stands at the end, and why a path has no end."""
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"{tmp_path}/socket")

    kinds = {
        name: read_path(f"{tmp_path}/{name}").kind
        for name in ("file", "socket", "fifo", "loop", "gone", "file/below", "none/at/all", "a\0b")
    }

    assert kinds == {
        "file": "file",
        "socket": "socket",
        "fifo": "other",
        "loop": "loop",
        "gone": "missing",
        "file/below": "missing",
        "none/at/all": "missing",
        "a\0b": "missing",
    }
    assert read_path("/dev/null").kind == "device"
    assert read_path(f"{tmp_path}/loop").real_path is None


def test_forty_symlinks_are_followed_and_no_more(tmp_path: Path) -> None:
    """The kernel's limit."""
    (tmp_path / "0").mkdir()
    for number in range(41):
        (tmp_path / str(number + 1)).symlink_to(str(number))

    assert read_path(f"{tmp_path}/40").kind == "directory"
    assert read_path(f"{tmp_path}/41").kind == "loop"


def test_a_directory_that_may_not_be_searched_is_denied() -> None:
    """What lies behind is not "missing": nobody can say."""
    with tempfile.TemporaryDirectory() as directory:  # pytest's own is closed to others already
        closed = Path(directory).resolve() / "closed"
        (closed / "models").mkdir(parents=True)
        Path(directory).chmod(0o755)
        closed.chmod(0)

        facts = read_path_as_nobody(closed / "models")

        closed.chmod(0o700)
    assert (facts.kind, facts.real_path) == ("denied", None)
    assert facts.components[-1][0] == str(closed)


def read_path_as_nobody(path: Path) -> PathFacts:
    """Read without root's right to enter every directory."""
    if os.geteuid() != 0:
        return read_path(str(path))
    os.seteuid(65534)
    try:
        return read_path(str(path))
    finally:
        os.seteuid(0)


def test_a_relative_path_starts_at_the_working_directory() -> None:
    """And is reported absolute."""
    assert read_path(".").real_path == str(Path.cwd().resolve())


def test_an_acl_of_the_path_itself_is_seen(tmp_path: Path) -> None:
    """Not one of a directory on the way; a link is judged by where it leads."""
    nobody = 0xFFFFFFFF
    entries = ((1, 7, nobody), (2, 7, 4711), (4, 0, nobody), (0x10, 7, nobody), (0x20, 0, nobody))
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    text = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(folder, "system.posix_acl_access", text)

    assert read_path(str(folder)).acl
    assert read_path(f"{tmp_path}/link").acl
    assert not read_path(str(folder / "below")).acl


def test_a_hard_link_of_an_engines_socket_is_found_in_a_directory(tmp_path: Path) -> None:
    """The name tells nothing, and it is no mount."""
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"{tmp_path}/engine")
    (tmp_path / "models").mkdir()
    (tmp_path / "models/weights").hardlink_to(tmp_path / "engine")
    (tmp_path / "models/config").touch()
    known = (f"{tmp_path}/engine", f"{tmp_path}/none")

    found = list(sockets_in(f"{tmp_path}/models", known))

    assert found == [(f"{tmp_path}/models/weights", (f"{tmp_path}/engine",))]
    assert list(sockets_in(f"{tmp_path}/none", known)) == []


def test_what_a_link_passes_through_is_told(tmp_path: Path) -> None:
    """It ends where this process works, and starts from /proc."""
    (tmp_path / "magic").symlink_to("/proc/self/cwd")
    (tmp_path / "plain").symlink_to(tmp_path)

    magic = read_path(f"{tmp_path}/magic")

    assert magic.real_path == str(Path.cwd())
    assert {"/proc", f"/proc/{os.getpid()}"} <= set(magic.through)
    assert read_path(f"{tmp_path}/plain").through == ()
