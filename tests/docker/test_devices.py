"""Device nodes and the groups that open them, on hosts whose GPUs are null devices."""

import json
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.inside import LOOK, look, workspace_at
from tests.docker.waiting import read_until, started, until_running
from tests.hosts import FakeNode
from tests.workspace import Workspace, left_behind

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")

KFD_GROUP, RENDER_GROUP = 4711, 4712
NOBODY = "65532:65532"
# DRM's major number and a minor that no driver has: not in any container's device cgroup.
UNALLOTTED = os.makedev(226, 250)


@dataclass(frozen=True)
class Gpus:
    """A host with two GPUs, and a locked profile that takes all of them."""

    workspace: Workspace
    profile: str
    root: Path
    minors: list[int]

    @property
    def options(self) -> tuple[str, str]:
        return ("--host-root", str(self.root))

    def node(self, position: int) -> str:
        return f"/dev/dri/renderD{self.minors[position]}"


def host_of(workspace: Workspace, image: str, *, kfd: FakeNode | None = None) -> Gpus:
    minors = render_minors(2)
    kfd, render = kfd or FakeNode(gid=KFD_GROUP), FakeNode(gid=RENDER_GROUP)
    profile = workspace.profile(image, accelerator="rocm", select="all", name="gpus")
    root = gpu_host(workspace.path / f"host-{minors[0]}", minors, kfd=kfd, render=render)
    return Gpus(workspace=workspace, profile=profile, root=root, minors=minors)


@pytest.fixture(scope="module")
def gpus(
    engine: docker.DockerClient, python_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gpus]:
    """Two GPUs whose nodes belong to two groups that no image knows."""
    workspace = workspace_at(tmp_path_factory.mktemp("gpus"))
    yield host_of(workspace, python_image)
    left_behind(engine, workspace)


@pytest.fixture(scope="module")
def both(gpus: Gpus) -> dict[str, Any]:
    """What a container with both GPUs sees."""
    return look(
        gpus.workspace, gpus.profile, *gpus.options, open=["/dev/kfd", gpus.node(0), gpus.node(1)]
    )


def by_hand(engine: docker.DockerClient, image: str, gpus: Gpus, groups: list[int]) -> Any:
    """What the same user sees in a container with the same nodes that was made without rocmrun."""
    paths = ["/dev/kfd", gpus.node(0)]
    said: bytes = engine.containers.run(
        image,
        ["python3", "-c", LOOK, json.dumps({"open": paths})],
        user=NOBODY,
        cap_drop=["ALL"],
        network_mode="none",
        devices=[f"{gpus.root}{path}:{path}:rw" for path in paths],
        group_add=[str(group) for group in groups],
        remove=True,
    )
    return json.loads(said)


def test_the_groups_of_the_nodes_open_them(gpus: Gpus, both: dict[str, Any]) -> None:
    """Two owners, two groups, as numbers: the user that is not root opens every node read-write."""
    assert both["uids"] == [65532] * 3
    assert both["groups"] == [KFD_GROUP, RENDER_GROUP, 65532]
    assert both["open"] == {"/dev/kfd": "ok", gpus.node(0): "ok", gpus.node(1): "ok"}


def test_without_its_group_a_node_is_closed(
    engine: docker.DockerClient, python_image: str, gpus: Gpus
) -> None:
    """The same nodes, the same user: it is the number alone that opens them."""
    none = by_hand(engine, python_image, gpus, [])
    one = by_hand(engine, python_image, gpus, [RENDER_GROUP])

    assert none["open"] == {"/dev/kfd": "EACCES", gpus.node(0): "EACCES"}
    assert one["open"] == {"/dev/kfd": "EACCES", gpus.node(0): "ok"}


def test_only_the_named_nodes_are_there(gpus: Gpus, both: dict[str, Any]) -> None:
    """No card nodes, no by-path directory; owners and modes are the host's."""
    nodes = {
        path: owner
        for path, owner in both["nodes"].items()
        if path == "/dev/kfd" or path.startswith("/dev/dri")
    }

    assert nodes == {
        "/dev/kfd": [0o660, 0, KFD_GROUP],
        gpus.node(0): [0o660, 0, RENDER_GROUP],
        gpus.node(1): [0o660, 0, RENDER_GROUP],
    }


def test_a_gpu_that_is_not_selected_is_not_there(gpus: Gpus) -> None:
    """--gpu takes away from what the profile selects."""
    seen = look(
        gpus.workspace,
        gpus.profile,
        *gpus.options,
        "--gpu",
        "index:1",
        open=[gpus.node(0), gpus.node(1)],
    )

    assert seen["open"] == {gpus.node(0): "ENOENT", gpus.node(1): "ok"}


