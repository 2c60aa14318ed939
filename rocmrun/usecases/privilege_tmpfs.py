"""A tmpfs in the place of a writable root: where the job writes is seen in its runs, and whether one does is tried."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rocmrun.core.oracle import TrialResult
from rocmrun.core.search_space import Members, Passes, Space
from rocmrun.core.tmpfs_offer import (
    MOST_ROUNDS,
    NOT_LOOKED_FOR,
    ROOTFS,
    Place,
    TmpfsTried,
    choose,
    places_of,
    wider,
)
from rocmrun.core.voice import Voice
from rocmrun.usecases.privilege_sides import Sides
from rocmrun.usecases.privilege_trials import PrivilegeTrials


def make_offer(
    sides: Sides, asked: PrivilegeTrials, retries: int, voice: Voice, space: Callable[[], Space]
) -> "TmpfsOffer | None":
    """Return the offer of a tmpfs, and have the first runs looked at for where they write; None where the root does not vary."""
    if ROOTFS not in sides.permissive:
        return None
    asked.looked_at |= {frozenset(sides.permissive), frozenset()}
    return TmpfsOffer(sides=sides, asked=asked, retries=retries, voice=voice, space=space)


@dataclass(slots=True, kw_only=True)
class TmpfsOffer:
    """Offers a search a tmpfs at each directory that the job writes in, once all of them together did in the place of `rootfs:rw`.

    Attributes:
        retries: How often a failure is tried again.
        space: Makes the space that is searched.
        tried: What came of it.
    """

    sides: Sides
    asked: PrivilegeTrials
    retries: int
    voice: Voice
    space: Callable[[], Space]
    tried: TmpfsTried = field(init=False, default=NOT_LOOKED_FOR)
    _refused: list[str] = field(init=False, default_factory=list)

    def __call__(self, passes: Passes) -> Space:
        """Try it, a few rounds at most, and return what is searched from now on."""
        whole = frozenset(self.sides.permissive)
        first = self.asked.results
        writes = [one.writes for one in first.get(whole, ()) if one.writes is not None]
        self._refused += _refused_of(first.get(frozenset(), ()))
        sizes = [one.size_bytes for one in writes if one.size_bytes is not None]
        places = places_of(writes, self._refused)
        for _ in range(MOST_ROUNDS):
            if not self._chosen(places, max(sizes, default=None)):
                break
            members = whole - {ROOTFS} | {place.item for place in self.tried.places}
            if self._does(members, passes):
                break
            places = self._next(places, members)
        if self.tried.outcome != "passed":
            self.sides.offer_tmpfs({})
        return self.space()

    def _chosen(self, places: tuple[Place, ...], written_bytes: int | None) -> bool:
        """Take a tmpfs at *places* into the sides; False where there is none that was not tried yet."""
        plan = self.sides.plan(self.sides.permissive)
        tried, left_out = choose(
            places, plan, program=self.sides.program, written_bytes=written_bytes
        )
        new = bool(tried) and tried != self.tried.places
        if new or not self.tried.outcome:
            changes = {"places": tried, "left_out": left_out, "outcome": "stopped" if new else ""}
            self.tried = self.tried.model_copy(update=changes)
            self.sides.offer_tmpfs({place.item: place.size_bytes for place in tried})
        if new:
            where = ", ".join(place.path for place in tried)
            self.voice.say(f"in place of {ROOTFS} a tmpfs is tried where the job writes: {where}")
        return new

    def _does(self, members: Members, passes: Passes) -> bool:
        """Whether the job passes so; a failure that names another path is no matter of chance."""
        self.asked.looked_at.add(members)
        known = set(self._refused)
        done = passes(members, 1)
        if not done and set(_refused_of(self.asked.results[members])) <= known:
            done = passes(members, 1 + self.retries)
        last = self.asked.results[members][-1]
        self.tried = self.tried.model_copy(
            update={"outcome": "passed" if done else "failed", "evidence": "" if done else last.evidence}
        )  # fmt: skip
        return done

    def _next(self, places: tuple[Place, ...], members: Members) -> tuple[Place, ...]:
        """Return *places* with what the failure named beside them; where it named nothing, the directories around those that are new."""
        more = [
            path for path in _refused_of(self.asked.results[members]) if path not in self._refused
        ]
        self._refused += more
        return places_of((), more, known=places) if more else wider(places)


def _refused_of(results: Iterable[TrialResult]) -> list[str]:
    return [path for result in results for path in result.refused]
