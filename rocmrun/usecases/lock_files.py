"""The lock files that a `rocmrun lock` is about, each with what profiles ask of it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.core.lock_changes import Wanted, merge_wanted
from rocmrun.core.lock_report import Inherited
from rocmrun.core.reference import parse_reference
from rocmrun.errors import LockMissing
from rocmrun.usecases.lock_selection import ProfileReference, Selection
from rocmrun.usecases.locks import SHIPPED, LockPlaces, read_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class LockFile:
    """A lock file with what the profiles of this run ask of it.

    Attributes:
        before: What is in it; None when there is no file.
        inherited: Pins of wanted references that it does not hold and that launch finds in another lock:
            a shipped profile is also covered by the user's, the system's and the shipped lock.
    """

    path: Path
    before: Lock | None
    wanted: tuple[Wanted, ...]
    inherited: tuple[Inherited, ...] = ()

    @property
    def pins(self) -> Lock:
        """Every pin that counts for the wanted references, and all others in the file."""
        own = self.before.images if self.before else ()
        return Lock.of((*own, *(item.pin for item in self.inherited)))

    def own(self, pins: Lock, answered: Collection[str]) -> Lock:
        """Return what of *pins* belongs into the file: all but inherited pins that nobody asked anew."""
        others = {item.pin.ref for item in self.inherited} - set(answered)
        return Lock.of(pin for pin in pins.images if pin.ref not in others)


def by_lock(
    references: Iterable[ProfileReference], places: LockPlaces
) -> dict[Path, list[ProfileReference]]:
    """Return the lock files that *references* are written to, sorted, each with its references."""
    grouped: dict[Path, list[ProfileReference]] = {}
    for reference in references:
        path = places.to_write(reference.origin, reference.path)
        grouped.setdefault(path, []).append(reference)
    return {path: grouped[path] for path in sorted(grouped)}


def read_lock_file(
    path: Path, references: Iterable[ProfileReference], places: LockPlaces
) -> LockFile:
    """Read the lock at *path* and what launch would find elsewhere for *references*.

    Raises:
        ProfileInvalid: two profiles ask for one reference on different platforms.
        LockUnreadable: a lock is there and cannot be read.
    """
    references = tuple(references)
    before = read_lock(path)
    inherited: dict[str, Inherited] = {}
    for reference in references:
        if before is not None and before.get(reference.ref) is not None:
            continue
        for other in places.candidates(reference.origin, reference.path):
            if other != path and (pin := _pin_in(other, reference.ref)):
                inherited[reference.ref] = Inherited(pin=pin, path=str(other))
                break
    return LockFile(
        path=path,
        before=before,
        wanted=merge_wanted(reference.wanted for reference in references),
        inherited=tuple(inherited.values()),
    )


def pull_name(name: str, selection: Selection, *, places: LockPlaces) -> str:
    """Return "repository@sha256:…" of what a lock holds for reference or profile *name*.

    Raises:
        LockMissing: no lock of this call holds it.
        ReferenceInvalid: it is neither.
    """
    named = [item for item in selection.references if item.profile == name]
    ref = named[0].ref if named else parse_reference(name).canonical
    paths = (
        places.candidates(named[0].origin, named[0].path)
        if named
        else places.candidates(SHIPPED, places.project)
    )
    for path in paths:
        pin = _pin_in(path, ref)
        if pin is not None:
            return pin.pull_reference
    details = tuple(f"looked in {path}" for path in paths)
    if named:
        msg = f"{ref} is not locked"
        raise LockMissing(msg, hint=f"rocmrun lock {name}", details=details)
    msg = f"no profile is called {name}, and {ref} is not locked"
    raise LockMissing(
        msg, hint="lock a profile that names it: rocmrun lock PROFILE", details=details
    )


def _pin_in(path: Path, ref: str) -> PinnedImage | None:
    return (read_lock(path) or Lock()).get(ref)
