"""Which container a process of this host is in."""

from pathlib import Path

from rocmrun.system.processes import container_of

ID = "ab12" * 16


def test_the_container_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "proc/17").mkdir(parents=True)
    (tmp_path / "proc/17/cgroup").write_text(f"0::/system.slice/docker-{ID}.scope\n")

    assert container_of(17, tmp_path) == ID
    assert container_of(18, tmp_path) is None
