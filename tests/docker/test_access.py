"""The forecast of who may open what, against what a process inside sees: every combination on a real engine.

Nodes are null devices, whose driver answers everybody, so that only owner and mode speak; for the device
cgroup it is a number of DRM that no driver has: EPERM where it is refused, ENXIO where it is granted.
"""

import json
import os
import stat
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from rocmrun.core.access import AccessForecast, forecast_access
from rocmrun.core.create_request import create_request
from rocmrun.core.host import DeviceNode, HostFacts
from rocmrun.core.plan import Plan, PlannedDevice, PlannedMount
from rocmrun.system.sysfs import read_host, read_path
from tests.builders import ENGINE, plan
from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.inside import look
from tests.hosts import FakeNode
from tests.workspace import Workspace

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")

NULL, NO_DRIVER, NO_OTHER = os.makedev(1, 3), os.makedev(226, 200), os.makedev(226, 201)
USER, OTHER, GROUP, ELSEWHERE = 4710, 4720, 4711, 4799

# Name → mode, owner, group, number.
NODES = {
    "owner-only": (0o600, USER, ELSEWHERE, NULL),
    "owner-reads": (0o460, USER, GROUP, NULL),
    "owner-nothing": (0o060, USER, GROUP, NULL),
    "group": (0o660, 0, GROUP, NULL),
    "group-reads": (0o640, 0, GROUP, NULL),
    "group-nothing": (0o606, 0, GROUP, NULL),
    "everybody": (0o666, 0, 0, NULL),
    "others-write": (0o602, 0, ELSEWHERE, NULL),
    "root-only": (0o600, 0, 0, NULL),
    "nobody": (0o000, 0, 0, NULL),
    "no-driver": (0o666, 0, 0, NO_DRIVER),
    "no-driver-group": (0o660, 0, GROUP, NO_DRIVER),
}
FOR_READING = "no-driver-read"
WITH_ACL = "with-acl"

# Who opens: user, primary group, further groups, capabilities.
WHO: dict[str, tuple[int, int, tuple[int, ...], tuple[str, ...]]] = {
    "user": (USER, USER, (), ()),
    "user-in-group": (USER, USER, (GROUP,), ()),
    "other": (OTHER, OTHER, (), ()),
    "other-in-group": (OTHER, OTHER, (GROUP, 992), ()),
    "primary-group": (OTHER, GROUP, (), ()),
    "capability-without-effect": (OTHER, OTHER, (), ("DAC_OVERRIDE",)),
    "root": (0, 0, (), ()),
    "root-in-group": (0, 0, (GROUP,), ()),
    "root-overrides": (0, 0, (), ("DAC_OVERRIDE",)),
}

# Name → mode, owner, group, whether it is mounted to write.
FOLDERS = {
    "open": (0o755, 0, 0, False),
    "open-rw": (0o755, 0, 0, True),
    "owner": (0o700, USER, ELSEWHERE, False),
    "owner-rw": (0o700, USER, ELSEWHERE, True),
    "group-ro": (0o750, 0, GROUP, False),
    "group-rw": (0o770, 0, GROUP, True),
    "group-not-rw": (0o750, 0, GROUP, True),
    "no-entry": (0o744, 0, 0, False),
    "no-list": (0o711, 0, 0, False),
    "closed": (0o700, 0, 0, False),
    "world-rw": (0o777, 0, 0, True),
}
TRY = r"""
import errno, json, os, sys

def attempt(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"

def use(path, write):
    os.listdir(path)
    os.stat(os.path.join(path, "."))
    if write:
        name = os.path.join(path, "written")
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        os.unlink(name)

nodes, folders = json.loads(sys.argv[1])
print(json.dumps([
    {path: attempt(lambda: os.close(os.open(path, os.O_RDWR))) for path in nodes},
    {path: attempt(lambda: use(path, write)) for path, write in folders.items()},
]))
"""


def make_node(path: Path, mode: int, uid: int, gid: int, number: int) -> DeviceNode:
    os.mknod(path, stat.S_IFCHR | 0o600, number)
    os.chown(path, uid, gid)
    path.chmod(mode)
    return DeviceNode(
        path=f"/dev/tried/{path.name}", host_path=str(path), mode=mode, uid=uid, gid=gid,
        major=os.major(number), minor=os.minor(number),
    )  # fmt: skip


