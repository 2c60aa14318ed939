"""Small values that pass between an engine and its users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PullEvent:
    """One progress event of a pull; sizes in bytes, None where the engine names none.

    *warning* is something about the pull that is worth saying aloud.
    """

    layer: str = ""
    status: str = ""
    current: int | None = None
    total: int | None = None
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A created container and what the engine warned about."""

    container_id: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """How a container is doing: "created", "running", "exited", ….

    Attributes:
        health: "starting", "healthy" or "unhealthy"; "" where nothing is checked.
    """

    status: str
    exit_code: int | None = None
    oom_killed: bool = False
    error: str = ""
    health: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOwner:
    """Whose a path in a container is: permission bits, numeric owner, and the target of a symlink."""

    mode: int
    uid: int
    gid: int
    link_target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStat:
    """A path in a container: Go's file mode bits and, for a symlink, its target."""

    mode: int
    link_target: str = ""

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return bool(self.mode & (1 << 31))

    @property
    def executable(self) -> bool:
        """Whether anybody may execute it."""
        return bool(self.mode & 0o111)


ChangeKind = Literal["changed", "added", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritableLayer:
    """What a container has changed of its image, as the engine lists it; mounts are no part of it.

    Attributes:
        changes: Absolute path → what became of it. A directory is listed with what changed in it.
        size_bytes: Of the files in it; None where the engine does not say.
    """

    changes: Mapping[str, ChangeKind]
    size_bytes: int | None = None
