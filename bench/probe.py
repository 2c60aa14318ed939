"""What proving two GPUs costs beside proving one, and both beside one `import torch`, in one run.

    python bench/probe.py --one PROFILE --all PROFILE [--level quick] [--rounds 3] [--json]

Both profiles name the same image; the first has one GPU, the second all. Each probe is a container of its
own, started by rocmrun, and no kept proof counts. `import torch` is a launch of the first profile with
`--no-probe`. Needs GPUs, and an image with torch for them.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("rocmrun")


def main() -> int:
    """Print seconds and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--one", required=True, metavar="PROFILE")
    parser.add_argument("--all", required=True, metavar="PROFILE")
    parser.add_argument("--python", default="python3", help="the interpreter inside the image")
    parser.add_argument("--level", choices=("quick", "standard", "full"), default="quick")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    imports = ("launch", options.one, "--no-probe", "--", options.python, "-c", "import torch")
    commands = {
        "import torch": imports,
        "one GPU": ("probe", options.one, "--level", options.level),
        "all GPUs": ("probe", options.all, "--level", options.level),
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    run(imports)  # the first start reads the files from disk
    for _ in range(options.rounds):
        for name, words in commands.items():
            taken[name].append(run(words))
    seconds = {name: statistics.median(values) for name, values in taken.items()}
    ratios = {
        "all GPUs": seconds["all GPUs"] / seconds["one GPU"],
        "one GPU": seconds["one GPU"] / seconds["import torch"],
    }
    found = {
        "level": options.level, "rounds": options.rounds, "seconds": seconds,
        "all_by_one": ratios["all GPUs"], "one_by_import": ratios["one GPU"],
    }  # fmt: skip
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    print(f"import torch: {seconds['import torch']:.1f} s")
    print(f"one GPU, {options.level}: {seconds['one GPU']:.1f} s, {ratios['one GPU']:.2f}x of that")
    print(f"all GPUs: {seconds['all GPUs']:.1f} s, {ratios['all GPUs']:.2f}x of one")
    return 0


def run(words: tuple[str, ...]) -> float:
    """Run rocmrun and return how long it took; what it says is shown when it fails."""
    begin = time.perf_counter()
    done = subprocess.run(
        [PROGRAM, "--quiet", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"rocmrun {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
