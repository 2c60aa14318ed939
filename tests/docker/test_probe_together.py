"""Several processes together, and extensions, with real torch in a real container.

gloo in NCCL's place: the same collectives over the container's loopback, without a network. The
extensions are small packages of our own, mounted; the libraries in them are ELF files that need what
real ones need.
"""

import json
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.docker.inside import workspace_at
from tests.elf_files import shared_library
from tests.faults import faulty_torch
from tests.workspace import left_behind

COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]
TABLES = """
[container]
shm_size = "64KiB"
env = {{ PYTHONPATH = "/packages" }}
[[mounts]]
source = "{packages}"
target = "/packages"
[probe]
operators = ["ours", "absent", "triton"]
"""


def write_packages(folder: Path) -> None:
    """One that works and needs torch, one that ends its process, and one that says nothing."""
    for name, code in (
        ("ours", "import torch\n__version__ = '7'\nassert torch.ones(2).sum() == 2"),
        ("bitsandbytes", "import os\nos.abort()"),
        ("triton", ""),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(code)
    (folder / "ours" / "kernels.so").write_bytes(shared_library("libamdhip64.so.6"))
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture(scope="module")
def checks(
    engine: docker.DockerClient, demo_image: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """One probe at standard: two ranks and a shared memory of 64 KiB."""
    workspace = workspace_at(tmp_path_factory.mktemp("together"))
    packages = workspace.path / "packages"
    write_packages(packages)
    profile = workspace.profile(demo_image, TABLES.format(packages=packages))
    done = workspace.rocmrun("probe", profile, "--level", "standard", "--json")
    assert left_behind(engine, workspace) == []
    assert done.returncode == 9, done.stderr
    found = json.loads(done.stdout)["probe"]["checks"]
    return {f"{check['group']}: {check['name']}": check for check in found}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_each_collective_gives_the_right_values(
    checks: dict[str, dict[str, Any]], name: str
) -> None:
    """On loopback alone; gloo needs no shared memory, so that 64 KiB of it are enough."""
    check = checks[f"collectives: {name}"]

    assert (check["status"], check["evidence"]["backend"]) == ("pass", "gloo")
    assert [rank["wrong"] for rank in check["evidence"]["ranks"]] == [0, 0]
    assert [row["bytes"] for row in check["evidence"]["sizes"]] == [64 << 10, 1 << 20]
    assert all(row["busbw_gb_per_s"] > 0 for row in check["evidence"]["sizes"])


def test_the_shared_memory_was_that_small(checks: dict[str, dict[str, Any]]) -> None:
    evidence = checks["environment: shared_memory"]["evidence"]

    assert evidence["total_bytes"] == 64 << 10


def test_an_extension_that_the_profile_names_works(checks: dict[str, dict[str, Any]]) -> None:
    """Built for ROCm and imported with the image's own torch; on a cpu triton is not called."""
    ours, triton = checks["operators: ours"], checks["operators: triton"]

    assert (ours["status"], ours["evidence"]["version"], ours["evidence"]["linked"]) == (
        "pass",
        "7",
        "rocm",
    )
    assert (triton["status"], triton["evidence"]["named"]) == ("pass", True)
    assert triton["evidence"]["not_called"] == "it computes on GPUs only"


def test_one_that_it_names_and_the_image_lacks_is_a_failure(
    checks: dict[str, dict[str, Any]],
) -> None:
    failed = [name for name, check in checks.items() if check["status"] == "fail"]

    assert failed == ["operators: absent"]
    assert checks["operators: absent"]["reason"] == "there is no module absent here"


def test_a_broken_one_that_nobody_named_is_degraded(checks: dict[str, dict[str, Any]]) -> None:
    crashing = checks["operators: bitsandbytes"]

    assert (crashing["status"], crashing["reason"]) == (
        "degraded",
        "the process was killed by SIGABRT",
    )


def test_ranks_that_go_wrong_are_named(
    engine: docker.DockerClient, demo_image: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Real gloo: one value changed on rank 0, then rank 1 killed; what came before is proved."""
    workspace = workspace_at(tmp_path_factory.mktemp("ranks"))
    made = faulty_torch(workspace.path, "rank_wrong", "rank_killed")
    profile = workspace.profile(
        demo_image,
        '[container]\nenv = { PYTHONPATH = "/faulty" }\n'
        f'[[mounts]]\nsource = "{made}"\ntarget = "/faulty"\n',
    )
    done = workspace.rocmrun("probe", profile, "--level", "standard", "--json")
    assert left_behind(engine, workspace) == []
    seen = {check["name"]: check for check in json.loads(done.stdout)["probe"]["checks"]}

    assert [seen[name]["status"] for name in COLLECTIVES] == [
        "pass",
        "pass",
        "fail",
        "fail",
        "skipped",
    ]
    assert seen["reduce_scatter"]["reason"] == "rank 0: 1 of 8192 sums are wrong on rank 0"
    wrong = [rank["wrong"] for rank in seen["reduce_scatter"]["evidence"]["ranks"]]
    assert wrong == [2, 0]  # one in each of two sizes
    assert seen["broadcast"]["reason"] == (
        "rank 1: the process was killed by SIGKILL (in broadcast)"
    )
    last = seen["broadcast"]["evidence"]["ranks"][1]["last_lines"]
    assert "NCCL WARN the last words of this rank" in last
    assert seen["broadcast"]["seconds"] < 60
