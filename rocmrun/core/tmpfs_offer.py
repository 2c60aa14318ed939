"""A tmpfs in the place of a writable root: where it may lie, how large it is, and what came of trying it."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rocmrun.core.host_paths import is_inside, touches
from rocmrun.core.plan import Plan
from rocmrun.core.text import MIB, human_size, one_line
from rocmrun.core.verification import CertificateRecord
from rocmrun.core.writes import Writes, directory_of

ROOTFS, TMPFS = "rootfs:rw", "tmpfs:"
MOST_PLACES = 4
# Each round costs a run that passes, or as many that fail as are taken for a failure.
MOST_ROUNDS = 3
# Four times what one run wrote, and a size where no engine tells what that was.
ROOM = 4
LEAST_BYTES, UNKNOWN_BYTES = 16 * MIB, 64 * MIB
# Hiding one of these is another system, not a narrower right; what is below some of them may be the job's own.
_SYSTEM = re.compile(
    r"/|/(?:boot|dev|proc|sys)(?:/.*)?|/(?:etc|usr|usr/local)"
    r"|/(?:usr/(?:local/)?)?(?:s?bin|games|include|lib(?:32|64|x32|exec)?|share)(?:/[^/]+-linux-[^/]+)?"
)
# What every form of a profile can say: a docker line has ":" and "," between fields, and "$" begins a variable.
_PLAIN = re.compile(r"[\w ./+@~=-]+")
LOST = (
    "what the job writes there is lost when the container ends: a mount or a volume there keeps it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory in which a job writes, or wanted to.

    Attributes:
        new: Whether the job made it, so that nothing of the image is hidden by a tmpfs there.
        changed: How many paths the engine lists as changed in it.
        refused: What the job said was read-only in it.
    """

    path: str
    new: bool = False
    changed: int = 0
    refused: tuple[str, ...] = ()

    @property
    def named_by(self) -> tuple[str, ...]:
        """What tells of it, a sentence each."""
        paths = "a path" if self.changed == 1 else f"{self.changed} paths"
        listed = (f"the engine lists {paths} changed there",) if self.changed else ()
        return (
            *listed,
            *(f"the job said that {one_line(path)} is read-only" for path in self.refused),
        )

    def with_what_names(self, other: "Place") -> "Place":
        """Return it with what tells of *other*, which lies in it."""
        refused = tuple(dict.fromkeys((*self.refused, *other.refused)))
        return replace(self, changed=self.changed + other.changed, refused=refused)


class TriedPlace(CertificateRecord):
    """A directory where a tmpfs was tried."""

    path: str
    size_bytes: int
    new: bool = False
    named_by: tuple[str, ...] = ()

    @property
    def item(self) -> str:
        """The tmpfs as an item of a search."""
        return f"{TMPFS}{self.path}"


class LeftOutPlace(CertificateRecord):
    """A directory that the job writes in and where no tmpfs was tried."""

    path: str
    why: str
    named_by: tuple[str, ...] = ()


class TmpfsTried(CertificateRecord):
    """What came of looking for a tmpfs in the place of a writable root.

    Attributes:
        outcome: Whether the job passed with a tmpfs at each of *places* in the place of `rootfs:rw` and everything
            else of the permissive side; "" where none was tried.
        evidence: What it said when it did not.
    """

    outcome: Literal["", "passed", "failed", "stopped"] = ""
    places: tuple[TriedPlace, ...] = ()
    left_out: tuple[LeftOutPlace, ...] = ()
    evidence: str = ""

    def of(self, item: str) -> TriedPlace | None:
        """Return the place that *item* covers."""
        return next((place for place in self.places if place.item == item), None)


NOT_LOOKED_FOR = TmpfsTried()


def places_of(
    writes: Iterable[Writes], refused: Iterable[str], *, known: Iterable[Place] = ()
) -> tuple[Place, ...]:
    """Return where a job writes beside what is *known*: by what the engine lists, then by what it said was read-only."""
    found = {place.path: place for place in known}
    for directory in (directory for one in writes for directory in one.directories):
        place = Place(path=directory.path, new=directory.new, changed=directory.paths)
        found.setdefault(place.path, place)
    for path in refused:
        place = _place_of(path, found)
        found[place.path] = place.with_what_names(Place(path=place.path, refused=(path,)))
    found.pop("", None)
    return tuple(found[path] for path in sorted(found))


def _place_of(path: str, known: dict[str, Place]) -> Place:
    """Return the known place that *path* lies in, the deepest; else the directory that it was to be made in."""
    plain = posixpath.normpath(path)
    holding = [
        place for place in known.values() if place.path != "/" and is_inside(plain, place.path)
    ]
    if holding:
        return max(holding, key=lambda place: len(place.path))
    directory = directory_of(path)
    return known.get(directory) or Place(path=directory)


def wider(places: Iterable[Place]) -> tuple[Place, ...]:
    """Return *places* with the directory around each one that the job makes itself: it may not like to find it there."""
    return tuple(
        replace(place, path=posixpath.dirname(place.path), new=False) if place.new else place
        for place in places
    )


