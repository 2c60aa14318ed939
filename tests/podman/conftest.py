"""Podman's Docker socket, for real: a service of the tests' own, with the images of `make test`'s registry.

Without Podman these tests skip and say why; with ROCMRUN_REQUIRE_DOCKER=1, as `make test` and CI
set it, they fail instead.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import images, registry
from tests.docker.registry_content import unavailable
from tests.podman.service import OnPodman, Podman, podman_service
from tests.workspace import Rocmrun, Workspace, left_behind

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before -m selects by the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here like those on Docker: it needs an engine, and talks to loopback alone."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.docker)
            item.add_marker(pytest.mark.allow_hosts([registry.HOST]))


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    """A service that only these tests use."""
    with podman_service() as found:
        yield found


@pytest.fixture(scope="session")
def tiny_image() -> str:
    """A static busybox: a shell, no Python, not even /etc/passwd."""
    return _published(images.TINY)


@pytest.fixture(scope="session")
def python_image() -> str:
    """Debian with python3 and without torch."""
    return _published(images.PYTHON)


@pytest.fixture
def workspace(
    podman: Podman, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Workspace]:
    """A folder of this test's own; afterwards none of its containers may be left."""
    token = hashlib.sha256(f"{request.node.nodeid} {os.getpid()}".encode()).hexdigest()[:8]
    rocmrun = OnPodman(path=tmp_path, address=podman.address)
    workspace = Workspace(path=tmp_path, rocmrun=rocmrun, token=token)
    yield workspace
    client = podman.client()
    try:
        assert left_behind(client, workspace) == []
    finally:
        client.close()


@pytest.fixture
def rocmrun(workspace: Workspace) -> Rocmrun:
    """The installed command, run in the workspace."""
    return workspace.rocmrun


def _published(reference: str) -> str:
    if registry.digest(reference) is None:
        unavailable(f"{reference} is not in the registry: make test pushes it")
    return reference
