"""Processes of a container: time, GPU nodes, shared memory; what may not be seen is not made up."""

import os
from pathlib import Path

from rocmrun.system.container_processes import read_process, shm_use
from tests.running_machines import TICKS, write_process

ID = "ab12" * 16
FDINFO = (
    "drm-driver:\tamdgpu\ndrm-pdev:\t0000:05:00.0\ndrm-client-id:\t3\ndrm-memory-vram:\t4 KiB\n"
)


def test_a_process_with_gpu_nodes(tmp_path: Path) -> None:
    """Other descriptors are nobody's business."""
    write_process(
        tmp_path,
        700,
        container=ID,
        cpu_ticks=3 * TICKS,
        opens={0: "/dev/null", 5: "/dev/kfd", 6: "/dev/dri/renderD128", 7: "/srv/model"},
        fdinfo={6: FDINFO},
    )
    found = read_process(700, tmp_path)

    assert found is not None
    assert (found.name, found.cpu_seconds) == ("python3", 3)
    assert found.nodes == frozenset({"/dev/kfd", "/dev/dri/renderD128"})
    assert [client.vram_bytes for client in found.clients] == [4096]


def test_descriptors_that_may_not_be_listed_are_unknown(tmp_path: Path) -> None:
    """None, not an empty set: here the directory is missing, for others' processes it is closed."""
    write_process(tmp_path, 700, container=ID, name="bad\x1b[2Jname")
    (tmp_path / "proc/700/fd").rmdir()
    found = read_process(700, tmp_path)

    assert found is not None
    assert (found.nodes, found.name) == (None, "badname")


def test_a_process_that_has_ended(tmp_path: Path) -> None:
    """Gone, or a zombie."""
    write_process(tmp_path, 700, container=ID)
    stat = tmp_path / "proc/700/stat"
    stat.write_text(stat.read_text().replace(") S ", ") Z "))

    assert read_process(700, tmp_path) is None
    assert read_process(701, tmp_path) is None


def test_a_descriptor_that_is_closed_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """Its fdinfo is gone with it."""
    write_process(tmp_path, 700, container=ID, opens={5: "/dev/kfd"})
    (tmp_path / "proc/700/fdinfo/5").unlink()

    found = read_process(700, tmp_path)
    assert found is not None
    assert found.clients == ()


def test_this_process_is_read_for_real() -> None:
    """As the kernel writes /proc."""
    found = read_process(os.getpid())

    assert found is not None
    assert found.cpu_seconds > 0
    assert found.nodes == frozenset()


def test_shared_memory_of_a_process(tmp_path: Path) -> None:
    """Through its own root directory."""
    (tmp_path / "proc/700/root/dev/shm").mkdir(parents=True)
    found = shm_use(700, tmp_path)

    assert found is not None
    assert 0 <= found[0] <= found[1]
    assert shm_use(701, tmp_path) is None


def test_a_name_is_one_line(tmp_path: Path) -> None:
    """It is the job's to choose, and stands in a table."""
    write_process(tmp_path, 700, container=ID, name="x) R 1 1\n[/b] ok")
    found = read_process(700, tmp_path)

    assert found is not None
    assert found.name == "x) R 1 1 [/b] ok"