def choose(
    places: Iterable[Place], plan: Plan, *, program: str, written_bytes: int | None
) -> tuple[tuple[TriedPlace, ...], tuple[LeftOutPlace, ...]]:
    """Return where a tmpfs is tried, and where none may lie, with the reason.

    Args:
        places: Where the job writes.
        plan: Of the job without any tmpfs that is tried.
        program: What the job starts, an absolute path; "" for one that is looked up along PATH.
        written_bytes: What one run wrote, all in all; None where nobody said.
    """
    whys = [(place, why_not(place.path, plan, program)) for place in places]
    left_out = [_left_out(place, why) for place, why in whys if why]
    fit = _outermost([place for place, why in whys if not why])
    size = tmpfs_size(written_bytes, plan.memory_bytes)
    why = f"the job writes in more than {MOST_PLACES} directories"
    if size is None:
        why = f"what one run writes ({human_size(written_bytes or 0)}) is too much to be held in memory"
    if size is None or len(fit) > MOST_PLACES:
        return (), (*left_out, *(_left_out(place, why) for place in fit))
    tried = [
        TriedPlace(path=place.path, size_bytes=size, new=place.new, named_by=place.named_by)
        for place in fit
    ]
    return tuple(tried), tuple(left_out)


def _left_out(place: Place, why: str) -> LeftOutPlace:
    return LeftOutPlace(path=place.path, why=why, named_by=place.named_by)


def _outermost(places: Sequence[Place]) -> list[Place]:
    """Return the places that lie in no other, each with what names those in it."""
    found: list[Place] = []
    for place in sorted(places, key=lambda place: place.path.split("/")):
        if found and is_inside(place.path, found[-1].path):
            found[-1] = found[-1].with_what_names(place)
        else:
            found.append(place)
    return found


def why_not(path: str, plan: Plan, program: str) -> str:
    """Return why no tmpfs may lie at *path*; "" where one may be tried."""
    if _SYSTEM.fullmatch(path):
        return "a directory of the system is never covered"
    if not _PLAIN.fullmatch(path):
        return "not every form of a profile can say such a name"
    targets = targets_of(plan)
    if near := next((target for target in targets if touches(path, target)), ""):
        return f"{near} is mounted there"
    if program and is_inside(program, path):
        return "the job's program is there"
    return ""


def targets_of(plan: Plan) -> tuple[str, ...]:
    """Return where *plan* mounts something."""
    return (
        *(mount.target for mount in plan.mounts),
        *(tmpfs.target for tmpfs in plan.tmpfs),
        *(secret.target for secret in plan.secrets),
    )


def tmpfs_size(written_bytes: int | None, memory_bytes: int | None) -> int | None:
    """Return the size of a tmpfs for what a run wrote, with room, as a power of two; None where memory is no place for it."""
    most = memory_bytes // 2 if memory_bytes else None
    if written_bytes is not None and most is not None and written_bytes > most:
        return None
    wanted = UNKNOWN_BYTES if written_bytes is None else max(LEAST_BYTES, ROOM * written_bytes)
    size = 1 << (wanted - 1).bit_length()
    return size if most is None else min(size, most)


def note_on(item: str, tried: TmpfsTried) -> str:
    """Return what to know of one item that was kept: of a tmpfs, and of a writable root in whose place one was tried."""
    place = tried.of(item)
    if place is not None:
        hidden = "" if place.new else "; it hides what the image has there"
        return f"{human_size(place.size_bytes)} of memory at most, noexec{hidden}; {LOST}; {'; '.join(place.named_by)}"
    return _note_on_root(tried) if item == ROOTFS else ""


def _note_on_root(tried: TmpfsTried) -> str:
    narrower = 'a volume or a mount with mode = "rw" at the one path that the job writes is narrower: a volume begins with what the image has there'
    left_out = _told(tried.left_out)
    if tried.outcome == "failed":
        paths = ", ".join(place.path for place in tried.places)
        beside = f" (not tried: {left_out})" if left_out else ""
        return f"a tmpfs at {paths} was tried in its place and does not do: {tried.evidence}{beside}; {narrower}"
    if tried.outcome == "stopped":
        return f"the budget ended before a tmpfs had been tried in its place; {narrower}"
    if tried.outcome == "passed":
        return ""
    if left_out:
        return f"no tmpfs was tried in its place ({left_out}); {narrower}"
    return (
        f"nothing tells where the job writes, so that no tmpfs was tried in its place; {narrower}"
    )


def _told(left_out: Iterable[LeftOutPlace]) -> str:
    """Return the places with the reason for each, those with the same reason together and not all of many."""
    paths: dict[str, list[str]] = {}
    for place in left_out:
        paths.setdefault(place.why, []).append(one_line(place.path))
    more = {why: len(each) - MOST_PLACES for why, each in paths.items()}
    return "; ".join(
        f"{', '.join(each[:MOST_PLACES])}{f' and {more[why]} more' if more[why] > 0 else ''}: {why}"
        for why, each in paths.items()
    )
