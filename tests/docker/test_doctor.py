"""Faults produced for real on a real engine, and what the doctor makes of what programs then print."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import APIError
from docker.types import DeviceRequest, Mount, Ulimit

from scripts import registry
from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.jobs import Jobs
from tests.hosts import FakeNode
from tests.unit.core.diagnosis.catalogue import found_in, names

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")

NOBODY = 65532
UNALLOTTED = os.makedev(226, 250)

# Each is run by a Python of its own, so that what is read is what people see: a traceback, or a program's words.
ATTEMPTS = {
    "kfd-not-mapped": "import os; os.open('/dev/kfd', os.O_RDWR)",
    "uid-without-passwd-entry": "import getpass, os; os.environ.pop('USER', 0); os.environ.pop('LOGNAME', 0); getpass.getuser()",
    "home-not-writable": "import os; os.makedirs(os.path.expanduser('~/.cache/miopen'))",
    "readonly-cache": "import os; os.makedirs('/home/.cache/torch/inductor')",
    "readonly-rootfs": "open('/srv/output.log', 'w')",
    "jit-in-site-packages": "import os, shutil; os.makedirs('/usr/lib/python3/dist-packages/aiter/jit/build')",
    "tmp-missing": "import tempfile; tempfile.mkdtemp()",
    "port-taken": "import socket; a, b = socket.socket(), socket.socket(); a.bind(('127.0.0.1', 8123)); a.listen(); b.bind(('127.0.0.1', 8123))",
    "pids-limit": "import threading, time, os\nfor _ in range(200): threading.Thread(target=time.sleep, args=(1,), daemon=True).start()",
    "memlock": "import ctypes; libc = ctypes.CDLL(None, use_errno=True); size = 1 << 24; block = ctypes.create_string_buffer(size); failed = libc.mlock(block, size); import os; print('mlock:', os.strerror(ctypes.get_errno()) if failed else 'locked')",
    "seccomp-mbind": "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); libc.syscall(238, 0, None, 0); print('set_mempolicy:', os.strerror(ctypes.get_errno()))",
    "cap-perfmon": "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); libc.syscall(298, ctypes.create_string_buffer(128), 0, -1, -1, 0); print('perf_event_open:', os.strerror(ctypes.get_errno()))",
    "path-eacces-nonroot": "import subprocess; subprocess.run(['/root/bin/server'])",
    "mount-unreadable": "open('/models/config.json')",
    "cuda-only-extension": "import ctypes; ctypes.CDLL('libcudart.so.12')",
    "missing-rocm-libs": "import ctypes; ctypes.CDLL('libamdhip64.so.7')",
    "image-missing-headers": "import subprocess; subprocess.run(['gcc', '-shared', 'x.c'])",
}  # fmt: skip
RUN_ALL = """
import json, subprocess, sys
said = {}
for name, program in json.loads(sys.argv[1]).items():
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said[name] = done.stderr + done.stdout
for path in ("/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/pids.max"):
    try:
        said["pids-limit"] += "pids.max: " + open(path).read()
    except OSError:
        pass
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def hardened(
    engine: docker.DockerClient, python_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, str]:
    """What each attempt printed in one container with little rights."""
    model = tmp_path_factory.mktemp("model")
    (model / "config.json").write_text("{}")
    (model / "config.json").chmod(0o600)
    model.chmod(0o700)
    said = engine.containers.run(
        python_image,
        ["python3", "-c", RUN_ALL, json.dumps(ATTEMPTS)],
        user="4242:4242",
        environment={"HOME": "/"},
        read_only=True,
        cap_drop=["ALL"],
        network_mode="none",
        pids_limit=24,
        ulimits=[Ulimit(name="memlock", soft=65536, hard=65536)],
        mounts=[Mount("/models", str(model), type="bind", read_only=True)],
        remove=True,
    )
    found: dict[str, str] = json.loads(said)
    return found


