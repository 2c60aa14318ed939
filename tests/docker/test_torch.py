"""torch on the baseline: without a passwd entry, without a network, and with kernels that are found again."""

import json
from pathlib import Path
from typing import Any

from tests.docker.jobs import Jobs
from tests.workspace import Workspace

NAMELESS = r"""
import getpass, json, os, pwd, tempfile
try:
    entry = pwd.getpwuid(os.getuid()).pw_name
except KeyError:
    entry = None
import torch
a = torch.arange(6.0).reshape(2, 3)
print(json.dumps({
    "entry": entry,
    "user": getpass.getuser(),
    "home": os.path.expanduser("~"),
    "temporary": tempfile.gettempdir(),
    "product": (a @ a.T).tolist(),
    "built_for": [torch.version.hip, torch.version.cuda],
}))
"""

ALL_REDUCE = r"""
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)] * 1000)
dist.all_reduce(value)
line = f"rank {dist.get_rank()} of {dist.get_world_size()} sum {value.sum().item()}\n"
os.write(1, line.encode())  # at once: the other rank has the same stdout
dist.destroy_process_group()
"""

COMPILE = r"""
import json, os, torch
from torch._dynamo.utils import counters
from torch._inductor import config
config.cpp_cache_precompile_headers = False  # wants the program openssl, which has nothing to do with caches
compiled = torch.compile(lambda x: torch.nn.functional.gelu(x) * 2 + x)
x = torch.linspace(-3, 3, 64)
close = torch.allclose(compiled(x), torch.nn.functional.gelu(x) * 2 + x, atol=1e-5)
root = os.environ["TORCHINDUCTOR_CACHE_DIR"]
libraries = sum(name.endswith(".so") for _, _, names in os.walk(root) for name in names)
hits = counters["inductor"]["fxgraph_cache_hit"]
misses = counters["inductor"]["fxgraph_cache_miss"]
print(json.dumps({"close": close, "libraries": libraries, "hits": hits, "misses": misses}))
"""


def test_a_user_without_a_name_imports_torch(jobs: Jobs) -> None:
    """USER, HOME and TMPDIR stand in for the passwd entry that the image does not have."""
    seen = json.loads(jobs.launch(jobs.demo, "--", "python3", "-c", NAMELESS, check=True).stdout)

    assert seen == {
        "entry": None,
        "user": "rocmrun",
        "home": "/home/rocmrun",
        "temporary": "/tmp",
        "product": [[5.0, 14.0], [14.0, 50.0]],
        "built_for": [None, None],
    }


def test_torchrun_meets_over_loopback(jobs: Jobs, tmp_path: Path) -> None:
    """Two ranks without a network: torchrun asks for the host's name, gloo for an interface."""
    (tmp_path / "reduce.py").write_text(ALL_REDUCE)
    tmp_path.chmod(0o755)
    module = ("python3", "-m", "torch.distributed.run")
    options = ("--standalone", "--nproc-per-node=2", "/job/reduce.py")
    done = jobs.launch(jobs.demo, "-v", f"{tmp_path}:/job:ro", "--", *module, *options, timeout=250)

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "rank 0 of 2 sum 3000.0",
        "rank 1 of 2 sum 3000.0",
    ]


def test_compiled_kernels_are_found_again(workspace: Workspace, compiler_image: str) -> None:
    """The same compilation in two containers: libraries are built in HOME and loaded from there.

    The second compiles nothing: torch counts a hit in its cache, and no library is new.
    """
    profile = workspace.profile(compiler_image)
    first, second = _compile(workspace, profile), _compile(workspace, profile)

    assert (first["close"], first["hits"], first["misses"]) == (True, 0, 1)
    assert (second["close"], second["hits"], second["misses"]) == (True, 1, 0)
    assert first["libraries"] == second["libraries"] > 0


def _compile(workspace: Workspace, profile: str) -> dict[str, Any]:
    done = workspace.rocmrun(
        "launch", profile, "--no-probe", "--", "python3", "-c", COMPILE, timeout=280, check=True
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen
