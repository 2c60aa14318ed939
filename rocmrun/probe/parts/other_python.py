"""A torch that another Python of the image holds, where the one that is asked has none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Where images keep Pythons beside the one on PATH.
PREFIXES = (
    "usr", "usr/local", "opt/*", "opt/conda/envs/*", "venv", ".venv", "app/venv", "app/.venv",
    "workspace/venv", "workspace/.venv",
)  # fmt: skip


def torch_elsewhere(root: Path = Path("/")) -> dict[str, str]:
    """Return the first torch below *root* that this Python does not find, and the Python that does, where it is seen."""
    try:
        for prefix in PREFIXES:
            for found in sorted(root.glob(f"{prefix}/lib/python3*/*-packages/torch/__init__.py")):
                packages = found.parent.parent
                if str(packages) not in sys.path:
                    python = python_of(packages, root)
                    told = {"torch_elsewhere": str(found.parent)}
                    return {**told, "python_elsewhere": python} if python else told
    except OSError:
        pass  # a directory that cannot be listed tells nothing
    return {}


def python_of(packages: Path, root: Path) -> str:
    """Return the interpreter that looks into *packages* (PREFIX/lib/python3.12/site-packages), "" where none is seen."""
    prefix = packages.parent.parent.parent
    # Debian's own Python of /usr looks into dist-packages of /usr/local.
    places = (root / "usr", prefix) if packages.name == "dist-packages" else (prefix,)
    names = (packages.parent.name, "python3")
    pythons = [str(place / "bin" / name) for place in places for name in names]
    return next((python for python in pythons if os.access(python, os.X_OK)), "")
