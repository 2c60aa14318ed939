"""Which container a process is in: the names that engines give to cgroups."""

import pytest

from rocmrun.core.cgroups import container_id_in

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
