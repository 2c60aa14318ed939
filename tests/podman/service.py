"""A Podman of the tests' own: its service, storage, locks and settings lie in one folder, and go with it.

Nothing of it touches the machine's own Podman (locks are files in the folder, not the shared memory
that every Podman of root uses) or the Docker engine: no container here has a network.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from scripts import registry
from tests.docker.registry_content import unavailable
from tests.docker.spare_engine import answers, make_data, unmount_below
from tests.workspace import Environment, Rocmrun

START_SECONDS = 60
DATA_SIZE = "1g"
# Podman looks for its init program beside itself, and for a runtime on PATH.
PROGRAMS = ("podman", "crun", "catatonit")
SETTINGS = """
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
"""
REGISTRIES = """
unqualified-search-registries = []
[[registry]]
location = "{address}"
insecure = true
"""


@dataclass(frozen=True, kw_only=True)
class Podman:
    """A service that answers at *address*."""

    folder: Path

    @property
    def address(self) -> str:
        """What DOCKER_HOST says."""
        return f"unix://{self.folder}/s"

    @property
    def command(self) -> tuple[str, ...]:
        """The program with the folders of this one."""
        places = {"root": "data", "runroot": "run", "tmpdir": "tmp"}
        options = (f"--{name}={self.folder}/{place}" for name, place in places.items())
        return ("podman", *options)

    @property
    def environment(self) -> dict[str, str]:
        """The caller's environment with this Podman's own settings in place of the machine's."""
        own = {
            "CONTAINERS_CONF": f"{self.folder}/containers.conf",
            "CONTAINERS_REGISTRIES_CONF": f"{self.folder}/registries.conf",
        }
        return {**os.environ, **own}

    def __call__(self, *words: str) -> str:
        """Run podman itself and return its output."""
        done = subprocess.run(
            [*self.command, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    def client(self) -> docker.DockerClient:
        """Return a client of its Docker API."""
        # Told the version, the client does not ask for it.
        return docker.DockerClient(base_url=self.address, version="1.41", timeout=60)


@dataclass(frozen=True, kw_only=True)
class OnPodman(Rocmrun):
    """The installed command, which finds Podman where it looks for an engine."""

    address: str

    def environment(self, changes: Environment | None = None) -> dict[str, str]:
        """Return the environment that rocmrun gets."""
        more: Mapping[str, Any] = changes or {}
        return super().environment({"DOCKER_HOST": self.address, **more})


@contextlib.contextmanager
def podman_service() -> Iterator[Podman]:
    """Start a service and yield it; afterwards nothing of it is left."""
    if os.geteuid() != 0:
        pytest.skip("only root can start the rootful service that is tested")
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        unavailable(f"not installed: {', '.join(missing)} (make test installs them)")
    folder = Path(tempfile.mkdtemp(prefix="rrp-"))  # socket paths are short
    podman = Podman(folder=folder)
    shared = _shared_folders()
    try:
        # In memory: the images have thousands of files, which come and go with the service.
        make_data(folder / "data", DATA_SIZE)
        (folder / "containers.conf").write_text(SETTINGS, encoding="utf-8")
        (folder / "registries.conf").write_text(
            REGISTRIES.format(address=registry.ADDRESS), encoding="utf-8"
        )
        with _service(podman):
            yield podman
    finally:
        unmount_below(folder)
        shutil.rmtree(folder)
        _remove_empty(_shared_folders() - shared)


@contextlib.contextmanager
def _service(podman: Podman) -> Iterator[None]:
    words = (*podman.command, "system", "service", "--time=0", podman.address)
    with (podman.folder / "log").open("wb") as log:
        process = subprocess.Popen(words, env=podman.environment, stdout=log, stderr=log)
        try:
            _await_answer(process, podman.folder)
            yield
            _remove_containers(podman)
        finally:
            # It keeps nothing in memory, and takes ten seconds to end when asked.
            process.kill()
            process.wait()


def _remove_containers(podman: Podman) -> None:
    """End what a test that failed left running: its monitor would outlive the service."""
    client = podman.client()
    with contextlib.closing(client):
        for container in client.api.containers(all=True):
            client.api.remove_container(container["Id"], force=True, v=True)


def _await_answer(process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers(f"{folder}/s"):
        said = (folder / "log").read_text(errors="replace")[-2000:]
        assert process.poll() is None, f"podman's service ended:\n{said}"
        assert time.monotonic() < deadline, f"podman's service does not answer:\n{said}"
        time.sleep(0.1)


def _shared_folders() -> frozenset[Path]:
    """Return the folders that there are for every Podman's containers: of their cgroups, and of the runtime's states."""
    groups = Path("/sys/fs/cgroup")
    found = (*groups.glob("libpod_parent"), *groups.glob("*/libpod_parent"))
    return frozenset(found) | frozenset(Path("/run").glob("crun"))


def _remove_empty(folders: frozenset[Path]) -> None:
    """Take away what this service made; what is in use stays."""
    for folder in folders:
        for path in (*sorted(folder.glob("*/"), reverse=True), folder):
            with contextlib.suppress(OSError):
                path.rmdir()
