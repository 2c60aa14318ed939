"""Who started rocmrun, as values: the planner looks at no environment."""

from dataclasses import dataclass

NOBODY = 65532


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The user on whose behalf a container runs.

    Attributes:
        uid: Real user id; under sudo the id of the user who typed it.
        gid: That user's group id.
        cache_root: Directory under which rocmrun keeps cache directories.
        in_ci: Whether CI is set in the environment.
    """

    uid: int
    gid: int
    cache_root: str
    in_ci: bool = False

    @property
    def container_ids(self) -> tuple[int, int]:
        """The ids a container of this caller runs as: its own, or 65532:65532 for plain root."""
        return (NOBODY, NOBODY) if self.uid == 0 else (self.uid, self.gid)
