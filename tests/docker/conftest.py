"""A real engine, the images of `make test`, and rocmrun as its users run it.

Without an engine or an image these tests skip and say why; with ROCMRUN_REQUIRE_DOCKER=1, as
`make test` and CI set it, they fail instead.
"""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException, ImageNotFound, NotFound

from scripts import images, registry
from tests.docker.gpu_hosts import forget_minors
from tests.docker.inside import workspace_at
from tests.docker.jobs import Jobs
from tests.docker.registry_content import Repository, unavailable
from tests.workspace import Rocmrun, Workspace, left_behind

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before -m selects by the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here: it needs an engine, and may talk to loopback and nowhere else."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.docker)
            item.add_marker(pytest.mark.allow_hosts([registry.HOST]))


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """The engine that answers."""
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except DockerException as error:
        unavailable(f"no Docker engine answers: {error}")
    yield client
    client.close()


@pytest.fixture(scope="session")
def demo_image(engine: docker.DockerClient) -> str:
    """Debian with python3, the CPU build of torch, rocminfo and rocm-smi."""
    return _built(engine, images.DEMO)


@pytest.fixture(scope="session")
def python_image(engine: docker.DockerClient) -> str:
    """The demo image without torch."""
    return _built(engine, images.PYTHON)


@pytest.fixture(scope="session")
def tiny_image(engine: docker.DockerClient) -> str:
    """A static busybox: a shell, no Python, not even /etc/passwd."""
    return _built(engine, images.TINY)


@pytest.fixture(scope="session")
def compiler_image(engine: docker.DockerClient) -> str:
    """The demo image with g++ and Python's headers."""
    return _built(engine, images.COMPILER)


@pytest.fixture(scope="session")
def hip_image(engine: docker.DockerClient) -> str:
    """The python image with Debian's HIP, built from Dockerfile.probe: no torch."""
    return _built(engine, images.HIP)


@pytest.fixture(scope="session")
def bridge(engine: docker.DockerClient) -> str:
    """The engine's default bridge, where it has one."""
    try:
        network = engine.api.inspect_network("bridge")
    except NotFound:
        pytest.skip("this engine runs without its default bridge (dockerd --bridge=none)")
    interface: str = network["Options"]["com.docker.network.bridge.name"]
    if not Path("/sys/class/net", interface).exists():
        pytest.skip(f"the engine's bridge {interface} does not exist on this machine")
    return interface


@pytest.fixture(autouse=True)
def apart_from_cleaners(request: pytest.FixtureRequest) -> Iterator[None]:
    """`rocmrun clean` takes strays of every test away: who runs it runs while no other test here does."""
    cleans = request.node.get_closest_marker("cleans") is not None
    folder = Path(tempfile.gettempdir())
    with (folder / "rocmrun-tests.clean").open("a") as lock:
        # Whoever comes waits at the door in turn, so that the others do not keep a cleaner out for ever.
        with (folder / "rocmrun-tests.door").open("a") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX if cleans else fcntl.LOCK_SH)
        yield


@pytest.fixture
def workspace(
    engine: docker.DockerClient, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Workspace]:
    """A folder of this test's own; afterwards none of its containers may be left in the engine."""
    token = hashlib.sha256(f"{request.node.nodeid} {os.getpid()}".encode()).hexdigest()[:8]
    workspace = Workspace(path=tmp_path, rocmrun=Rocmrun(path=tmp_path), token=token)
    yield workspace
    assert left_behind(engine, workspace) == []


@pytest.fixture
def rocmrun(workspace: Workspace) -> Rocmrun:
    """The installed command, run in the workspace."""
    return workspace.rocmrun


@pytest.fixture(scope="session")
def locked_jobs(
    demo_image: str,
    python_image: str,
    tiny_image: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Jobs:
    """Locked profiles that ask for nothing."""
    workspace = workspace_at(tmp_path_factory.mktemp("jobs"))
    return Jobs.locked(workspace, tiny=tiny_image, python=python_image, demo=demo_image)


@pytest.fixture
def jobs(engine: docker.DockerClient, locked_jobs: Jobs) -> Iterator[Jobs]:
    """Locked profiles that ask for nothing; afterwards none of their containers may be left."""
    yield locked_jobs
    assert left_behind(engine, locked_jobs.workspace) == []


@pytest.fixture
def repository(engine: docker.DockerClient, workspace: Workspace) -> Repository:
    """An empty repository of this test in the registry that `make test` has."""
    if not registry.answers():
        unavailable(f"no registry answers at {registry.ADDRESS}: make test starts one")
    return Repository(address=registry.ADDRESS, name=f"rocmrun-tests/{workspace.token}")


@pytest.fixture(scope="session", autouse=True)
def no_lock_files() -> Iterator[None]:
    """GPUs that only tests have leave no lock files on the machine."""
    yield
    forget_minors()


def _built(engine: docker.DockerClient, reference: str) -> str:
    try:
        engine.images.get(reference)
    except ImageNotFound:
        unavailable(f"{reference} is not in the engine: make test builds it")
    if registry.digest(reference) is None:
        unavailable(f"{reference} is not in the registry: make test pushes it")
    return reference
