"""Containers that really run, throttled, short of memory, with and without their GPU nodes, as the doctor sees them."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.terminals import terminal
from tests.docker.waiting import until
from tests.hosts import FakeNode
from tests.running_machines import write_sensors
from tests.workspace import Rocmrun, Workspace

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")

READY = b"ready"
MIB = 1 << 20
# Takes nearly all that it is given: memory, shared memory, threads, and every moment of its CPU share.
STRAINED = """
import pathlib, threading, time
def held():
    for name in ("memory/memory.usage_in_bytes", "memory.current"):
        path = pathlib.Path("/sys/fs/cgroup", name)
        if path.exists():
            return int(path.read_text())
pathlib.Path("/dev/shm/tensor").write_bytes(b"x" * (15 << 20))
pieces = []
while held() < 0.93 * (128 << 20):
    pieces.append(b"x" * (1 << 20))
for _ in range(27):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
while True:
    pass
"""
HOLDS = """
import os, sys, time
kept = [os.open(path, os.O_RDWR) for path in sys.argv[1:]]
print("ready", flush=True)
time.sleep(600)
"""


def examined(rocmrun: Rocmrun, name: str, *words: str) -> dict[str, Any]:
    """Return what the doctor says of a container, with its exit code."""
    done = rocmrun("doctor", "--container", name, "--json", *words)
    assert done.returncode in {0, 1}, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said | {"code": done.returncode}


def checks(said: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the checks by their ids; of several the first that is not ok."""
    found: dict[str, dict[str, str]] = {}
    for check in said["checks"]:
        if check["id"] not in found or found[check["id"]]["result"] == "ok":
            found[check["id"]] = check
    return found


def ready(container: Container) -> Container:
    """Wait until a container has said that it is ready."""
    until(lambda: READY in container.logs(), f"{container.name} ready")
    return container


@pytest.fixture
def strained(
    engine: docker.DockerClient, python_image: str, workspace: Workspace
) -> Iterator[Container]:
    """A container that rocmrun did not start, at the end of every limit."""
    container = engine.containers.run(
        python_image,
        ["python3", "-c", STRAINED],
        name=f"strained-{workspace.token}",
        environment={"NCCL_DEBUG": "INFO"},
        mem_limit=128 * MIB,
        shm_size=16 * MIB,
        pids_limit=30,
        detach=True,
    )
    try:
        # Small enough to be used up on a machine that is busy, and so only once it is ready.
        ready(container).update(cpu_quota=5_000, cpu_period=100_000)
        yield container
    finally:
        container.remove(force=True)


def test_a_container_at_the_end_of_its_limits(strained: Container, rocmrun: Rocmrun) -> None:
    """Quota, memory, threads and shared memory, each with how it is raised; and its log is turned up."""
    said = examined(rocmrun, str(strained.name))
    found = checks(said)

    assert {key: (found[key]["result"], found[key]["kind"]) for key in ("state", "devices", "cpu-quota", "memory", "pids", "shm")} == {
        "state": ("ok", ""),
        "devices": ("ok", ""),
        "cpu-quota": ("warn", "cpu-quota-throttling"),
        "memory": ("warn", "oom-cgroup-137"),
        "pids": ("warn", "pids-limit"),
        "shm": ("warn", "shm-too-small"),
    }  # fmt: skip
    assert f"docker update --cpus N {strained.name}" in found["cpu-quota"]["hint"]
    assert "of 0.05 CPUs used" in found["cpu-quota"]["evidence"]
    assert found["pids"]["evidence"] == "28 processes and threads of at most 30"
    assert "NCCL_DEBUG=INFO" in found["operator-logs"]["evidence"]
    assert said["container"]["profile"] is None
    assert [each["name"] for each in said["processes"]] == ["python3"]
    assert {row["what"] for row in said["measured"]} == {"CPUs used", "periods throttled", "memory"}


def test_on_a_terminal_it_is_watched_until_ctrl_c(strained: Container, rocmrun: Rocmrun) -> None:
    """A line that is drawn again; what was seen until then is judged, and the exit code is its own."""
    words = ("doctor", "--container", str(strained.name), "--watch", "60", "--interval", "0.2")
    with terminal(rocmrun, *words, columns=200) as shown:
        shown.until(b"1 of 60 s")
        shown.process.send_signal(signal.SIGINT)
        text = shown.until(b"operator-logs").decode()
        assert shown.process.wait(timeout=60) == 0

    assert "ended by Ctrl-C" in text
    assert "periods throttled" in text
    assert "stopped in" in text