def test_a_node_for_its_owner_alone_is_refused(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """No group can help, so nothing starts; the hint has the rule that does."""
    gpus = host_of(workspace, python_image, kfd=FakeNode(mode=0o600, gid=KFD_GROUP))
    words = (gpus.profile, *gpus.options)
    launched = workspace.rocmrun("launch", *words, "--", "true")
    probed = workspace.rocmrun("probe", *words)
    planned = workspace.rocmrun("plan", *words, "--json")

    assert (launched.returncode, probed.returncode, planned.returncode) == (125, 8, 8)
    assert "error[device-permission]: /dev/kfd is 0600 and owned by 0:4711" in launched.stderr
    assert 'KERNEL=="kfd", GROUP="render", MODE="0660"' in launched.stderr
    assert json.loads(planned.stdout)["error"]["slug"] == "device-permission"
    assert left_behind(engine, workspace) == []


def test_a_node_for_everybody_needs_no_group(workspace: Workspace, python_image: str) -> None:
    """0666, as some distributions have it: one right less."""
    gpus = host_of(workspace, python_image, kfd=FakeNode(mode=0o666, gid=KFD_GROUP))
    seen = look(workspace, gpus.profile, *gpus.options, open=["/dev/kfd", gpus.node(0)])

    assert seen["groups"] == [RENDER_GROUP, 65532]
    assert seen["open"] == {"/dev/kfd": "ok", gpus.node(0): "ok"}


def test_the_device_cgroup_decides_over_the_node(workspace: Workspace, python_image: str) -> None:
    """A node that is only mounted is refused by the kernel; passed as a device, its driver is asked."""
    gpus = host_of(workspace, python_image)
    passed = gpus.root / gpus.node(0)[1:]
    passed.unlink()
    os.mknod(passed, stat.S_IFCHR | 0o666, UNALLOTTED)
    passed.chmod(0o666)
    folder = workspace.path / "mounted"
    folder.mkdir()
    mounted = folder / "node"
    os.mknod(mounted, stat.S_IFCHR | 0o666, UNALLOTTED)
    mounted.chmod(0o666)
    volume = ("-v", f"{folder}:/mounted:ro")
    only_mounted = look(
        workspace, gpus.profile, *gpus.options, "--gpu", "index:1", *volume, open=["/mounted/node"]
    )
    as_device = look(
        workspace, gpus.profile, *gpus.options, *volume, open=[gpus.node(0), "/mounted/node"]
    )

    assert only_mounted["open"] == {"/mounted/node": "EPERM"}
    assert as_device["open"] == {gpus.node(0): "ENXIO", "/mounted/node": "ENXIO"}


def test_a_gpu_in_use_is_refused_shared_or_waited_for(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """While one run has it: the next is told who, another GPU is free, --share and --wait do what they say."""
    gpus, run = host_of(workspace, python_image), workspace.rocmrun
    first = f"rocmrun-test-first-{secrets.token_hex(4)}"
    words = ("launch", gpus.profile, *gpus.options, "--no-probe")
    on_first = (*words, "--gpu", "index:0")
    with started(run, *on_first, "--name", first, "--", "sleep", "1000") as holder:
        until_running(engine, first)
        refused = run(*on_first, "--", "true")
        other = run(*words, "--gpu", "index:1", "--", "true")
        shared = run(*on_first, "--share", "--", "true")
        with started(run, *on_first, "--wait", "100", "--", "echo", "waited") as waiting:
            read_until(waiting.stderr, b"waiting up to 100 s for ")
            assert waiting.poll() is None
            holder.terminate()
            assert read_until(waiting.stdout, b"waited\n") == b"waited\n"
            assert waiting.wait(timeout=60) == 0
    free = run(*on_first, "--", "true")

    assert refused.returncode == 125
    assert "error[gpu-busy]: a selected GPU is in use" in refused.stderr
    assert f"renderD{gpus.minors[0]}: container {first} (rocmrun stop {first})" in refused.stderr
    assert (other.returncode, shared.returncode, free.returncode) == (0, 0, 0)


def test_a_gpu_stays_in_use_when_its_rocmrun_was_killed(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """The lock file is free then, the container is not."""
    gpus, run = host_of(workspace, python_image), workspace.rocmrun
    name = f"rocmrun-test-killed-{secrets.token_hex(4)}"
    words = ("launch", gpus.profile, *gpus.options, "--no-probe", "--gpu", "index:0")
    with started(run, *words, "--name", name, "--", "sleep", "1000") as holder:
        until_running(engine, name)
        holder.kill()
        holder.wait(timeout=60)
        refused = run(*words, "--", "true")
    engine.api.remove_container(name, force=True, v=True)

    assert refused.returncode == 125
    assert f"container {name}" in refused.stderr


def test_a_gpu_that_a_process_of_the_host_uses(workspace: Workspace, python_image: str) -> None:
    """KFD lists who has memory on it; a profile that is not exclusive does not ask."""
    minors = render_minors(1)
    node = FakeNode(gid=RENDER_GROUP)
    root = gpu_host(workspace.path / "host", minors, kfd=node, render=node, holders={4242: [0]})
    exclusive = workspace.profile(python_image, accelerator="rocm", select="all", name="exclusive")
    easy = workspace.write(f'extends = "{exclusive}"\n[gpus]\nexclusive = false\n', name="easy")
    options = ("--no-probe", "--host-root", str(root), "--", "true")
    refused = workspace.rocmrun("launch", exclusive, *options)
    allowed = workspace.rocmrun("launch", easy, *options)

    assert refused.returncode == 125
    assert "error[gpu-busy]" in refused.stderr
    assert "process 4242" in refused.stderr
    assert allowed.returncode == 0


def test_the_guards_lock_opens_for_every_user(gpus: Gpus) -> None:
    """Whoever starts the second run on a GPU may be somebody else."""
    look(gpus.workspace, gpus.profile, *gpus.options)
    lock = Path(f"/run/lock/rocmrun/renderD{gpus.minors[0]}.lock")

    assert stat.S_IMODE(lock.stat().st_mode) == 0o666
    assert stat.S_IMODE(lock.parent.stat().st_mode) == 0o1777
