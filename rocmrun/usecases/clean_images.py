"""Clean images: drop keep-tags that no lock uses, and images that nothing else names."""

from collections.abc import Iterable
from pathlib import Path

from rocmrun.core.keep_tags import KEEP_REPOSITORY, CleanedImages, unused
from rocmrun.core.lock import Lock
from rocmrun.errors import LockMissing
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.locks import LockPlaces, read_lock


def clean_images(
    engine: Engine, *, places: LockPlaces, lockfiles: Iterable[Path], dry_run: bool
) -> CleanedImages:
    """Drop the keep-tags that no lock of *places* and none of *lockfiles* uses.

    Raises:
        LockMissing: one of *lockfiles* does not exist.
        LockUnreadable: a lock cannot be read, so that nobody knows what it uses; then nothing was removed.
    """
    locks = known_locks(places, lockfiles)
    digests = {pin.digest for lock in locks.values() for pin in lock.images if pin.digest}
    found = unused(
        engine.named_images(KEEP_REPOSITORY), locked=digests, in_use=engine.images_in_use()
    )
    if not dry_run:
        for name in (name for image in found for name in image.names):
            engine.remove_image_name(name)
    return CleanedImages(images=found, locks=tuple(map(str, locks)))


def known_locks(places: LockPlaces, lockfiles: Iterable[Path]) -> dict[Path, Lock]:
    """Return the locks that say what is used on this machine: those of *places*, and *lockfiles*, which must exist."""
    found: dict[Path, Lock] = {}
    for path in lockfiles:
        lock = read_lock(path)
        if lock is None:
            msg = f"there is no {path}"
            raise LockMissing(msg, hint="name a lock that is there: what it holds is kept")
        found[path] = lock
    for path in (places.project, places.user, places.system, places.shipped):
        lock = read_lock(path)
        if lock is not None:
            found[path] = lock
    return found