def give_acl(path: Path, uid: int) -> None:
    """Let *uid* read and write through an ACL, as logind does for who sits at the screen."""
    nobody = 0xFFFFFFFF
    entries = ((1, 6, nobody), (2, 6, uid), (4, 0, nobody), (0x10, 6, nobody), (0x20, 0, nobody))
    text = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(path, "system.posix_acl_access", text)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nodes and folders of every kind. Their parent is closed to everybody but root, which must not matter."""
    root = tmp_path_factory.mktemp("access")
    root.chmod(0o700)
    for name, facts in NODES.items():
        make_node(root / name, *facts)
    make_node(root / FOR_READING, 0o666, 0, 0, NO_OTHER)
    make_node(root / WITH_ACL, 0o600, 0, 0, NULL)
    give_acl(root / WITH_ACL, USER)
    for name, (mode, uid, gid, _) in FOLDERS.items():
        folder = root / f"{name}.d"
        folder.mkdir()
        os.chown(folder, uid, gid)
        folder.chmod(mode)
    return root


@pytest.fixture(scope="module")
def facts(tree: Path) -> HostFacts:
    """The nodes as rocmrun reads them."""
    names = (*NODES, FOR_READING, WITH_ACL)
    found = read_host(device_globs=[str(tree / name) for name in names]).devices
    assert len(found) == len(names)
    renamed = (replace(node, path=f"/dev/tried/{Path(node.path).name}") for node in found)
    return HostFacts(devices=tuple(renamed))


def plan_for(image_id: str, who: str, tree: Path) -> Plan:
    """A plan with every node and every folder, for one user."""
    uid, gid, groups, capabilities = WHO[who]
    made = plan({"gpus": {"select": ["none"]}, "accelerator": "cpu", "cache": {"mode": "tmpfs"}})
    permissions = dict.fromkeys(NODES, "rw") | {FOR_READING: "r", WITH_ACL: "rw"}
    return made.with_changes(
        image=replace(made.image, image_id=image_id),
        uid=uid, gid=gid, groups=groups, cap_add=capabilities,
        memory_bytes=None, ulimits=(),
        devices=tuple(
            PlannedDevice(path=f"/dev/tried/{name}", host_path=str(tree / name), permissions=allowed)
            for name, allowed in sorted(permissions.items())
        ),
        mounts=tuple(
            PlannedMount(target=f"/folders/{name}", source=str(tree / f"{name}.d"), read_only=not write)
            for name, (_, _, _, write) in sorted(FOLDERS.items())
        ),
    )  # fmt: skip


def seen_by(engine: docker.DockerClient, made: Plan) -> list[dict[str, str]]:
    """What a process of the plan's own container gets for each node and each folder."""
    asked = [
        [device.path for device in made.devices],
        {m.target: not m.read_only for m in made.mounts},
    ]
    body = create_request(
        made, role="workload", command=("python3", "-c", TRY, json.dumps(asked)), keep_log=True
    )  # fmt: skip
    api: Any = engine.api  # only partly typed
    container = api.create_container_from_config(body)["Id"]
    try:
        api.start(container)
        assert api.wait(container)["StatusCode"] == 0, api.logs(container)
        seen: list[dict[str, str]] = json.loads(api.logs(container, stdout=True, stderr=False))
    finally:
        api.remove_container(container, force=True, v=True)
    return seen


@pytest.fixture(scope="module")
def compared(
    engine: docker.DockerClient, python_image: str, tree: Path, facts: HostFacts
) -> Callable[[str], tuple[AccessForecast, list[dict[str, str]]]]:
    """For a user: the forecast, and what was seen. One container each."""
    image_id = str(engine.images.get(python_image).id)
    known: dict[str, tuple[AccessForecast, list[dict[str, str]]]] = {}

    def compare(who: str) -> tuple[AccessForecast, list[dict[str, str]]]:
        if who not in known:
            made = plan_for(image_id, who, tree)
            paths = {mount.source: read_path(mount.source) for mount in made.mounts}
            forecast = forecast_access(made, facts, ENGINE, paths, caller_uid=0)
            known[who] = forecast, seen_by(engine, made)
        return known[who]

    return compare


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", [*NODES, FOR_READING, WITH_ACL])
def test_a_node_opens_as_forecast(
    compared: Callable[[str], tuple[AccessForecast, list[dict[str, str]]]], who: str, name: str
) -> None:
    """Mode, owner, user and groups decide, then the device cgroup; a node without driver says ENXIO when granted."""
    forecast, (nodes, _) = compared(who)
    path = f"/dev/tried/{name}"
    (said,) = (node.errno for node in forecast.nodes if node.path == path)

    assert {"ok": "0", "ENXIO": "0"}.get(nodes[path], nodes[path]) == said


