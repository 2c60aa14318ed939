"""Which container a process of this host is in."""

from pathlib import Path

from rocmrun.system.processes import container_of, threads_of

ID = "ab12" * 16


def test_the_container_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "proc/17").mkdir(parents=True)
    (tmp_path / "proc/17/cgroup").write_text(f"0::/system.slice/docker-{ID}.scope\n")

    assert container_of(17, tmp_path) == ID
    assert container_of(18, tmp_path) is None


def test_threads_are_found_by_the_name_of_their_process(tmp_path: Path) -> None:
    """All of every process that has one of the names; processes that end meanwhile are passed over."""
    for pid, name, threads in (
        (12, "containerd", (12, 15)),
        (3, "dockerd", (3,)),
        (9, "bash", (9,)),
    ):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/comm").write_text(f"{name}\n")
        for thread in threads:
            (tmp_path / f"proc/{pid}/task/{thread}").mkdir(parents=True)
    (tmp_path / "proc/44").mkdir()
    (tmp_path / "proc/meminfo").write_text("")

    assert threads_of({"dockerd", "containerd"}, tmp_path) == (3, 12, 15)
