"""A folder for a container's module path that makes something of its torch wrong."""

import json
import shutil
from pathlib import Path

FAULTY = Path(__file__).parent / "faulty_torch"


def faulty_torch(folder: Path, *faults: str, device: str | None = None) -> Path:
    """Make such a folder below *folder* and return it; anybody can read it."""
    made = folder / "faulty"
    shutil.copytree(FAULTY, made, ignore=shutil.ignore_patterns("__pycache__"))
    (made / "FAULTS").write_text(json.dumps({"faults": faults, "device": device}))
    for path in (made, *made.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for parent in made.parents:
        if parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o005)
    return made
