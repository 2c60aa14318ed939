"""What an engine hands its runtime for a container that runs: the configuration in the container's OCI bundle.

No engine's API tells it. The parent of a container's first process is its shim (containerd), which works in the bundle's
directory, or its monitor (conmon, of Podman), which was told it; the kernel shows that directory to root alone.
"""

import json
from pathlib import Path
from typing import Any

from rocmrun.errors import SeccompBaseUnknown

_BUNDLE = "-b"  # conmon(8)
READ_LIMIT_BYTES = 4 * 1024 * 1024
_FILE_HINT = "--seccomp-base FILE with the default.json of the engine's version, or /usr/share/containers/seccomp.json of Podman"  # fmt: skip


def read_bundle(pid: int, container_id: str, root: Path = Path("/")) -> dict[str, Any]:
    """Return the OCI configuration of the running container *container_id*, whose first process is *pid*.

    Raises:
        SeccompBaseUnknown: it cannot be read, or is not this container's.
    """
    shim = _parent(pid, root)
    try:
        bundle = _bundle(shim, container_id, root)
        with (bundle / "config.json").open("rb") as file:
            value = json.loads(file.read(READ_LIMIT_BYTES))
    except PermissionError as error:
        msg = "only root may read the engine's own seccomp filter, from what it handed the container's runtime"
        raise SeccompBaseUnknown(msg, hint=f"sudo, or {_FILE_HINT}") from error
    except (OSError, ValueError) as error:
        msg = (
            f"cannot read the configuration that the engine handed the container's runtime: {error}"
        )
        raise SeccompBaseUnknown(msg, hint=_FILE_HINT) from error
    if not isinstance(value, dict):
        msg = "the configuration that the engine handed the container's runtime is no JSON object"
        raise SeccompBaseUnknown(msg, hint=_FILE_HINT)
    return value


def _bundle(shim: int, container_id: str, root: Path) -> Path:
    works_in = root / f"proc/{shim}/cwd"
    directory = str(works_in.readlink())
    if container_id in directory:
        return works_in
    words = (root / f"proc/{shim}/cmdline").read_text().split("\0")
    told = words[words.index(_BUNDLE) + 1] if _BUNDLE in words[:-1] else ""
    if container_id in told:
        return root / told.lstrip("/")
    msg = (
        f"the parent of the container's first process works in {directory}, which is not its bundle"
    )
    raise SeccompBaseUnknown(msg, hint=_FILE_HINT)


def _parent(pid: int, root: Path) -> int:
    try:
        text = (root / f"proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        msg = f"the container's first process ({pid}) is not among this host's"
        raise SeccompBaseUnknown(msg, hint=_FILE_HINT) from error
    fields = dict(line.partition(":")[::2] for line in text.splitlines())
    return int(fields.get("PPid", "0"))
