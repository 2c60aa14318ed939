"""The kernel's tracing files, built as a tree where the kernel's own are not needed."""

from pathlib import Path

import pytest

from rocmrun.system.tracefs import (
    Instance,
    TraceUnavailable,
    instance,
    owners,
    remove_instance,
    tracefs,
)


def test_a_kernel_without_tracefs_is_told(tmp_path: Path) -> None:
    """The directory is there and has nothing that traces."""
    with pytest.raises(TraceUnavailable, match="no trace instances"), tracefs(tmp_path, uid=0):
        pass


def test_only_root_traces(tmp_path: Path) -> None:
    """Said before anything is looked at."""
    with pytest.raises(TraceUnavailable, match="only root"), tracefs(tmp_path, uid=1000):
        pass


def test_a_directory_that_is_there_is_taken(tmp_path: Path) -> None:
    """A mounted tracefs is used where it is."""
    (tmp_path / "instances").mkdir()

    with tracefs(tmp_path, uid=0) as root:
        assert root == tmp_path


def test_an_instance_that_is_refused_is_told_and_not_left(tmp_path: Path) -> None:
    """A plain directory has no options: what was made is removed."""
    (tmp_path / "instances").mkdir()

    with pytest.raises(TraceUnavailable, match="No such file"), instance(tmp_path, "me"):
        pass

    assert list((tmp_path / "instances").iterdir()) == []


def test_only_our_instances_are_ours(tmp_path: Path) -> None:
    """Another tracer's stays whatever happens; one that cannot go says why."""
    for name in ("rocmrun-a.1.2", "perf", "rocmrun-b.3.4/busy"):
        (tmp_path / "instances" / name).mkdir(parents=True)

    assert owners(tmp_path) == ("a.1.2", "b.3.4")
    assert remove_instance(tmp_path, "a.1.2") == ""
    assert remove_instance(tmp_path, "a.1.2") == ""
    assert remove_instance(tmp_path, "b.3.4") == "Directory not empty"
    assert owners(tmp_path) == ("b.3.4",)
    assert (tmp_path / "instances/perf").is_dir()


def test_every_way_of_losing_events_counts(tmp_path: Path) -> None:
    """On all CPUs together; other numbers do not."""
    for cpu, text in enumerate(
        (
            "entries: 5\noverrun: 1\ncommit overrun: 2\nbytes: 9\n",
            "overrun: 0\ndropped events: 4\nread events: 7\n",
        )
    ):
        (tmp_path / f"per_cpu/cpu{cpu}").mkdir(parents=True)
        (tmp_path / f"per_cpu/cpu{cpu}/stats").write_text(text)

    assert Instance(directory=tmp_path, _pipe=-1).lost() == 7
