"""How long reading a host of 64 compute partitions and planning for it takes, without start and imports.

    python bench/plan.py [--rounds N] [--json]

The host is a tree with 63 partitions in use, their 4,000 links and PCI devices, as eight MI300X in CPX
mode show them. Shown beside it: reading every file of the same tree and doing nothing with it, and the
whole command, `rocmrun plan --offline`, in a process of its own.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from rocmrun.core.planning.planner import make_plan  # noqa: E402
from rocmrun.system.sysfs import read_host  # noqa: E402
from tests.builders import request  # noqa: E402
from tests.hosts import build_host, mi300x_partitions  # noqa: E402

GOALS = {"read_and_plan_ms": 150}
PROGRAM = Path(sys.executable).with_name("rocmrun")


def main() -> int:
    """Print the medians; return 1 where the goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = build_host(Path(folder), mi300x_partitions(last=7), cpu_nodes=2)
        result = measure(root, options.rounds)
    if options.json:
        print(json.dumps({"goals": GOALS, **result}, indent=2))
    else:
        for name, value in result.items():
            print(f"{name:<24} {value:>8.1f}")
    return 1 if result["read_and_plan_ms"] > GOALS["read_and_plan_ms"] else 0


def measure(root: Path, rounds: int) -> dict[str, float]:
    """Return medians in milliseconds, in rounds that interleave what is compared."""
    command = [str(PROGRAM), "plan", "demo", "--offline", "--host-root", str(root)]
    jobs: dict[str, Callable[[], object]] = {
        "read_ms": lambda: read_host(root),
        "read_and_plan_ms": lambda: make_plan(request(host=read_host(root))),
        "every_file_ms": lambda: read_every_file(root),
        "whole_command_ms": lambda: subprocess.run(command, check=True, capture_output=True),
    }
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            begin = time.perf_counter()
            job()
            taken[name].append(1000 * (time.perf_counter() - begin))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    return {**medians, "read_vs_every_file": medians["read_ms"] / medians["every_file_ms"]}


def read_every_file(root: Path) -> int:
    """Read what the tree holds, device nodes apart; return how many bytes that were."""
    return sum(
        len((Path(folder) / name).read_bytes())
        for folder, _, names in os.walk(root)
        for name in names
        if (Path(folder) / name).is_file()
    )


if __name__ == "__main__":
    sys.exit(main())
