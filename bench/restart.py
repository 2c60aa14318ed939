"""What a restart costs, as ratios of the first start in the same run.

    python bench/restart.py [--rounds N] [--json]

The probe: a first start proves the GPUs, the next ones count that proof ([probe] reuse = "boot");
`--no-probe` shows what is left to save. The cache: a workload that compiles with torch.compile, first
with an empty cache, then with what the first start left there. Each round begins with empty caches and
no proofs. `make test` must have built the images; where the compiler's is missing the cache is left out.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("rocmrun")
IMAGES = "127.0.0.1:5055/rocmrun"
PROFILE = (
    'extends = "base"\naccelerator = "cpu"\n[image]\nref = "{image}"\n[gpus]\nselect = ["none"]\n'
)
COMPILE = (
    "import torch\n"
    "from torch._inductor import config\n"
    "config.cpp_cache_precompile_headers = False\n"
    "torch.compile(lambda x: torch.nn.functional.gelu(x) * 2 + x)(torch.linspace(-3, 3, 64))\n"
)


def main() -> int:
    """Print seconds and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name, value in measured(Path(folder)).items():
                found.setdefault(name, []).append(value)
    seconds = {name: statistics.median(values) for name, values in found.items()}
    ratios = {
        name: seconds[name] / seconds[first]
        for name, first in (
            ("proof counts", "first, probed"),
            ("no probe", "first, probed"),
            ("cache found", "cache empty"),
        )
        if name in seconds
    }
    if options.json:
        print(
            json.dumps({"rounds": options.rounds, "seconds": seconds, "ratios": ratios}, indent=2)
        )
        return 0
    for name, value in seconds.items():
        ratio = f", {ratios[name]:.2f}x of the first start" if name in ratios else ""
        print(f"{name}: {value:.2f} s{ratio}")
    return 0


def measured(folder: Path) -> dict[str, float]:
    """Return the seconds of each start in one round."""
    demo = locked(folder, "demo")
    found = {
        "first, probed": start(folder, demo, "--", "true"),
        "proof counts": start(folder, demo, "--", "true"),
        "no probe": start(folder, demo, "--no-probe", "--", "true"),
    }
    if subprocess.run(
        ["docker", "image", "inspect", f"{IMAGES}/compiler:1"], capture_output=True, check=False
    ).returncode:
        return found
    compiler = locked(folder, "compiler")
    words = ("--no-probe", "--", "python3", "-c", COMPILE)
    found["cache empty"] = start(folder, compiler, *words)
    found["cache found"] = start(folder, compiler, *words)
    return found


def locked(folder: Path, image: str) -> str:
    """Write and lock a profile for one of the test images, and return its name."""
    (folder / "profiles").mkdir(exist_ok=True)
    text = PROFILE.format(image=f"{IMAGES}/{image}:1")
    (folder / "profiles" / f"{image}.toml").write_text(text, encoding="utf-8")
    run(folder, "lock", image)
    return image


def start(folder: Path, profile: str, *words: str) -> float:
    """Launch, and return how long it took."""
    begin = time.perf_counter()
    run(folder, "launch", profile, *words)
    return time.perf_counter() - begin


def run(folder: Path, *words: str) -> None:
    """Run rocmrun with caches and proofs of this round alone; what it says is shown when it fails."""
    own = {name: str(folder / name) for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME")}
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    done = subprocess.run(
        [PROGRAM, "--quiet", *words],
        cwd=folder,
        env=environment | own,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        sys.exit(f"rocmrun {' '.join(words)}: {done.returncode}\n{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
