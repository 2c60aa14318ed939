"""The control group of a process, wherever its version keeps it."""

import shutil
from pathlib import Path

import pytest

from rocmrun.core.running.cgroup import V1_FILES
from rocmrun.system.cgroup_files import Cgroup
from tests.hosts import write
from tests.running_machines import write_group_v2, write_process

ID = "ab12" * 16


def write_group_v1(root: Path, *, joined: bool) -> None:
    """Write the group of version 1; Debian mounts cpu and cpuacct together."""
    texts = {"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000", "cpuacct.usage": "2000000000",
             "cpu.stat": "nr_periods 4\nnr_throttled 1\nthrottled_time 5", "memory.limit_in_bytes": "4096",
             "memory.usage_in_bytes": "1024", "pids.current": "2"}  # fmt: skip
    for controller, names in V1_FILES.items():
        mount = "cpu,cpuacct" if joined and controller in {"cpu", "cpuacct"} else controller
        group = root / f"sys/fs/cgroup/{mount}/docker/{ID}"
        for name in names:
            write(group / name, texts.get(name, "0") + "\n")
        write(group / "cgroup.procs", "700\n701\n")


def test_version_2_has_one_group(tmp_path: Path) -> None:
    """With the groups that the container made below it; processes that cannot be named here are 0."""
    group = write_group_v2(tmp_path, ID, pids=[700], cpu_max="10000 100000")
    write(group / "workers/cgroup.procs", "702\n0\n")
    write_process(tmp_path, 700, container=ID)
    found = Cgroup(700, tmp_path)

    assert (found.problem, found.pids()) == ("", (700, 702))
    assert (found.use().version, found.use().cpu_limit, found.use().pids_limit) == (2, 0.1, 100)


@pytest.mark.parametrize("joined", [True, False])
def test_version_1_has_one_for_each_controller(tmp_path: Path, *, joined: bool) -> None:
    """Mounted alone or together."""
    write_group_v1(tmp_path, joined=joined)
    write_process(tmp_path, 700, container=ID, controllers=("cpu,cpuacct", "cpuset", "memory", "pids"))  # fmt: skip
    found = Cgroup(700, tmp_path)
    use = found.use()

    assert found.pids() == (700, 701)
    assert (use.version, use.cpu_limit, use.cpu_seconds) == (1, 0.5, 2.0)
    assert (use.throttled, use.memory_limit, use.pids) == (1, 4096, 2)


def test_a_process_that_is_not_here_has_no_group(tmp_path: Path) -> None:
    """It says why."""
    gone = Cgroup(700, tmp_path)
    write_process(tmp_path, 701, container=ID)
    elsewhere = Cgroup(701, tmp_path)
    write(tmp_path / "sys/fs/cgroup/cgroup.controllers", "cpu\n")

    assert gone.problem == "/proc/700/cgroup cannot be read: No such file or directory"
    assert (gone.use().problem, gone.pids()) == (gone.problem, ())
    assert elsewhere.problem == "its control group is not below /sys/fs/cgroup here"
    assert Cgroup(701, tmp_path).problem == elsewhere.problem


def test_the_group_of_the_whole_machine_is_nobodys(tmp_path: Path) -> None:
    """A controller that the engine does not use leaves a process where everybody is."""
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "proc/700/cgroup", "1:cpu:/\n")

    assert Cgroup(700, tmp_path).use().problem != ""


def test_a_group_that_has_ended_meanwhile_is_empty(tmp_path: Path) -> None:
    """Nothing is raised between two samples."""
    group = write_group_v2(tmp_path, ID, pids=[700])
    write_process(tmp_path, 700, container=ID)
    found = Cgroup(700, tmp_path)
    for file in group.iterdir():
        file.unlink()
    group.rmdir()

    assert (found.pids(), found.use().memory_bytes) == ((), None)


def test_groups_may_go_be_many_and_be_deep(tmp_path: Path) -> None:
    """A container makes and removes groups of its own while they are read; a file is none."""
    group = write_group_v2(tmp_path, ID, pids=[700])
    deep = group
    for _ in range(300):
        deep /= "a"
        deep.mkdir()
    write(group / "a/cgroup.procs", "701\n")
    write(group / "b/cgroup.procs", "702\n")
    write_process(tmp_path, 700, container=ID)
    found = Cgroup(700, tmp_path)

    assert found.pids() == (700, 701, 702)
    shutil.rmtree(group)
    assert (found.pids(), found.use().memory_bytes) == ((), None)
