"""Real GPUs together over NCCL, and extensions on a real one, in hardened containers."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.faults import faulty_torch
from tests.gpu.conftest import IMAGE
from tests.gpu.test_hardened_probe import ALL, FIRST
from tests.workspace import Workspace

COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]
ANCHOR = 'NCCL_NVLS_ENABLE = "0"\n'
SHM = 'shm_size = "1GiB"\n'
# Without peer access the ranks need /dev/shm, and without cuMem for it newer versions too.
SHARED_MEMORY_ONLY = 'NCCL_P2P_DISABLE = "1"\nNCCL_CUMEM_HOST_ENABLE = "0"\n'

# flash_attn's and xformers' calls by torch itself, the second with the wrong scale.
FLASH_ATTN = """
import torch
def flash_attn_func(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
"""
XFORMERS_OPS = """
import torch
def memory_efficient_attention(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q, k, v, scale=1.0).transpose(1, 2)
"""

Checks = dict[str, dict[str, Any]]


@pytest.fixture
def several(gpu_count: int) -> int:
    """The number of GPUs, where there are two or more."""
    if gpu_count < 2:
        pytest.skip("this machine has one GPU")
    return gpu_count


def probed(workspace: Workspace, tables: str, level: str, *, timeout: int = 300) -> Checks:
    """Probe; return the checks of groups collectives, operators and environment by name."""
    profile = workspace.profile(IMAGE, tables, accelerator="cuda")
    done = workspace.rocmrun("probe", profile, "--level", level, "--json", timeout=timeout)
    printed = json.loads(done.stdout)
    assert "probe" in printed, done.stderr
    groups = ("collectives", "operators", "environment")
    return {c["name"]: c for c in printed["probe"]["checks"] if c["group"] in groups}


def with_environment(tables: str, lines: str) -> str:
    """Return *tables* with more variables."""
    assert tables.count(ANCHOR) == 1
    return tables.replace(ANCHOR, ANCHOR + lines)


def with_shm(tables: str, size: str) -> str:
    """Return *tables* with another shared memory."""
    assert tables.count(SHM) == 1
    return tables.replace(SHM, f'shm_size = "{size}"\n')


@pytest.mark.timeout(400)
def test_all_five_over_nccl(workspace: Workspace, gpu_tables: str, several: int) -> None:
    """Right values on every rank, a bandwidth for every size, and how the ranks reached each other."""
    checks = probed(workspace, gpu_tables + ALL, "standard")

    for name in COLLECTIVES:
        evidence = checks[name]["evidence"]
        assert (checks[name]["status"], evidence["backend"]) == ("pass", "nccl")
        assert [rank["wrong"] for rank in evidence["ranks"]] == [0] * several
        sizes = [row["bytes"] for row in evidence["sizes"]]
        assert len(sizes) == 3
        assert 63 << 20 < sizes[-1] <= 64 << 20
        assert evidence["sizes"][-1]["busbw_gb_per_s"] > 1
    transport = checks["transport"]
    assert transport["status"] == "pass"
    assert "NCCL version" in transport["evidence"]["version"]
    for rank in transport["evidence"]["ranks"]:
        assert set(rank["channels"]) <= {"P2P/IPC", "P2P/CUMEM", "P2P/direct pointer", "SHM/direct"}
        assert rank["lines"][0].count(" via ") == 1


def test_quick_is_one_all_reduce(workspace: Workspace, gpu_tables: str, several: int) -> None:
    checks = probed(workspace, gpu_tables + ALL, "quick")

    assert checks["all_reduce"]["status"] == checks["transport"]["status"] == "pass"
    assert checks["all_reduce"]["evidence"]["world"] == several
    assert "all_gather" not in checks


@pytest.mark.timeout(400)
def test_a_rank_killed_in_the_middle_is_named(
    workspace: Workspace, gpu_tables: str, several: int, tmp_path: Path
) -> None:
    """The others wait inside NCCL, and are freed; what came before is proved."""
    made = faulty_torch(tmp_path, "rank_killed")
    tables = with_environment(gpu_tables + ALL, 'PYTHONPATH = "/faulty"\n')
    tables += f'[[mounts]]\nsource = "{made}"\ntarget = "/faulty"\n'
    checks = probed(workspace, tables, "standard")

    assert [checks[name]["status"] for name in COLLECTIVES] == [
        "pass",
        "pass",
        "pass",
        "fail",
        "skipped",
    ]
    broadcast = checks["broadcast"]
    assert broadcast["reason"] == "rank 1: the process was killed by SIGKILL (in broadcast)"
    assert broadcast["seconds"] < 60
    last = broadcast["evidence"]["ranks"][1]["last_lines"]
    assert "NCCL WARN the last words of this rank" in last


@pytest.mark.parametrize("size", ["64MiB", "1GiB"])
def test_the_shared_memory_is_enough_or_is_the_reason(
    workspace: Workspace, gpu_tables: str, several: int, size: str
) -> None:
    """64 MiB is Docker's own default: how many ranks it serves depends on their transport."""
    checks = probed(workspace, with_shm(gpu_tables, size) + ALL, "quick")

    assert checks["shared_memory"]["evidence"]["total_bytes"] == {"64MiB": 64, "1GiB": 1024}[
        size
    ] * (1 << 20)
    together = checks["all_reduce"]
    if size == "64MiB" and together["status"] == "fail":
        assert "/dev/shm holds 64 MiB, too little" in together["reason"]
    else:
        assert together["status"] == "pass"


def test_ranks_that_share_memory_say_so(
    workspace: Workspace, gpu_tables: str, several: int
) -> None:
    """Without peer access: through /dev/shm, and slower."""
    tables = with_environment(gpu_tables + ALL, SHARED_MEMORY_ONLY)
    checks = probed(workspace, tables, "quick")

    assert checks["all_reduce"]["status"] == "pass"
    for rank in checks["transport"]["evidence"]["ranks"]:
        assert list(rank["channels"]) == ["SHM/direct"]


def test_a_shared_memory_of_64_kib_is_the_reason(
    workspace: Workspace, gpu_tables: str, several: int
) -> None:
    """Ranks that need it and have next to none: the reason names its size and what to set."""
    tables = with_environment(with_shm(gpu_tables, "64KiB") + ALL, SHARED_MEMORY_ONLY)
    checks = probed(workspace, tables, "quick")

    assert checks["all_reduce"]["status"] == "fail"
    assert (
        "/dev/shm holds 64 KiB, too little for the ranks' shared memory"
        in (checks["all_reduce"]["reason"])
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_pairs_are_copied_between(workspace: Workspace, gpu_tables: str, several: int) -> None:
    """A matrix without its diagonal, at full."""
    checks = probed(workspace, gpu_tables + ALL, "full", timeout=850)

    copies = checks["peer_copies"]
    assert copies["status"] == "pass"
    for source in range(several):
        row = copies["evidence"]["gb_per_s"][source]
        assert [speed is None for speed in row] == [target == source for target in range(several)]
        assert all(speed is None or speed > 0.5 for speed in row)
    assert len(checks["all_to_all"]["evidence"]["sizes"]) == 6


def with_packages(tables: str, folder: Path, named: str) -> str:
    """Return *tables* with stand-ins for flash_attn and xformers on the module path."""
    for name, files in (
        ("flash_attn", {"__init__.py": FLASH_ATTN}),
        ("xformers", {"__init__.py": "", "ops.py": XFORMERS_OPS}),
    ):
        (folder / "packages" / name).mkdir(parents=True)
        for file, text in files.items():
            (folder / "packages" / name / file).write_text(text)
    for path in (folder, folder / "packages", *(folder / "packages").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    tables = with_environment(tables, 'PYTHONPATH = "/packages"\n')
    tables = tables.replace("[probe]\n", f"[probe]\noperators = {named}\n")
    return tables + f'[[mounts]]\nsource = "{folder}/packages"\ntarget = "/packages"\n'


@pytest.mark.timeout(400)
def test_extensions_are_called_on_the_gpu(
    workspace: Workspace, gpu_tables: str, tmp_path: Path
) -> None:
    """An attention that is right and one with the wrong scale; the Triton that torch brings."""
    named = '["flash_attn", "xformers"]'
    checks = probed(workspace, with_packages(gpu_tables + FIRST, tmp_path, named), "standard")

    good, wrong = checks["flash_attn"], checks["xformers"]
    assert (good["status"], good["evidence"]["called"]) == ("pass", "flash_attn_func")
    assert 0 < good["evidence"]["largest_error"] < good["threshold"]
    assert wrong["status"] == "fail"
    assert wrong["evidence"]["largest_error"] > wrong["threshold"]
    found = checks["installed"]["evidence"]["found"]
    if "triton" in found and (shutil.which("gcc") or shutil.which("cc")):
        assert checks["triton"]["reason"] == ""
        assert checks["triton"]["evidence"]["called"] == "a vector addition"
