"""Clean caches: remove those of images that no lock pins and of profiles that are gone."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rocmrun.core.lock import Lock
from rocmrun.core.text import short_digest
from rocmrun.system.cache_directories import (
    CacheDirectory,
    cache_directories,
    remove_cache_directory,
    size_of,
)
from rocmrun.system.caller import read_caller
from rocmrun.usecases.clean_images import known_locks
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.locks import LOCK_NAME, LockPlaces, read_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedCache:
    """A cache that nobody will read again.

    Attributes:
        why: Why nobody will.
        stays: Why it was not removed all the same; "" when it was, or would be.
    """

    path: str
    profile: str
    digest: str
    size_bytes: int
    why: str
    stays: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedCaches:
    """Unused caches, and the locks that say what is used."""

    caches: tuple[UnusedCache, ...]
    locks: tuple[str, ...]


def clean_caches(
    engine: Engine,
    *,
    places: LockPlaces,
    lockfiles: Iterable[Path],
    dry_run: bool,
    root: Path | None = None,
) -> CleanedCaches:
    """Remove caches below *root* (the caller's) whose profile is gone, or whose image no lock pins.

    What counts are the locks of *places*, *lockfiles*, and the lock that stands beside the cache's own
    profile. A cache that a container has mounted stays.

    Raises:
        LockMissing: one of *lockfiles* does not exist.
        LockUnreadable: a lock cannot be read, so that nobody knows what it uses; then nothing was removed.
    """
    root = root or Path(read_caller().cache_root)
    caches = cache_directories(root)
    locks = known_locks(places, lockfiles) | _locks_beside(caches)
    pinned = _pinned(locks.values())
    mounted = engine.mounts_in_use()
    found = []
    for cache in caches:
        why = _why_unused(cache, pinned)
        if why is None:
            continue
        size = size_of(cache.path)
        user = mounted.get(str(cache.path))
        stays = f"container {user} uses it" if user else ""
        if not stays and not dry_run:
            stays = remove_cache_directory(cache, root) or ""
        found.append(
            UnusedCache(
                path=str(cache.path),
                profile=cache.profile,
                digest=cache.digest,
                size_bytes=size,
                why=why,
                stays=stays,
            )
        )
    return CleanedCaches(caches=tuple(found), locks=tuple(map(str, locks)))


def _why_unused(cache: CacheDirectory, pinned: frozenset[str]) -> str | None:
    if cache.profile and _is_gone(Path(cache.profile)):
        return f"its profile {cache.profile} is gone"
    if cache.digest not in pinned:
        return f"no lock pins image {cache.digest}"
    return None


def _is_gone(path: Path) -> bool:
    try:
        return not path.exists()
    except OSError:  # what cannot be looked at may be there
        return False


def _pinned(locks: Iterable[Lock]) -> frozenset[str]:
    names = (name for lock in locks for pin in lock.images for name in (pin.digest, pin.image_id))
    return frozenset(short_digest(name) for name in names if name)


def _locks_beside(caches: Iterable[CacheDirectory]) -> dict[Path, Lock]:
    """Return the locks that answer for the caches' own profiles, wherever those are."""
    profiles = {Path(cache.profile) for cache in caches if cache.profile}
    paths = {place / LOCK_NAME for path in profiles for place in (path.parent, path.parent.parent)}
    found = ((path, read_lock(path)) for path in sorted(paths))
    return {path: lock for path, lock in found if lock is not None}