@pytest.mark.parametrize("kind", ATTEMPTS)
def test_what_hardening_takes_away_is_recognised(hardened: Mapping[str, str], kind: str) -> None:
    """The cause that the container really has is the first one."""
    assert names(found_in(hardened[kind]))[:1] == [kind], hardened[kind]


LOOK = """
import os, subprocess, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDWR))
        print(path, "opens")
    except OSError as error:
        print(f"OSError: {error}")
    subprocess.run(["ls", "-ln", path])
subprocess.run(["id"])
print(open("/proc/self/uid_map").read())
"""


def opened_by_nobody(
    engine: docker.DockerClient, image: str, root: Path, render: str, *groups: int
) -> str:
    said: bytes = engine.containers.run(
        image,
        ["python3", "-c", LOOK, "/dev/kfd", render],
        user=f"{NOBODY}:{NOBODY}",
        group_add=[str(group) for group in groups],
        devices=[f"{root}{path}:{path}:rw" for path in ("/dev/kfd", render)],
        remove=True,
    )
    return said.decode()


@needs_root
@pytest.mark.parametrize(
    ("kfd", "render", "groups", "kind"),
    [
        (FakeNode(gid=4711), FakeNode(gid=4711), (44,), "render-gid-mismatch"),
        (FakeNode(gid=0, mode=0o600), FakeNode(gid=4711), (4711,), "host-udev-perms"),
        (FakeNode(gid=0), FakeNode(gid=0), (44,), "host-udev-perms"),
        (FakeNode(gid=0), FakeNode(gid=4711), (4711,), "kfd-render-gid-differ"),
        (FakeNode(gid=4711), FakeNode(gid=4712), (4712,), "kfd-render-gid-differ"),
    ],
    ids=["wrong group", "0600", "root's group", "kfd alone root's", "two groups"],
)
def test_a_node_that_cannot_be_opened(
    engine: docker.DockerClient,
    python_image: str,
    tmp_path: Path,
    kfd: FakeNode,
    render: FakeNode,
    groups: tuple[int, ...],
    kind: str,
) -> None:
    """The same errno, told apart by numbers alone."""
    minor = render_minors(1)[0]
    root, path = (
        gpu_host(tmp_path / "host", [minor], kfd=kfd, render=render),
        f"/dev/dri/renderD{minor}",
    )

    said = opened_by_nobody(engine, python_image, root, path, *groups)

    assert "EACCES" in said or "Permission denied" in said
    assert names(found_in(said))[:1] == [kind], said


@needs_root
def test_a_node_that_the_device_cgroup_refuses(
    engine: docker.DockerClient, python_image: str, tmp_path: Path
) -> None:
    """Bind-mounted, its mode open to all, and EPERM."""
    node = tmp_path / "renderD250"
    os.mknod(node, 0o020666, UNALLOTTED)
    node.chmod(0o666)

    said: bytes = engine.containers.run(
        python_image,
        ["python3", "-c", LOOK, "/dev/dri/renderD250"],
        mounts=[Mount("/dev/dri/renderD250", str(node), type="bind")],
        remove=True,
    )

    assert b"Operation not permitted" in said
    assert names(found_in(said.decode()))[:1] == ["cgroup-device-denied"], said


STALE = """
import os, subprocess
for words in (["id", "-G"], ["id", "-G", "worker"]):
    print("$", *words, flush=True)
    subprocess.run(words)
subprocess.run(["ls", "-ln", "/dev/kfd"])
os.open("/dev/kfd", os.O_RDWR)
"""


