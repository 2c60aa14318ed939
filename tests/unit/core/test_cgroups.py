"""Which control groups a process is in, and which container: by the names that engines give to them."""

import pytest

from rocmrun.core.cgroups import container_id_in, group_paths

ID, OTHER = "ab12" * 16, "cd34" * 16


@pytest.mark.parametrize(
    "text",
    [
        f"0::/system.slice/docker-{ID}.scope\n",
        f"12:pids:/docker/{ID}\n11:memory:/docker/{ID}\n",
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container\n",
        f"0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-{ID}.scope\n",
        f"1:name=systemd:/docker/{OTHER}/docker/{ID}\n",
    ],
)
def test_a_process_in_a_container(text: str) -> None:
    assert container_id_in(text) == ID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0::/\n",
        "0::/user.slice/user-0.slice/session-1.scope\n",
        f"0::/docker/{ID}0\n",
        "broken",
    ],
)
def test_a_process_of_the_host(text: str) -> None:
    assert container_id_in(text) is None


def test_the_groups_of_a_process() -> None:
    """Version 1 has a line a hierarchy, version 2 one alone."""
    text = "4:cpu,cpuacct:/docker/ab\n3:memory:/docker/ab\n0::/docker/ab:c\nbroken\n"
    assert group_paths(text) == {
        "cpu": "/docker/ab",
        "cpuacct": "/docker/ab",
        "memory": "/docker/ab",
        "": "/docker/ab:c",
    }
    assert group_paths("0::/system.slice/docker-ab.scope\n") == {"": "/system.slice/docker-ab.scope"}  # fmt: skip
