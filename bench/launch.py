"""How much longer a launch takes than the same container without rocmrun, as ratios from one run.

    python bench/launch.py [--rounds N] [--json]

Three ways to start the very same container, in turn, so that a busy moment hits all of them:
`rocmrun launch --no-probe`, `docker run` with the flags that `rocmrun plan` prints, and the smallest
script on the Docker SDK with the same create request. rocmrun runs from a wheel in an environment of
its own, with compiled bytecode. `make demo` must have run before.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "build" / "demo" / "rocmrun.lock"
ENVIRONMENT = ROOT / "build" / "bench"
WORKLOADS = {"true": ["true"], "import torch": ["python3", "-c", "import torch"]}
GOALS = {"sdk": 1.05}


def main() -> int:
    """Print the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    python = install()
    results = {
        name: measure(python, command, options.rounds) for name, command in WORKLOADS.items()
    }
    results["--help"] = measure_help(python, options.rounds)
    if options.json:
        print(json.dumps({"rounds": options.rounds, "goals": GOALS, "results": results}, indent=2))
        return 0
    for name, row in results.items():
        seconds = ", ".join(f"{way} {value:.3f} s" for way, value in row["seconds"].items())
        ratios = ", ".join(f"{value:.2f}x {way}" for way, value in row["ratios"].items())
        print(f"{name}: {seconds}" + (f"; rocmrun is {ratios}" if ratios else ""))
    return 0


def install() -> Path:
    """Install a wheel of this tree, with bytecode, and return its Python."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", str(ENVIRONMENT))
    run(str(python), "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", str(ROOT))
    run(str(python), "-m", "pip", "install", "--quiet", str(ROOT))
    run(str(python), "-m", "compileall", "-q", str(ENVIRONMENT / "lib"))
    return python


def run(*command: str) -> str:
    """Run a command that must succeed and return its output."""
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment()
    ).stdout


def environment() -> dict[str, str]:
    """Return the environment of every measured command: bytecode may be written and read."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
    }


def measure(python: Path, command: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """Time one workload in each of the three ways."""
    rocmrun = str(python.parent / "rocmrun")
    plan = json.loads(
        run(rocmrun, "plan", "demo", "--lockfile", str(LOCK), "--json", "--", *command)
    )
    with tempfile.NamedTemporaryFile("w", suffix=".json") as request:
        json.dump(plan["create_request"], request)
        request.flush()
        ways = {
            "rocmrun": [
                rocmrun,
                "--quiet",
                "launch",
                "demo",
                "--no-probe",
                "--lockfile",
                str(LOCK),
                "--",
                *command,
            ],
            "docker": shlex.split(plan["docker_run"]),
            "sdk": [str(python), str(ROOT / "bench" / "smallest_sdk.py"), request.name],
        }
        return summarize(timed(ways, rounds))


def measure_help(python: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Time --help beside an interpreter that does nothing; ramalama is compared where it is installed."""
    ways = {
        "rocmrun": [str(python.parent / "rocmrun"), "--help"],
        "python": [str(python), "-c", "pass"],
    }
    ramalama = python.parent / "ramalama"
    if ramalama.exists():
        ways["ramalama"] = [str(ramalama), "--help"]
    return summarize(timed(ways, rounds))


def timed(ways: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Run every way once a round, after a round that does not count."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, command in ways.items():
            start = time.perf_counter()
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env=environment(),
            )
            if number:
                seconds[way].append(time.perf_counter() - start)
    return seconds


def summarize(seconds: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Return medians, and rocmrun's median over each of the others."""
    medians = {way: statistics.median(values) for way, values in seconds.items()}
    return {
        "seconds": medians,
        "ratios": {
            way: medians["rocmrun"] / value for way, value in medians.items() if way != "rocmrun"
        },
    }


if __name__ == "__main__":
    sys.exit(main())