@needs_root
def test_the_nodes_that_a_container_holds(
    engine: docker.DockerClient, python_image: str, rocmrun: Rocmrun, workspace: Workspace
) -> None:
    """Two GPUs were given by hand; one is held, and the sensors of both are read."""
    minors = render_minors(2)
    root = gpu_host(workspace.path / "host", minors, kfd=FakeNode(mode=0o666), render=FakeNode(mode=0o666))  # fmt: skip
    write_sensors(root, "0000:05:00.0")
    write_sensors(root, "0000:06:00.0", gpu_busy_percent="0", pp_dpm_sclk="0: 132Mhz *\n1: 2100Mhz")
    paths = ["/dev/kfd", *(f"/dev/dri/renderD{minor}" for minor in minors)]
    container = engine.containers.run(
        python_image,
        ["python3", "-c", HOLDS, *paths[:2]],
        name=f"holds-{workspace.token}",
        devices=[f"{root}{path}:{path}:rw" for path in paths],
        user="65532:65532",
        detach=True,
    )
    try:
        said = examined(rocmrun, str(ready(container).id)[:12], "--host-root", str(root))
    finally:
        container.remove(force=True)
    found = checks(said)

    assert found["devices"]["evidence"] == f"1 process with /dev/kfd open; open: renderD{minors[0]}; given and not held: renderD{minors[1]}"  # fmt: skip
    assert found["devices"]["result"] == "warn"
    assert said["processes"][0]["nodes"] == sorted(paths[:2])
    assert "GPU 0: busy 97 %" in found["gpu-busy"]["evidence"]
    assert found["bottleneck"]["evidence"] == "GPU 1 idles while another is 97 % busy"
    assert [gpu["render_minor"] for gpu in said["gpus"]] == minors


@needs_root
def test_a_workload_that_runs_on_the_cpu(python_image: str, workspace: Workspace) -> None:
    """Launched with a GPU that it never opens, found by its profile, and proved to be no GPU's work."""
    minors = render_minors(1)
    node = FakeNode(gid=4711)
    root = gpu_host(workspace.path / "host", minors, kfd=node, render=node)
    write_sensors(root, "0000:05:00.0", gpu_busy_percent="0")
    profile = workspace.profile(python_image, accelerator="rocm", select="all", name="cpu")
    rocmrun, host = workspace.rocmrun, ("--host-root", str(root))
    spin = ("python3", "-c", "while True: pass")
    rocmrun("launch", profile, "--no-probe", "--detach", *host, "--", *spin, check=True)
    try:
        said = examined(rocmrun, profile, *host)
    finally:
        rocmrun("stop", profile, "--time", "0", check=True)
    found = checks(said)

    assert said["container"]["profile"] == profile
    assert (found["devices"]["result"], found["devices"]["kind"]) == ("warn", "cpu-fallback")
    assert found["devices"]["hint"] == f"rocmrun probe {profile}"
    assert found["bottleneck"]["result"] == "warn"
    assert "the GPU idles (0 % in 2 samples)" in found["bottleneck"]["evidence"]


def test_one_that_the_kernel_killed(
    engine: docker.DockerClient, python_image: str, rocmrun: Rocmrun, workspace: Workspace
) -> None:
    """At its limit of memory: the kind is named, and the exit code is 1."""
    container = engine.containers.run(
        python_image,
        ["python3", "-c", "held = [b'x' * (1 << 20) for _ in range(512)]"],
        name=f"killed-{workspace.token}",
        mem_limit=24 * MIB,
        memswap_limit=24 * MIB,
        detach=True,
    )
    try:
        container.wait()
        container.reload()
        oom_killed = container.attrs["State"]["OOMKilled"]
        said = examined(rocmrun, str(container.name))
    finally:
        container.remove(force=True)

    assert said["code"] == 1
    state = checks(said)["state"]
    assert (state["result"], state["kind"]) == ("blocker", "oom-cgroup-137")
    # Docker 20.10 on cgroup v1 can miss the kernel's notice; its own word decides what is said.
    noticed = "the kernel killed it at its limit of memory"
    unnoticed = "SIGKILL: from outside, or by the kernel for want of memory"
    assert state["evidence"] == f"exited, exit code 137; {noticed if oom_killed else unnoticed}"
    assert said["looked"]["samples"] == 0


def test_a_name_that_nothing_has(
    engine: docker.DockerClient, tiny_image: str, rocmrun: Rocmrun, workspace: Workspace
) -> None:
    """The input must change; what is near is named."""
    name = f"near-{workspace.token}"
    container = engine.containers.create(tiny_image, ["true"], name=name)
    try:
        done = rocmrun("doctor", "--container", f"{name}x", "--json")
    finally:
        container.remove(force=True)

    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["slug"]) == (2, "workload-not-found")
    assert f"there is {name}" in error["details"]