def test_both_ways_of_refusing_were_seen(
    compared: Callable[[str], tuple[AccessForecast, list[dict[str, str]]]],
) -> None:
    """The comparison above is of answers of every kind."""
    nodes, folders = compared("other-in-group")[1]

    assert {"ok", "EACCES", "EPERM", "ENXIO"} == set(nodes.values())
    assert {"ok", "EACCES"} == set(folders.values())


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", FOLDERS)
def test_a_mount_opens_as_forecast(
    compared: Callable[[str], tuple[AccessForecast, list[dict[str, str]]]], who: str, name: str
) -> None:
    """The source's own mode and owner decide, whatever guards its parents on the host."""
    forecast, (_, folders) = compared(who)
    path = f"/folders/{name}"
    (said,) = (mount.errno for mount in forecast.mounts if mount.target == path)

    assert {"ok": "0"}.get(folders[path], folders[path]) == said


def planned(workspace: Workspace, words: Sequence[str]) -> dict[str, Any]:
    return dict(
        json.loads(workspace.rocmrun("plan", *words, "--json", check=True).stdout)["access"]
    )


def test_a_plan_for_a_host_tree_says_what_its_launch_sees(
    workspace: Workspace, python_image: str
) -> None:
    """The whole way: `plan --json` of a tree, then a launch of the same, one GPU of two."""
    kfd, render = FakeNode(gid=GROUP), FakeNode(gid=992, mode=0o666)
    minors = render_minors(2)
    root = gpu_host(workspace.path / "host", minors, kfd=kfd, render=render)
    profile = workspace.profile(python_image, accelerator="rocm", select="all", name="access")
    words = (profile, "--host-root", str(root), "--gpu", "index:0")

    forecast = planned(workspace, words)
    paths = ["/dev/kfd", *(f"/dev/dri/renderD{minor}" for minor in minors)]
    seen = look(workspace, *words, open=paths)["open"]

    said = {node["path"]: node["errno"] for node in forecast["nodes"]}
    assert said == {"/dev/kfd": "0", paths[1]: "0"}
    assert forecast["hidden"] == [paths[2]]
    assert seen == {"/dev/kfd": "ok", paths[1]: "ok", paths[2]: "ENOENT"}


def test_an_owner_without_rights_is_refused_before_anything_starts(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """The kernel looks at the owner's bits alone: no group helps, and the GPU library would give up on all GPUs."""
    kfd, render = FakeNode(gid=GROUP), FakeNode(uid=USER, gid=GROUP, mode=0o060)
    root = gpu_host(workspace.path / "host", render_minors(1), kfd=kfd, render=render)
    user = f'[container]\nuser = "{USER}:{USER}"\n'
    profile = workspace.profile(python_image, user, accelerator="rocm", select="all", name="owner")

    refused = workspace.rocmrun("launch", profile, "--host-root", str(root), "--", "true")

    assert refused.returncode == 125
    assert "error[device-permission]" in refused.stderr
    assert "EACCES on one node breaks every GPU" in refused.stderr


def test_a_mount_that_cannot_be_read_is_refused_before_anything_starts(
    workspace: Workspace, python_image: str
) -> None:
    """With the component, and a fix that works; several at once."""
    closed, shared = workspace.path / "closed", workspace.path / "shared"
    for folder, mode in ((closed, 0o700), (shared, 0o750)):
        folder.mkdir()
        folder.chmod(mode)
    os.chown(shared, 0, GROUP)
    volumes = ("-v", f"{shared}:/shared:ro", "-v", f"{closed}:/closed:ro")
    profile = workspace.profile(python_image, name="mounts")

    refused = workspace.rocmrun("launch", profile, *volumes, "--", "true")
    fixed = workspace.profile(
        python_image,
        f'[container]\ngroups = ["path:/shared"]\n[[mounts]]\nsource = "{shared}"\ntarget = "/shared"\n',
        name="fixed",
    )
    listed = workspace.rocmrun("launch", fixed, "--no-probe", "--", "ls", "/shared")

    assert refused.returncode == 125
    assert "error[mount-unreadable]" in refused.stderr
    assert f"{shared} → /shared: {shared} needs rx, mode 0750" in refused.stderr
    assert f"{closed} → /closed: {closed} needs rx, mode 0700" in refused.stderr
    assert "chmod" not in refused.stderr
    assert (listed.returncode, listed.stderr.count("error")) == (0, 0)
