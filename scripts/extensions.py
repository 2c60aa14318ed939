"""A real extension of torch for the tests: bitsandbytes, whose one wheel has libraries for ROCm, CUDA and processors.

It is unpacked below build/ and mounted into the demo image: 41 MB to fetch, and no image of its own.
"""

import sys
from pathlib import Path
from shutil import rmtree

from scripts.commands import SetupError, run, say

BITSANDBYTES = "bitsandbytes==0.50.2"
ITS_NEED = "packaging==26.4"  # torch and numpy, which it also needs, are in the image


def path(build: Path) -> Path | None:
    """Return the folder to put on an image's module path, None when there is none."""
    folder = build / "extensions" / BITSANDBYTES.replace("==", "-")
    return folder if folder.is_dir() else None


def ensure(*, build: Path, log: Path) -> None:
    """Leave with the extension, or say why there is none: the tests that need it then say so too."""
    if path(build) is not None:
        return
    rmtree(build / "extensions", ignore_errors=True)
    folder = build / "extensions" / BITSANDBYTES.replace("==", "-")
    fresh = folder.with_name("fresh")
    # Both wheels fit every Python 3.
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    say(f"extension: {BITSANDBYTES}")
    try:
        run([*pip, "--only-binary=:all:", "--target", str(fresh), BITSANDBYTES, ITS_NEED], log=log)
    except SetupError as error:
        say(f"extension: {error}")
        return
    for entry in (fresh, *fresh.rglob("*")):
        entry.chmod(0o755 if entry.is_dir() else 0o644)
    fresh.rename(folder)
