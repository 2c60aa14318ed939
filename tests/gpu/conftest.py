"""Real GPUs, an engine that runs already, and an image that holds torch for them.

On an AMD machine ROCMRUN_GPU_IMAGE names a ROCm image. On an NVIDIA machine (torch.cuda is the same
namespace, NCCL the same API) no image is needed: an empty root is imported as `localhost/…`, and the
host's own /usr and the folder of its Python are mounted read-only. Without a GPU these tests skip.
"""

import hashlib
import io
import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import docker
import pytest
from docker.errors import DockerException

from tests.workspace import Rocmrun, Workspace, left_behind

HERE = Path(__file__).parent
IMAGE = "localhost/rocmrun/gpu-test:1"
# Directories that mounts and the engine need, and the links of a merged /usr.
FOLDERS = ("usr", "opt", "etc", "tmp", "proc", "sys", "dev", "home", "run", "var", "sbin")
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """The engine that answers."""
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except DockerException as error:
        pytest.skip(f"no Docker engine answers: {error}")
    yield client
    client.close()


@pytest.fixture
def workspace(
    engine: docker.DockerClient, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Workspace]:
    """A folder of this test's own; afterwards none of its containers may be left."""
    token = hashlib.sha256(f"{request.node.nodeid} {os.getpid()}".encode()).hexdigest()[:8]
    workspace = Workspace(path=tmp_path, rocmrun=Rocmrun(path=tmp_path), token=token)
    yield workspace
    assert left_behind(engine, workspace) == []


@pytest.fixture(scope="session")
def gpu_count() -> int:
    """How many GPUs this machine has."""
    count = len(list(Path("/dev").glob("nvidia[0-9]*")))
    if count == 0:
        _no_gpu()
    return count


@pytest.fixture(scope="session")
def gpu_tables(engine: docker.DockerClient, gpu_count: int) -> str:
    """What a profile for these GPUs says beside its image: nodes, driver, the host's torch."""
    del gpu_count
    api: Any = engine.api
    api.import_image_from_data(_empty_root(), repository=IMAGE.rpartition(":")[0], tag="1")
    python = Path(sys.executable)
    top = f"/{Path(sys.prefix).parts[1]}"
    mounts = "".join(
        f'[[mounts]]\nsource = "{path}"\ntarget = "{path}"\n' for path in sorted({"/usr", top})
    )
    return f"""
[container]
shm_size = "1GiB"
[container.env]
LD_LIBRARY_PATH = "/usr/local/nvidia/lib64:/usr/local/nvidia/lib"
# Triton asks /sbin/ldconfig for the driver's library, which an image of empty folders has not.
TRITON_LIBCUDA_PATH = "{_folder_of_libcuda()}"
# Multicast over NVLink is a feature of the whole fabric, which a test must leave alone.
NCCL_NVLS_ENABLE = "0"
TORCH_SYMM_MEM_DISABLE_MULTICAST = "1"
[probe]
python = "{python}"
{mounts}
[[devices]]
path = "/dev/nvidiactl"
reason = "the driver's control node"
[[devices]]
path = "/dev/nvidia-uvm"
reason = "unified memory"
"""


def _folder_of_libcuda() -> str:
    names = ("local/nvidia/lib64", "lib/x86_64-linux-gnu", "lib64", "lib/aarch64-linux-gnu")
    folders = [Path("/usr") / name for name in names]
    return str(next((f for f in folders if (f / "libcuda.so.1").exists()), folders[0]))


def _empty_root() -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in FOLDERS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name, target in LINKS.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return archive.getvalue()


def _no_gpu() -> NoReturn:
    pytest.skip("this machine has no NVIDIA GPU")
