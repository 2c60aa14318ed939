"""Images without Python and images without torch: what their probe runs in, and what it says there."""

import io
import json
import os
import secrets
import socket
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.waiting import until
from tests.hosts import FakeNode
from tests.workspace import Workspace

SERVER = Path(__file__).with_name("server.c")
JOB = (
    'extends = "base"\naccelerator = "{accelerator}"\n[image]\nref = "{image}"\n'
    '[gpus]\nselect = ["{select}"]\n[probe]\n{probe}\n'
)
WHOSE = "its user space is the probe's, not the workload's"


@pytest.fixture(scope="module")
def c_server(
    engine: docker.DockerClient, compiler_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """An image that holds one static program and nothing else; its reference and id: no registry has it."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "server.c").write_text(SERVER.read_text())
    engine.containers.run(
        compiler_image,
        ["gcc", "-static", "-O1", "-o", "/build/server", "/build/server.c"],
        volumes={str(folder): {"bind": "/build", "mode": "rw"}},
        network_mode="none",
        remove=True,
    )
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        archive.add(folder / "server", "server")
    reference = f"localhost/rocmrun-test/{secrets.token_hex(6)}"
    engine.api.import_image_from_data(
        tar.getvalue(), repository=reference, tag="1", changes=['ENTRYPOINT ["/server"]']
    )
    yield f"{reference}:1", str(engine.images.get(f"{reference}:1").id)
    engine.images.remove(f"{reference}:1", force=True)


def job(
    workspace: Workspace, image: str, probe: str, *, accelerator: str = "cpu", tables: str = ""
) -> str:
    select = "none" if accelerator == "cpu" else "all"
    text = JOB.format(accelerator=accelerator, image=image, select=select, probe=probe)
    return workspace.write(text + tables)


def answer(path: Path) -> bytes | None:
    """Return what the server says once it listens."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        return client.recv(100)


def test_a_c_server_is_proved_in_another_image_and_serves(
    engine: docker.DockerClient, workspace: Workspace, c_server: tuple[str, str], demo_image: str
) -> None:
    """Both images are locked by one command, one by id and one by digest; the rights of both containers are equal."""
    run, shared = workspace.rocmrun, workspace.path / "s"
    shared.mkdir()
    shared.chmod(0o777)
    mount = f'[[mounts]]\nsource = "{shared}"\ntarget = "/run/s"\nmode = "rw"\n'
    profile = job(workspace, c_server[0], f'image = "{demo_image}"', tables=mount)
    unlocked = run("launch", profile, "--", "/run/s/socket")
    run("lock", profile, check=True)
    planned = run("plan", profile, check=True)
    report, name = workspace.path / "report.json", f"rocmrun-test-c-{workspace.token}"
    words = ("launch", profile, "--report", str(report))
    launched = run(*words, "--detach", "--name", name, "--", "/run/s/socket", check=True)
    try:
        said = until(lambda: answer(shared / "socket"), "an answer of the server")
    finally:
        engine.api.stop(name)
        engine.api.remove_container(name, v=True)
    record = json.loads(report.read_text())
    again = run(*words)

    assert "error[lock-missing]: " in unlocked.stderr
    assert said == b"hello from C\n"
    assert f"probe in   {demo_image} @ sha256:" in planned.stdout
    assert f"in a container with the same rights, in {demo_image} @ sha256:" in launched.stderr
    assert WHOSE in planned.stdout
    assert WHOSE in launched.stderr
    assert (record["probe_outcome"], record["image_id"]) == ("passed", c_server[1])
    assert (record["probe_image_ref"], record["image_digest"]) == (demo_image, None)
    assert (record["torch_version"], record["probe"]["python"][:2]) == (None, "3.")
    # The proof counts for the next start; without a socket to make the server ends at once.
    assert (again.returncode, json.loads(report.read_text())["probe_outcome"]) == (7, "reused")


def test_what_can_be_wrong_with_a_probe_image_is_said_before_anything_starts(
    workspace: Workspace, tiny_image: str
) -> None:
    """Not in the lock, not on this machine, without Python; and without a proof none of it matters."""
    run, absent = workspace.rocmrun, "localhost/rocmrun-test/nowhere:1"
    profile = workspace.profile(tiny_image)
    path = workspace.profiles / f"{profile}.toml"
    text = path.read_text()

    path.write_text(f'{text}[probe]\nimage = "{absent}"\n')
    not_locked = run("launch", profile, "--", "true")
    checked = run("lock", "--check", "--offline", profile)
    with workspace.lockfile.open("a") as lock:
        lock.write(f'\n[[image]]\nref = "{absent}"\nimage-id = "sha256:{"5" * 64}"\n')
        lock.write('source = "local"\n')
    missing = run("launch", profile, "--", "true")
    unproved = run("launch", profile, "--no-probe", "--", "echo", "works")
    path.write_text(f'{text}[probe]\nimage = "{tiny_image}"\n')
    without_python = run("launch", profile, "--", "true")

    where = f"{absent}, the image to probe in of profile {profile}, is not locked"
    assert f"error[lock-missing]: {where}" in not_locked.stderr
    assert checked.returncode == 3
    assert f"missing: {absent} (profile {profile}) is not locked" in checked.stderr
    assert f"error[image-gone]: the image to probe in: {absent} was locked" in missing.stderr
    assert (unproved.returncode, unproved.stdout) == (0, "works\n")
    assert (
        f"the probe needs Python, and python3: not found in {tiny_image}" in without_python.stderr
    )
    assert "[probe] image" in without_python.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")
def test_the_real_hip_says_that_it_finds_no_device(
    workspace: Workspace, hip_image: str, tiny_image: str
) -> None:
    """Debian's libamdhip64 (5.2), in the image that Dockerfile.probe builds, with nodes that are no GPU.

    Recorded of it: hipGetDeviceCount returns 100 there, hipInit 101, and hiprtcCreateProgram dies of
    SIGSEGV: so nothing is compiled where no device was counted.
    """
    node = FakeNode(gid=4711)
    root = gpu_host(workspace.path / "host", render_minors(1), kfd=node, render=node)
    profile = job(
        workspace, tiny_image, f'image = "{hip_image}"\nruntime = "hip"', accelerator="rocm"
    )
    workspace.rocmrun("lock", profile, check=True)
    words = ("probe", profile, "--level", "quick", "--host-root", str(root), "--json")
    done = workspace.rocmrun(*words)
    probe = json.loads(done.stdout)["probe"]
    hip = {check["name"]: check for check in probe["checks"] if check["group"] == "hip"}

    assert (done.returncode, probe["runtime"]) == (9, "hip")
    assert [check for check in probe["checks"] if check["group"] in {"build", "device"}] == []
    assert hip["runtime"]["status"] == "pass"
    assert hip["runtime"]["evidence"]["hip"] == "5.2.21153"
    assert "libamdhip64.so.5" in hip["runtime"]["evidence"]["library"]
    assert hip["device_count"]["status"] == "fail"
    assert hip["device_count"]["reason"].startswith(
        "no device is visible: hipGetDeviceCount returned hipErrorNoDevice (100)"
    )
    assert (hip["identity"]["status"], hip["identity"]["device"]) == ("skipped", 0)
