"""What mount sources are: paths of the host as lstat and stat told them, and volumes as the engine did."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFacts:
    """A mount source (or any path a profile names), as lstat and stat told it.

    Attributes:
        path: As asked, absolute.
        kind: What it is after symlinks; "loop" is a symlink loop, "denied" EACCES (or a dead
            file system) on the way.
        components: Every directory on the way and the path itself, after symlinks: (path, mode, uid, gid);
            as far as it exists.
        real_path: The path after symlinks; None when it does not resolve.
        acl: Whether a POSIX ACL of the path itself adds rights that mode and owner do not show.
        other_names: Further paths of the very same place: what it is a bind mount of, a socket's hard link.
        holds: Mount points below it, each with its other names: they come along with a bind mount.
        identity: Device and inode of what stands there; None when it does not resolve.
        through: Directories that symlinks on the way passed through and left again, by every name.
    """

    path: str
    kind: Literal["directory", "file", "socket", "device", "other", "missing", "loop", "denied"]
    real_path: str | None = None
    components: tuple[tuple[str, int, int, int], ...] = ()
    acl: bool = False
    other_names: tuple[str, ...] = ()
    holds: tuple[tuple[str, tuple[str, ...]], ...] = ()
    identity: tuple[int, int] | None = None
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeFacts:
    """A named volume that the engine has already.

    Attributes:
        driver: Who provides it; "local" is the engine itself.
        options: What the driver was told. The local one calls mount(2) with "type", "device" and "o".
    """

    name: str
    driver: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_bind(self) -> bool:
        """Whether it is a directory of the host: the flag decides, whatever the type says (mount(2))."""
        return not {"bind", "rbind"}.isdisjoint(self.options.get("o", "").split(","))

    @property
    def bind_source(self) -> str | None:
        """The directory of the host that it is, where it is one."""
        device = self.options.get("device", "")
        return f"/{device.strip('/')}" if self.is_bind and device.startswith("/") else None
