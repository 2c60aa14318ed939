"""Where locks stand, which one answers for a profile's image, and which one is written."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import rocmrun
from rocmrun.core.lock import Lock, PinnedImage, parse_lock
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.reference import parse_reference
from rocmrun.errors import LockMissing, LockUnreadable
from rocmrun.system.files import read_text

LOCK_NAME = "rocmrun.lock"
SHIPPED = "shipped"
_PROFILES = "profiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockPlaces:
    """The places where a lock can stand, on this machine and for this call.

    Attributes:
        option: --lockfile; then no other place counts.
        project: ./rocmrun.lock.
        user: Beside the user's own profiles.
        system: Beside the site's profiles.
        shipped: What came with rocmrun; never written.
    """

    option: Path | None
    project: Path
    user: Path
    system: Path
    shipped: Path

    @classmethod
    def of(
        cls,
        *,
        lockfile: Path | None,
        environment: Mapping[str, str],
        directory: Path,
        shipped: Path | None = None,
    ) -> "LockPlaces":
        """Return the places for a call with *lockfile* in *directory*, by the XDG rules of *environment*."""
        configured = environment.get("XDG_CONFIG_HOME", "")
        # The XDG base directory specification: a relative path is invalid and ignored.
        if not configured.startswith("/"):
            configured = f"{environment.get('HOME') or ''}/.config"
        return cls(
            option=lockfile,
            project=directory / LOCK_NAME,
            user=Path(configured) / "rocmrun" / LOCK_NAME,
            system=Path("/etc/rocmrun") / LOCK_NAME,
            shipped=shipped or shipped_lock(),
        )

    @classmethod
    def here(cls, lockfile: Path | None = None) -> "LockPlaces":
        """Return the places for this process."""
        return cls.of(lockfile=lockfile, environment=os.environ, directory=Path.cwd())

    def candidates(self, origin: str, profile_path: Path) -> tuple[Path, ...]:
        """Return the locks that may answer for a profile, in the order in which they are asked."""
        if self.option is not None:
            return (self.option,)
        if origin == SHIPPED:
            return (self.project, self.user, self.system, self.shipped)
        return (_beside(profile_path, origin),)

    def to_write(self, origin: str, profile_path: Path) -> Path:
        """Return the lock that `rocmrun lock` writes for a profile.

        A shipped profile is pinned in the project where there is one here, else for the user.
        """
        if self.option is not None:
            return self.option
        if origin != SHIPPED:
            return _beside(profile_path, origin)
        in_project = self.project.exists() or (self.project.parent / _PROFILES).is_dir()
        return self.project if in_project else self.user


def shipped_lock() -> Path:
    """Return the lock that came with rocmrun: beside its data, or at the top of a source tree."""
    package = Path(rocmrun.__file__).parent
    installed = package / "data" / LOCK_NAME
    return installed if installed.exists() else package.parent / LOCK_NAME


def find_pin(
    loaded: LoadedProfile,
    *,
    ref: str | None = None,
    lockfile: Path | None = None,
    places: LockPlaces | None = None,
) -> tuple[PinnedImage, Path]:
    """Return the pin of a profile's image, or of another *ref* that it names, and the lock that holds it.

    The first lock that knows the reference decides, also when it knows it for another platform.

    Raises:
        LockMissing: none of the places has it; they are listed.
        LockStale: it is locked for another platform.
        LockUnreadable: a lock on the way cannot be read.
    """
    image = loaded.profile.image
    role = "the image of profile" if ref is None else "the image to probe in of profile"
    ref = parse_reference(ref or image.ref or "").canonical
    where = places or LockPlaces.here(lockfile)
    looked: list[str] = []
    for path in where.candidates(loaded.origin, Path(loaded.path)):
        lock = read_lock(path)
        if lock is not None and lock.get(ref) is not None:
            return lock.require(ref, image.platform, profile=loaded.name), path
        looked.append(f"{path}: {'no such file' if lock is None else 'does not hold it'}")
    msg = f"{ref}, {role} {loaded.name}, is not locked"
    raise LockMissing(msg, hint=f"rocmrun lock {loaded.name}", details=tuple(looked))


def read_lock(path: Path) -> Lock | None:
    """Return the lock at *path*, or None when there is no such file.

    Raises:
        LockUnreadable: it cannot be read, or is no lock.
    """
    text = read_text(path, LockUnreadable)
    return None if text is None else parse_lock(text, str(path))


def _beside(profile_path: Path, origin: str) -> Path:
    """The lock stands beside the profile directory, or beside a file that is in none."""
    directory = profile_path.absolute().parent
    alone = origin == "file" and directory.name != _PROFILES
    return (directory if alone else directory.parent) / LOCK_NAME