@needs_root
def test_a_session_older_than_its_group(
    engine: docker.DockerClient, python_image: str, tmp_path: Path
) -> None:
    """The database has the user in the group, and the process does not hold it yet."""
    node = FakeNode(gid=4711)
    root = gpu_host(tmp_path / "host", render_minors(1), kfd=node, render=node)
    passwd, group = tmp_path / "passwd", tmp_path / "group"
    passwd.write_text("root:x:0:0::/:/bin/sh\nworker:x:4242:4242::/:/bin/sh\n")
    group.write_text("root:x:0:\nrender:x:4711:worker\n")
    container = engine.containers.run(
        python_image,
        ["python3", "-c", STALE],
        # Numbers alone: the engine would read the image's database for a name.
        user="4242:4242",
        devices=[f"{root}/dev/kfd:/dev/kfd:rw"],
        mounts=[Mount(f"/etc/{file.name}", str(file), type="bind") for file in (passwd, group)],
        detach=True,
    )
    container.wait()
    said = container.logs().decode()
    container.remove(force=True)

    assert names(found_in(said))[:1] == ["stale-session-groups"], said


def refused(engine: docker.DockerClient, image: str, command: str, **how: Any) -> str:
    """Return the engine's words when it does not start a container."""
    container = engine.containers.create(image, [command], **how)
    with pytest.raises(APIError) as refusal:
        container.start()
    container.remove(force=True)
    return f"docker: Error response from daemon: {refusal.value.explanation}"


def test_what_the_engine_refuses_to_start(
    engine: docker.DockerClient, python_image: str, tiny_image: str
) -> None:
    """A node that the host lacks, a driver that no engine has, a program that the user may not reach, no Python, a lost tag."""
    said = {
        "kfd-missing-on-host": refused(engine, tiny_image, "sh", devices=["/dev/kfd:/dev/kfd:rw"]),
        "render-node-renumbered": refused(
            engine, tiny_image, "sh", devices=["/dev/dri/renderD199:/dev/dri/renderD199:rw"]
        ),
        "wrong-gpus-flag": refused(
            engine, tiny_image, "sh", device_requests=[DeviceRequest(driver="rocm", count=-1, capabilities=[["gpu"]])]
        ),
        "path-eacces-nonroot": refused(engine, python_image, "/root/run", user=str(NOBODY)),
        "missing-python": refused(engine, tiny_image, "python3"),
    }  # fmt: skip
    with pytest.raises(APIError) as unknown:
        engine.api.pull(f"{registry.ADDRESS}/rocmrun/tiny", tag="was-never-there")
    said["image-manifest-unknown"] = str(unknown.value.explanation)

    assert {kind: names(found_in(text))[:1] for kind, text in said.items()} == {
        kind: [kind] for kind in said
    }, said


def test_root_without_its_capability_obeys_modes(
    engine: docker.DockerClient, tiny_image: str
) -> None:
    """cap-drop ALL, a directory of another uid."""
    container = engine.containers.run(
        tiny_image,
        ["sh", "-c", "touch /logs/x; grep CapEff /proc/self/status; id"],
        cap_drop=["ALL"],
        tmpfs={"/logs": "uid=1000,mode=0755"},
        detach=True,
    )
    try:
        container.wait()
        said = container.logs().decode()
    finally:
        container.remove(force=True)

    text = f"{said}\nflags: {json.dumps(['--cap-drop=ALL'])}\ncontainer_user: root"
    assert names(found_in(text))[:1] == ["cap-drop-dac-override"], text


def test_a_kill_at_the_limit_of_memory(engine: docker.DockerClient, python_image: str) -> None:
    """The engine says 137 and OOMKilled."""
    container = engine.containers.run(
        python_image,
        ["python3", "-c", "b'x' * (1 << 28)"],
        mem_limit="24m",
        memswap_limit="24m",
        detach=True,
    )
    try:
        ended = container.wait()
        container.reload()
        state = container.attrs["State"]
    finally:
        container.remove(force=True)

    text = f"exited with code {ended['StatusCode']}\nOOMKilled: {json.dumps(state['OOMKilled'])}"
    found = found_in(text)
    assert names(found)[:1] == ["oom-cgroup-137"], text


