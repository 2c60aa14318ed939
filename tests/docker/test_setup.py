"""What the set-up starts and builds, on a real engine."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from scripts import images, registry

ROOT = Path(__file__).parents[2]
TOOLS = ("rocminfo", "rocm-smi", "amd-smi")
# One RUN of the probe's Dockerfile installs with apt: its lists come over the network.
BUILD_SECONDS = 240


def free_port() -> int:
    with socket.create_server((registry.HOST, 0)) as server:
        port: int = server.getsockname()[1]
    return port


def inside(engine: docker.DockerClient, image: str, script: str) -> list[str]:
    said: bytes = engine.containers.run(
        image, ["sh", "-c", script], network_mode="none", remove=True
    )
    return said.decode().split()


def test_a_registry_is_started_used_and_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A free port gets a registry; a second set-up uses it, and only the first may stop it."""
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed; the registry here is a container")
    first, second = tmp_path / "first", tmp_path / "second"
    port = free_port()
    registry.ensure(state=first, logs=first, storage=tmp_path / "storage", port=port)
    registry.ensure(state=second, logs=second, storage=tmp_path / "storage", port=port)
    registry.stop(state=second)
    assert registry.answers(port)
    registry.stop(state=first)
    assert not registry.answers(port)

    said = capsys.readouterr().out
    assert "one answers at" in said
    assert "none was started here, nothing to stop" in said


def test_the_images_hold_what_their_names_say(
    engine: docker.DockerClient,
    demo_image: str,
    python_image: str,
    tiny_image: str,
    hip_image: str,
) -> None:
    """torch, or Debian's HIP, on top of Python on top of Debian, with Debian's ROCm tools; and a shell without any."""
    load = "import ctypes; print(ctypes.CDLL('libamdhip64.so.5')._name)"
    torch = "python3 -W error -c 'import torch; print(torch.version.hip, torch.version.cuda)'"
    missing = "python3 -c 'import importlib.util as u; print(u.find_spec(\"torch\"))'"

    assert inside(engine, demo_image, torch) == ["None", "None"]
    assert inside(engine, python_image, missing) == ["None"]
    assert inside(engine, python_image, "command -v rocminfo; command -v rocm-smi") == [
        "/usr/bin/rocminfo",
        "/usr/bin/rocm-smi",
    ]
    assert inside(engine, hip_image, missing) == ["None"]
    assert inside(engine, hip_image, f'python3 -c "{load}"') == ["libamdhip64.so.5"]
    assert inside(engine, tiny_image, "command -v python3 || echo absent") == ["absent"]


def test_images_bear_no_label_of_rocmrun(engine: docker.DockerClient, demo_image: str) -> None:
    """Containers inherit them, and io.rocmrun.* means a container that rocmrun made."""
    labels = engine.images.get(demo_image).labels

    assert list(labels) == [images.RECIPE_LABEL]


@pytest.fixture(scope="module")
def base(
    engine: docker.DockerClient, python_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """An image without rocm-smi and with a user of its own; BuildKit wants it by a name."""
    folder = tmp_path_factory.mktemp("base")
    tag = f"rocmrun-test/base:{os.getpid()}"
    (folder / "Dockerfile").write_text(
        f"FROM {python_image}\nRUN dpkg --purge rocm-smi\nUSER 1234:5678\n"
    )
    engine.images.build(path=str(folder), tag=tag, rm=True, forcerm=True, network_mode="none")
    yield tag
    engine.images.remove(tag)


@pytest.mark.timeout(BUILD_SECONDS)
@pytest.mark.parametrize("builder", ["classic", "BuildKit"])
def test_the_probe_dockerfile_adds_what_a_base_lacks(
    engine: docker.DockerClient, base: str, builder: str
) -> None:
    """Missing tools that the distribution has are added, and the base's user is given back."""
    client = client_with(builder)
    if client is None:
        pytest.skip(f"no docker client here can build with {builder}")
    tag = f"rocmrun-test/probe-{builder.lower()}:{os.getpid()}"
    build = [*client, "build", "--network", "host", "--tag", tag]
    build += ["--build-arg", f"BASE={base}", "--build-arg", "BASE_USER=1234:5678", "-"]
    with (ROOT / "Dockerfile.probe").open() as dockerfile:
        subprocess.run(build, stdin=dockerfile, check=True, env=builder_environment(builder))
    try:
        script = f"id -u; for tool in {' '.join(TOOLS)}; do command -v $tool; done"

        found = inside(engine, tag, f"{script}; ls /var/lib/apt/lists")
        user = engine.images.get(tag).attrs["Config"]["User"]
    finally:
        engine.images.remove(tag)

    assert user == "1234:5678"
    assert found[:3] == ["1234", "/usr/bin/rocminfo", "/usr/bin/rocm-smi"]
    assert [name for name in found[3:] if not name.endswith("amd-smi")] == []


def client_with(builder: str) -> list[str] | None:
    """Return the first docker client that builds with *builder*."""
    trivial = b"FROM scratch\nLABEL a=b\n"
    for program in dict.fromkeys(filter(None, (shutil.which("docker"), "/usr/bin/docker"))):
        if not Path(program).exists():
            continue
        build = [program, "build", "--quiet", "-"]
        done = subprocess.run(
            build, input=trivial, capture_output=True, check=False, env=builder_environment(builder)
        )
        if done.returncode == 0:
            subprocess.run([program, "rmi", done.stdout.strip()], capture_output=True, check=False)
            return [program]
    return None


def builder_environment(builder: str) -> dict[str, str]:
    return {**os.environ, "DOCKER_BUILDKIT": "1" if builder == "BuildKit" else "0"}
