"""A systemd unit for a profile: everything in it absolute, and the lock that answers now."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from rocmrun.core.systemd_unit import UnitRequest
from rocmrun.system.profile_search import ProfileSearch
from rocmrun.usecases.locks import find_pin
from rocmrun.usecases.profiles import load_profile


def unit_request(
    name: str,
    *,
    search: ProfileSearch,
    settings: Mapping[str, str],
    lockfile: Path | None,
    profile_directories: tuple[Path, ...],
    user: bool,
    container: str | None,
    docker_host: str,
) -> UnitRequest:
    """Return what the unit of profile *name* is made from.

    Raises:
        ProfileNotFound, ProfileInvalid, ParameterMissing: it could not be launched.
        LockMissing: its image is not locked.
    """
    loaded = load_profile(name, search=search, settings=settings)
    _, lock = find_pin(loaded, lockfile=lockfile)
    return UnitRequest(
        program=_program(),
        name=loaded.name,
        profile_path=loaded.path,
        profile=loaded.profile,
        lockfile=str(lock.absolute()),
        directory=str(search.working_directory.absolute()),
        container=container or f"rocmrun-{loaded.name}",
        settings=settings,
        profile_directories=tuple(str(path.absolute()) for path in profile_directories),
        user=user,
        docker_host=docker_host,
    )


def _program() -> tuple[str, ...]:
    """Return the words that start this rocmrun from anywhere."""
    script = shutil.which(sys.argv[0])
    if script is None or Path(script).name == "__main__.py":
        return (sys.executable, "-m", "rocmrun")
    return (str(Path(script).absolute()),)