TORCH = """
import os, subprocess, sys, torch
print(torch.__version__, torch.version.hip)
from torch.utils.data import DataLoader

class Large(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return torch.ones(12 << 20)

os.environ["GLOO_SOCKET_IFNAME"] = "eth0"
try:
    torch.distributed.init_process_group("gloo", init_method="file:///tmp/rendezvous", rank=0, world_size=1)
except Exception as error:
    print("gloo", type(error).__name__, error, file=sys.stderr)
print("== loader", file=sys.stderr, flush=True)
for batch in DataLoader(Large(), num_workers=2, batch_size=2):
    pass
"""


def test_torch_in_too_small_a_container(engine: docker.DockerClient, demo_image: str) -> None:
    """The CPU's wheel where ROCm's was expected, no network, 64 MiB of shared memory: one container, three causes."""
    container = engine.containers.run(
        demo_image,
        ["python3", "-c", TORCH],
        network_mode="none",
        shm_size="64m",
        environment={"OMP_NUM_THREADS": "1"},
        detach=True,
    )
    try:
        container.wait()
        version = container.logs(stderr=False).decode()
        gloo, _, loader = container.logs(stdout=False).decode().partition("== loader")
    finally:
        container.remove(force=True)

    assert names(found_in(loader))[:1] == ["shm-too-small"], loader
    assert names(found_in(gloo))[:1] == ["network-none"], gloo
    found = found_in(f"{version}\nexpected: torch+rocm7.2")
    assert names(found)[:1] == ["python-torch-wheel-overwrote-rocm"], version


NOEXEC = """
import ctypes, pathlib, subprocess
pathlib.Path("/scratch/x.c").write_text("int f(void) { return 1; }")
subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-o", "/scratch/kernel.so", "/scratch/x.c"], check=True)
ctypes.CDLL("/scratch/kernel.so")
"""


def test_a_library_compiled_into_a_noexec_mount(
    engine: docker.DockerClient, compiler_image: str
) -> None:
    """Docker's tmpfs is noexec unless told otherwise."""
    container = engine.containers.run(
        compiler_image, ["python3", "-c", NOEXEC + "\n"], tmpfs={"/scratch": ""}, detach=True
    )
    try:
        container.wait()
        said = container.logs().decode()
    finally:
        container.remove(force=True)

    mounts = "tmpfs /scratch tmpfs rw,nosuid,nodev,noexec"
    found = found_in(f"{said}\nmounts: {mounts}")
    assert "failed to map segment" in said
    assert names(found)[:1] == ["tmp-noexec"], said


def test_an_image_without_python_is_told_by_rocmrun_itself(jobs: Jobs) -> None:
    """The error has a name and a hint of its own; its words read back have the same cause."""
    done = jobs.rocmrun("launch", jobs.tiny, "--", "python3", "-c", "0")

    assert done.returncode != 0
    assert "likely cause" not in done.stderr
    assert names(found_in(done.stderr)) == ["missing-python"]


def test_the_command_reads_a_log_and_a_report(jobs: Jobs, tmp_path: Path) -> None:
    """`rocmrun doctor` end to end: a log on stdin, the report of a probe, a profile that is well."""
    log = "Unable to open /dev/kfd read-write: Operation not permitted\nHF_TOKEN=hf_abcdefghijklmnop\n"
    told = jobs.rocmrun("doctor", "--log", "-", "--json", input=log)
    report = tmp_path / "probe.json"
    jobs.rocmrun("probe", jobs.python, "--level", "quick", "--report", str(report))
    well = jobs.rocmrun("doctor", jobs.python, "--probe-report", str(report), "--json")

    first = json.loads(told.stdout)["findings"][0]
    assert (told.returncode, first["kind"]) == (1, "cgroup-device-denied")
    assert "hf_abc" not in told.stdout
    checks = {check["id"] for check in json.loads(well.stdout)["checks"]}
    assert {"driver", "engine", "image-build", "operators", "speed"} <= checks
