"""Where a run wrote in its image's tree: by the engine's list of changes, and by what the job itself said was read-only."""

import posixpath
from collections.abc import Callable, Iterable, Mapping

from pydantic import BaseModel, ConfigDict

from rocmrun.core.run import ChangeKind, WritableLayer

# What the engine makes in a container's layer, or mounts over a file of it; the rest are the plan's own targets.
# The init program is mounted at /sbin, which is a link in most images by now.
ENGINES_OWN = (
    "/.dockerenv", "/dev", "/etc/hostname", "/etc/hosts", "/etc/mtab", "/etc/resolv.conf", "/proc",
    "/run/.containerenv", "/sbin/docker-init", "/sys", "/usr/bin/docker-init", "/usr/sbin/docker-init",
)  # fmt: skip
# Python keeps compiled modules beside their sources where it may, and goes on where it may not.
_BYTECODE = "__pycache__"
# To tell a file from a directory is a question to the engine; most jobs that write much write into few directories.
MOST_LOOKED_UP = 16
MOST_DIRECTORIES = 32


class WrittenDirectory(BaseModel):
    """A directory of the image's tree in which a run changed something.

    Attributes:
        paths: How many things changed in it, those in directories that are new counted with the topmost of these.
        new: Whether the run made it: then there is nothing of the image in it.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    path: str
    paths: int = 1
    new: bool = False


class Writes(BaseModel):
    """What a run wrote in its image's tree.

    Attributes:
        directories: Sorted by path; no more than are of use here.
        size_bytes: Of all files written; None where the engine does not say.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    directories: tuple[WrittenDirectory, ...] = ()
    size_bytes: int | None = None


def writes_of(
    layer: WritableLayer, targets: Iterable[str], *, is_directory: Callable[[str], bool]
) -> Writes:
    """Return the directories that a run wrote into, the deepest that were there before, or the topmost that it made.

    Args:
        layer: What the engine lists.
        targets: Where something is mounted: its place in the layer is the engine's doing, and what is in it no part of it.
        is_directory: Whether a path that the run left is a directory.
    """
    own = (*ENGINES_OWN, *targets)
    changes = {path: kind for path, kind in layer.changes.items() if not _is_left_out(path, own)}
    counts: dict[str, int] = {}
    looked_up = 0
    # A directory that only holds what changed has not changed by itself.
    holders = {parent for path in (*layer.changes, *own) for parent in _parents(path)}
    for leaf in sorted(changes.keys() - holders):
        directory = _topmost(posixpath.dirname(leaf), changes)
        unsure = changes.get(directory) != "added" and changes[leaf] != "deleted"
        if unsure and looked_up < MOST_LOOKED_UP:
            looked_up += 1
            directory = leaf if is_directory(leaf) else directory
        counts[directory] = counts.get(directory, 0) + 1
    found = [
        WrittenDirectory(path=path, paths=paths, new=changes.get(path) == "added")
        for path, paths in sorted(counts.items())
    ]
    return Writes(directories=tuple(found[:MOST_DIRECTORIES]), size_bytes=layer.size_bytes)


def _is_left_out(path: str, own: tuple[str, ...]) -> bool:
    # A job that installs things changes tens of thousands of paths.
    below = f"{path}/"
    return any(below.startswith(f"{place}/") for place in own) or f"/{_BYTECODE}/" in below


def _topmost(directory: str, changes: Mapping[str, ChangeKind]) -> str:
    """Return the first directory on the way to *directory* that the run made, or *directory* where it made none."""
    made = (one for one in (*_parents(directory), directory) if changes.get(one) == "added")
    return next(made, directory)


def _parents(path: str) -> list[str]:
    """Return the directories on the way to *path*, from the root on."""
    found = []
    while path not in {"/", ""}:
        path = posixpath.dirname(path)
        found.append(path)
    return found[::-1]


def directory_of(path: str) -> str:
    """Return the directory in which *path*, as a program printed it, was to be made; "" where it is no absolute path."""
    plain = posixpath.normpath(path)
    usable = plain.startswith("/") and not plain.startswith("//")
    return posixpath.dirname(plain) if usable and _BYTECODE not in plain.split("/") else ""
