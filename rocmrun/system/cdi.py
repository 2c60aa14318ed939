"""CDI specification files on this host."""

from collections.abc import Iterable
from pathlib import Path

# Where engines look unless told otherwise (CDI specification, "CDI JSON Definition").
DIRECTORIES = ("/etc/cdi", "/var/run/cdi")


def read_cdi_files(root: Path, directories: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
    """Return (path, text) of every JSON specification below *root*, in the order in which engines read them.

    YAML is not read: AMD's tool writes JSON. A file that cannot be read is left out.
    """
    found = []
    for directory in tuple(directories) or DIRECTORIES:
        for path in sorted((root / directory.lstrip("/")).glob("*.json")):
            try:
                found.append((str(path), path.read_text(encoding="utf-8")))
            except (OSError, UnicodeDecodeError):
                continue
    return tuple(found)
