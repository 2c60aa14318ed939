"""Each device alone, on the real torch for CPUs: what passes, what a broken one is called, what is left out.

And a real extension on it: bitsandbytes, which computes on processors too.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from scripts import extensions
from scripts.setup import BUILD
from tests.docker.inside import workspace_at
from tests.docker.registry_content import unavailable
from tests.faults import faulty_torch
from tests.workspace import Workspace, left_behind


@dataclass(frozen=True)
class Probed:
    """One `rocmrun probe --json`."""

    code: int
    checks: list[dict[str, Any]]
    seconds: float

    def check(self, name: str, group: str = "device") -> dict[str, Any]:
        """The one check of that name, of the cpu where nothing else is said."""
        (found,) = (c for c in self.checks if (c["group"], c["name"]) == (group, name))
        return dict(found)

    def named(self, status: str) -> set[str]:
        """Names of the cpu's checks with that status."""
        device = [check for check in self.checks if check["group"] == "device"]
        return {check["name"] for check in device if check["status"] == status}


def probed(workspace: Workspace, image: str, level: str, tables: str = "") -> Probed:
    """Lock, probe, and read what was printed."""
    profile = workspace.profile(image, tables)
    done = workspace.rocmrun("probe", profile, "--level", level, "--json", timeout=280)
    printed = json.loads(done.stdout)
    assert "probe" in printed, done.stderr
    report = printed["probe"]
    return Probed(done.returncode, report["checks"], report["seconds"])


def broken(folder: Path, *faults: str) -> str:
    """Return the tables of a profile whose torch has *faults*."""
    made = faulty_torch(folder, *faults)
    return (
        '[container.env]\nPYTHONPATH = "/faulty"\n'
        f'[[mounts]]\nsource = "{made}"\ntarget = "/faulty"\n'
    )


EXTENSION = """
[container.env]
PYTHONPATH = "/extensions"
[[mounts]]
source = "{folder}"
target = "/extensions"
[probe]
operators = ["bitsandbytes"]
"""


@pytest.fixture(scope="module")
def healthy(
    engine: docker.DockerClient, demo_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Probed:
    """The standard probe of a good torch, and of bitsandbytes beside it."""
    workspace = workspace_at(tmp_path_factory.mktemp("healthy"))
    folder = extensions.path(BUILD)
    tables = "" if folder is None else EXTENSION.format(folder=folder)
    found = probed(workspace, demo_image, "standard", tables)
    assert left_behind(engine, workspace) == []
    return found


@pytest.fixture(scope="module")
def wrong(
    engine: docker.DockerClient, demo_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Probed:
    """The standard probe of a torch that gets much wrong."""
    folder = tmp_path_factory.mktemp("wrong")
    workspace = workspace_at(folder)
    faults = ("convolution", "reduction", "attention", "memory", "product", "nan", "bit")
    found = probed(workspace, demo_image, "standard", broken(folder, *faults))
    assert left_behind(engine, workspace) == []
    return found


def test_a_good_cpu_passes_everything_it_has(healthy: Probed) -> None:
    """Three formats, memory, convolution, reduction and attention, all against float64."""
    assert healthy.code == 0
    assert healthy.named("fail") | healthy.named("degraded") == set()
    assert healthy.named("pass") >= {
        *(f"{what}_{name}" for name in ("fp32", "fp16", "bf16") for what in ("matmul", "repeat")),
        *("memory_pattern", "memory_bandwidth", "convolution", "repeat_convolution"),
        *("reduction", "attention", "attention:math", "attention:flash", "peak_memory"),
    }


@pytest.mark.parametrize("name", ["convolution", "reduction", "attention", "matmul_bf16"])
def test_bounds_are_derived_and_far_from_what_is_seen(healthy: Probed, name: str) -> None:
    """A sum's bound leaves room for any order; what is seen stays well below, and above nothing."""
    check = healthy.check(name)

    assert 0 < check["evidence"]["worst_share_of_bound"] < 1
    assert "Higham and Mary" in check["threshold_source"]


def test_every_pattern_is_written_and_read(healthy: Probed) -> None:
    evidence = healthy.check("memory_pattern")["evidence"]

    assert evidence["patterns"] == ["address", "inverted_address", "01", "10", "ones", "zeros"]
    assert evidence["swept_bytes"] == evidence["asked_bytes"] == 16 << 20


def test_backends_that_a_cpu_has_not_are_skipped_with_torchs_words(healthy: Probed) -> None:
    check = healthy.check("attention:cudnn")

    assert (check["status"], check["reason"][:7]) == ("skipped", "torch: ")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("memory_pattern", "1 words of a chunk do not hold the pattern 01, the first at byte 0"),
        ("matmul_fp16", "1 of 262144 results are not finite"),
        ("matmul_bf16", "1 of 262144 results are wrong, the worst by"),
        ("repeat_fp32", "1 of 262144 results differ between two runs on the same input"),
        ("convolution", "1 of 25088 results are wrong, the worst by"),
        ("reduction", "2 of 1281 results are wrong, the worst by"),
        ("attention", "1 of 32768 results are wrong, the worst by"),
    ],
)
def test_what_is_wrong_is_named(wrong: Probed, name: str, reason: str) -> None:
    """One value is enough, and one wrong check does not hide the next."""
    check = wrong.check(name)

    assert wrong.code == 9
    assert (check["status"], check["reason"][: len(reason)]) == ("fail", reason)
    assert wrong.check("peak_memory")["status"] == "pass"


def test_a_child_that_the_memory_limit_kills_is_named_so(
    workspace: Workspace, demo_image: str
) -> None:
    """Not only the signal: that it was the container's limit, and in which check."""
    limit = '[container]\nmemory = "1GiB"\nshm_size = "64MiB"\n'
    tables = broken(workspace.path, "memory_limit")
    found = probed(workspace, demo_image, "quick", limit + tables)

    (failed,) = (check for check in found.checks if check["status"] == "fail")
    assert (failed["group"], failed["name"]) == ("device", "matmul_fp32")
    assert failed["reason"] == (
        "the process was killed by SIGKILL: the container's memory limit was reached (in matmul_fp32)"
    )


@pytest.mark.slow
def test_with_a_compiler_a_kernel_is_compiled_at_full(
    workspace: Workspace, compiler_image: str
) -> None:
    """Within a minute on a CPU that does nothing else, all of the level."""
    found = probed(workspace, compiler_image, "full")
    check = found.check("compile")

    assert found.code == 0
    assert (check["status"], check["evidence"]["wrong"]) == ("pass", 0)
    assert check["evidence"]["compiler"].endswith("g++")


def test_without_a_compiler_none_is_tried(healthy: Probed) -> None:
    """Standard leaves it out on a cpu."""
    assert [c["name"] for c in healthy.checks if c["name"] == "compile"] == []


def test_a_real_extension_computes(healthy: Probed) -> None:
    """It holds a library for each runtime, loads the one for processors, and rounds by half a step at most."""
    if extensions.path(BUILD) is None:
        unavailable(f"there is no {extensions.BITSANDBYTES}: make test fetches it")
    evidence = healthy.check("bitsandbytes", "operators")["evidence"]

    assert evidence["version"] == extensions.BITSANDBYTES.partition("==")[2]
    assert evidence["libraries"] == {
        "none": ["/extensions/bitsandbytes/libbitsandbytes_cpu.so"],
    }
    assert (evidence["linked"], evidence["loaded"]) == ("none", 1)
    assert evidence["called"] == "functional.quantize_blockwise"
    assert 0 < evidence["largest_error"] < 0.9 / 64
