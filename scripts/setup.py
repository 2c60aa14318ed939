"""Make a machine ready for the demo and the tests: programs, engine, registry, images.

Run by the Makefile in the project's virtual environment: `python -m scripts.setup up [--tests]`,
`demo`, `down`. Everything that it keeps is below build/.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from scripts import cosign, engine, extensions, images, packages, registry
from scripts.commands import SetupError, say

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
STATE = BUILD / "state"
LOGS = BUILD / "log"


def main() -> int:
    """Carry out one command and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.setup", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="engine, registry and images")
    up.add_argument(
        "--tests", action="store_true", help="also the images and programs that only tests need"
    )
    commands.add_parser("demo", help="the commands a user would type, on the demo image")
    commands.add_parser("down", help="stop what was started here")
    options = parser.parse_args()
    try:
        if options.command == "up":
            if options.tests:
                cosign.ensure(build=BUILD, log=LOGS / "packages.log")
                extensions.ensure(build=BUILD, log=LOGS / "packages.log")
                add_podman()
            bring_up(images.FOR_TESTS if options.tests else images.FOR_DEMO)
            return 0
        return show_demo() if options.command == "demo" else take_down()
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint is not None:
            print(f"\nhint: {error.hint}", file=sys.stderr)
        return 1


def add_podman() -> None:
    """Install what the tests on Podman start, or say why not: they then say so too."""
    try:
        packages.require("podman", "crun", "catatonit", log=LOGS / "packages.log")
    except SetupError as error:
        say(f"podman: {error}")


def bring_up(references: tuple[str, ...]) -> None:
    """Leave with an engine, a registry and *references* in both."""
    started = time.monotonic()
    log = LOGS / "packages.log"
    is_root = os.geteuid() == 0
    answered = engine.version() is not None
    if is_root:
        programs = ["docker"]
        programs += [] if answered else ["dockerd"]
        programs += [] if registry.answers() else ["docker-registry"]
        programs += [] if answered and not images.missing(references) else ["debootstrap"]
        packages.require(*programs, log=log)
    else:
        packages.require("docker", log=log)
    engine.ensure(state=STATE, logs=LOGS, is_root=is_root)
    registry.ensure(state=STATE, logs=LOGS, storage=BUILD / "registry")
    images.ensure(references, build=BUILD, log=LOGS / "images.log")
    say(f"ready in {time.monotonic() - started:.0f} s")


def show_demo() -> int:
    """Run the ordinary commands, each shown as a user would type it; the lock is the demo's own."""
    folder = BUILD / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "rocmrun.lock"
    if lock.exists() and (registry.digest(images.DEMO) or "") not in lock.read_text(
        encoding="utf-8"
    ):
        lock.unlink()  # the image was built anew since, and no two builds have the same digest
    lockfile = str(lock.relative_to(ROOT))
    rocmrun = Path(sys.executable).with_name("rocmrun")
    for verb in ("lock", "plan", "launch"):
        words = [verb, "demo", "--lockfile", lockfile]
        print(f"\n$ rocmrun {' '.join(words)}", flush=True)
        code = subprocess.run([rocmrun, *words], cwd=ROOT, check=False).returncode
        if code != 0:
            return code
    return 0


def take_down() -> int:
    """Stop what `bring_up` started, registry first; images and caches stay."""
    registry.stop(state=STATE)
    engine.stop(state=STATE, logs=LOGS)
    say("kept: the images in the engine, build/ and .venv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
