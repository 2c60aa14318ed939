"""Where a run wrote, from an engine's list of changes."""

from collections.abc import Mapping

from rocmrun.core.run import ChangeKind, WritableLayer
from rocmrun.core.writes import MOST_DIRECTORIES, MOST_LOOKED_UP, Writes, directory_of, writes_of


def seen(
    changes: Mapping[str, ChangeKind], *, targets: tuple[str, ...] = (), directories: tuple[str, ...] = ()
) -> Writes:  # fmt: skip
    layer = WritableLayer(changes=changes, size_bytes=7)
    return writes_of(layer, targets, is_directory=lambda path: path in directories)


def named(found: Writes) -> dict[str, tuple[int, bool]]:
    return {one.path: (one.paths, one.new) for one in found.directories}


def test_a_file_names_the_directory_that_it_is_in() -> None:
    """One that was there, whether the file was made, changed or deleted."""
    found = seen({"/app": "changed", "/app/a": "added", "/app/b": "changed", "/app/c": "deleted"})

    assert named(found) == {"/app": (3, False)}
    assert found.size_bytes == 7


def test_of_what_the_run_made_the_topmost_directory_counts() -> None:
    """Nothing of the image is in it."""
    changes: dict[str, ChangeKind] = {
        "/app": "changed", "/app/state": "added", "/app/state/day": "added", "/app/state/day/1": "added",
        "/app/state/x": "added",
    }  # fmt: skip

    assert named(seen(changes)) == {"/app/state": (2, True)}


def test_a_directory_by_itself_is_covered_and_not_the_one_around_it() -> None:
    """An empty one that was made, and one from which what was made is gone again."""
    made = seen({"/app": "changed", "/app/state": "added"}, directories=("/app/state",))
    touched = seen({"/var": "changed", "/var/tmp": "changed"}, directories=("/var/tmp",))

    assert named(made) == {"/app/state": (1, True)}
    assert named(touched) == {"/var/tmp": (1, False)}


def test_what_the_engine_makes_is_left_out() -> None:
    """Its own files, the places of mounts with the directories on the way to them, and what Python keeps beside sources."""
    changes: dict[str, ChangeKind] = {
        "/.dockerenv": "added", "/dev": "changed", "/dev/console": "added", "/etc": "changed",
        "/etc/hosts": "added", "/etc/resolv.conf": "added", "/sbin": "changed", "/sbin/docker-init": "added",
        "/usr/sbin": "changed", "/usr/sbin/docker-init": "added",
        "/home": "changed", "/home/rocmrun": "added", "/srv": "added", "/srv/data": "added",
        "/app": "changed", "/app/__pycache__": "added", "/app/__pycache__/serve.pyc": "added",
    }  # fmt: skip

    targets = ("/home/rocmrun", "/srv/data")
    assert named(seen(changes, targets=targets)) == {}
    assert named(seen({"/srv": "added", "/srv/data": "added"}, targets=targets)) == {}


def test_a_neighbour_of_a_mount_is_none_of_it() -> None:
    """/srv/data2 is not below /srv/data."""
    found = seen({"/srv/data2": "added", "/srv/data2/x": "added"}, targets=("/srv/data",))

    assert named(found) == {"/srv/data2": (1, True)}


def test_a_file_at_the_root_names_the_root() -> None:
    """Where no tmpfs may lie."""
    assert named(seen({"/x": "added"})) == {"/": (1, False)}


def test_many_changes_are_bounded() -> None:
    """A few questions to the engine, and as many directories as are of use."""
    asked: list[str] = []
    changes: dict[str, ChangeKind] = {f"/d{n:03}/file": "added" for n in range(200)}

    def is_directory(path: str) -> bool:
        asked.append(path)
        return False

    found = writes_of(WritableLayer(changes=changes), (), is_directory=is_directory)

    assert len(asked) == MOST_LOOKED_UP
    assert len(found.directories) == MOST_DIRECTORIES


def test_a_printed_path_names_the_directory_around_it() -> None:
    """As far as it is one of the container."""
    assert directory_of("/app/state/../x") == "/app"
    assert directory_of("/x") == "/"
    assert directory_of("state/x") == ""
    assert directory_of("/app/__pycache__/x.pyc") == ""
