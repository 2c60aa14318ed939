"""Find a minimal sufficient set of elements by asking whether sets pass. Pure: whoever is asked runs things.

The question is monotone, but for the pairs that are named: what passes with a set passes with more.
Elements come in order of preference, the most welcome first. Of several minimal sets the one is found that
avoids the least welcome elements (Junker's preferred explanation, as QuickXplain finds it), by dropping
blocks from the unwelcome end and halving the block that cannot go: fewer questions than QuickXplain
asks (`bench/search.py`), and the same answer.
"""

import math
from collections.abc import Iterable, Sequence

from rocmrun.core.search_answers import Answers, repeated
from rocmrun.core.search_space import (
    Ask,
    Finding,
    Members,
    Offer,
    Question,
    Settings,
    Space,
    Status,
    Stopped,
)

# With three workers or more a batch of leave-one-out tests takes less time than halving.
BATCH_FROM = 3
MOST_SEARCHES = 3


class Search:
    """One search: gate, the minimal side, the search proper, and the proof of what it found."""

    def __init__(
        self,
        space: Space,
        ask: Ask,
        settings: Settings | None = None,
        offer: Offer | None = None,
    ) -> None:
        """Prepare a search of *space*; nothing is asked yet. *offer* may widen it by what only runs can tell."""
        self._space = space
        self._order = space.cures_first
        self._offer = offer
        self._settings = settings or Settings()
        self._answers = Answers(ask, self._settings.jobs)
        self._best: Members = space.asked
        self._proven: set[str] = set()
        self._chance: Members | None = None
        self._floor: Members | None = None
        self._confirm = 1
        self._rounds = 0
        self._deep = False

    @property
    def space(self) -> Space:
        """What is searched, with what was offered on the way."""
        return self._space

    def run(self) -> Finding:
        """Return the preferred minimal set that passes, with what is known of it."""
        try:
            return self._run()
        except Stopped:
            return self._finding("stopped")

    def _run(self) -> Finding:
        if not self._gate():
            return self._finding("never")
        if self._passes(frozenset()):
            if self._least_suffices():
                return self._finding("found")
            self._best, self._deep = self._space.asked, self._settings.deep
        self._widen()
        for _ in range(MOST_SEARCHES):
            self._answers.purpose = "search"
            found = self._search()
            self._answers.purpose = "proof"
            self._best = self._without_idle(found)
            if self._verified():
                return self._finding("found")
            # A pass was wrong, or the thorough test wants more: every pass must be seen more often now.
            self._confirm, self._deep = self._confirm + 1, self._settings.deep
            self._best, self._proven = self._space.asked, set()
        return self._finding("unstable")

    def _gate(self) -> bool:
        """The permissive side must pass: twice, or once among failures that are told, and the thorough test too."""
        asked = self._space.asked
        first = [repeated(asked, 2)]
        if self._settings.jobs >= BATCH_FROM:
            first.append([Question(members=frozenset())])
        self._answers.ask([question for questions in first for question in questions])
        tries = 2
        while not any(self._answers.of(asked)) and tries < 2 + self._settings.retries:
            tries += 1
            self._answers.ask(repeated(asked, tries))
        return any(self._answers.of(asked)) and self._deep_passes(asked)

    def _least_suffices(self) -> bool:
        """Whether the minimal side, which passed once, passes as often as is asked for; a pass by chance does not count."""
        self._best = frozenset()
        if not self._settings.verify_least:
            return self._deep_passes(self._best)
        self._answers.purpose = "proof"
        if self._verified():
            return True
        seen = self._answers.of(self._best, deep=self._settings.deep)
        if sum(seen) * 2 < len(seen):
            self._chance = self._best
        self._confirm += 1
        return False

    def _widen(self) -> None:
        if self._offer is not None:
            self._answers.purpose = "search"
            passed: list[Members] = []

            def passes(members: Members, tries: int) -> bool:
                passed.extend([members] if self._answers.pass_in(members, tries) else [])
                return members in passed

            self._space = self._offer(passes)
            self._order = self._space.cures_first
            within = [members for members in passed if members <= set(self._order)]
            self._best = min((self._best, *within), key=self._space.unwelcome)

    def _search(self) -> Members:
        self._floor = self._guessed()
        needed: Members = frozenset()
        if self._settings.jobs >= BATCH_FROM:
            needed = self._essential(frozenset(self._order))
            if self._passes(needed):
                return needed
        return self._dropped(needed, frozenset(self._order))

    def _guessed(self) -> Members | None:
        """Return a set that passes, from the first guess that does: what is larger is taken to pass too, as it should."""
        self._floor = None
        whole = frozenset(self._order)
        for guess in (guess & whole for guess in self._space.guesses):
            if guess not in {frozenset(), whole} and self._passes(guess):
                alone = self._settings.jobs < BATCH_FROM
                return self._dropped(frozenset(), guess) if alone else guess
        return None

    def _essential(self, whole: Members) -> Members:
        """Return the elements that no sufficient set can do without, in few rounds."""
        groups = sorted({self._space.groups.get(element, "") for element in whole})
        parts = [
            {element for element in whole if self._space.groups.get(element, "") == group}
            for group in groups
        ]
        guilty = parts
        if len(parts) > 1:
            answers = self._pass_all([whole - part for part in parts])
            guilty = [part for part, passed in zip(parts, answers, strict=True) if not passed]
        return self._failing_without(whole, set().union(*guilty))

    def _failing_without(self, whole: Members, candidates: Iterable[str]) -> Members:
        """Return those *candidates* without which *whole* fails, alone or together with what they cure."""
        names = [element for element in self._order if element in candidates]
        answers = self._pass_all([whole - {element} for element in names])
        failing = [element for element, passed in zip(names, answers, strict=True) if not passed]
        cures = [element for element in failing if self._harms(element) & whole]
        cured = self._pass_all([whole - {element} - self._harms(element) for element in cures])
        spared = {element for element, passed in zip(cures, cured, strict=True) if passed}
        return frozenset(failing) - spared

    def _harms(self, cure: str) -> set[str]:
        return {harm for harm, other in self._space.pairs if other == cure}

    def _dropped(self, needed: Members, whole: Members) -> Members:
        """Drop blocks of *whole* from the unwelcome end; halve a block that cannot go down to the element that must stay."""
        kept = set(needed)
        rest = [element for element in self._order if element in whole - kept]
        size = max(1, len(rest) // 4)
        while rest:
            take = size if self._floor is None else _alike(rest, self._floor)
            block, rest = rest[-take:], rest[:-take]
            if self._passes(frozenset((*rest, *kept))):
                size *= 2
                continue
            size = max(1, size // 2)
            while len(block) > 1:
                half = len(block) // 2
                low, high = block[:half], block[half:]
                if self._passes(frozenset((*rest, *low, *kept))):
                    block = low
                else:
                    rest, block = [*rest, *low], high
            kept.add(block[0])
        return frozenset(kept)

    def _without_idle(self, found: Members) -> Members:
        """Drop what *found* passes without: a failure that was chance kept it."""
        self._proven = set()
        while True:
            names = [element for element in reversed(self._order) if element in found]
            open_names = [element for element in names if element not in self._proven]
            failed = self._fail_for_sure([found - {element} for element in open_names])
            # What fails in a set fails in every part of it, so that a proof outlives further drops.
            self._proven |= {name for name, fails in zip(open_names, failed, strict=True) if fails}
            idle = [name for name, fails in zip(open_names, failed, strict=True) if not fails]
            if not idle:
                return found
            found -= {idle[0]}
            self._best = found

    def _verified(self) -> bool:
        """Ask for the set that was found again and again; where it fails, the permissive side must fail about as often."""
        self._rounds += 1
        if not self._deep_passes(self._best):
            return False
        few = self._settings.repeats * self._rounds
        passes = self._passes_of(self._best, few)
        if passes == few:
            return True
        control = self._passes_of(self._space.asked, few)
        if passes + 1 >= control or passes * 2 < control:
            return passes > 0 and passes + 1 >= control
        # Too few runs to tell chance from a need: four times as many tell more.
        many = few * 4
        passes, control = (self._passes_of(one, many) for one in (self._best, self._space.asked))
        return passes + math.sqrt(many) >= control

    def _passes_of(self, members: Members, runs: int) -> int:
        deep = self._settings.deep
        self._answers.ask(repeated(members, runs, deep=deep))
        return sum(self._answers.of(members, deep=deep)[:runs])

    def _deep_passes(self, members: Members) -> bool:
        if not self._settings.deep:
            return True
        retries = self._settings.retries
        for tries in range(1, 2 + retries):
            self._answers.ask(repeated(members, tries, deep=True))
            if any(self._answers.of(members, deep=True)):
                return True
        return False

    def _passes(self, members: Members) -> bool:
        return self._pass_all([members])[0]

    def _pass_all(self, sets: Sequence[Members]) -> list[bool]:
        """Whether each set passes, as often as passes have to be seen by now."""
        floor = self._floor
        asked = [one for one in sets if floor is None or not floor <= one]
        for tries in range(1, self._confirm + 1):
            hopeful = [one for one in asked if all(self._answers.of(one, deep=self._deep)[:tries])]
            self._answers.ask([q for one in hopeful for q in repeated(one, tries, deep=self._deep)])
        passed = [
            one not in asked or all(self._answers.of(one, deep=self._deep)[: self._confirm])
            for one in sets
        ]
        good = [one for one, passes in zip(sets, passed, strict=True) if passes and one in asked]
        self._best = min((self._best, *good), key=self._space.unwelcome)
        return passed

    def _fail_for_sure(self, sets: Sequence[Members]) -> list[bool]:
        """Whether each set fails however often it is tried, or was seen to pass by chance alone."""
        deep = self._deep
        unsure = [one for one in sets if one != self._chance]
        for tries in range(1, 2 + self._settings.retries):
            failing = [one for one in unsure if not any(self._answers.of(one, deep=deep))]
            self._answers.ask([q for one in failing for q in repeated(one, tries, deep=deep)])
        return [one == self._chance or not any(self._answers.of(one, deep=deep)) for one in sets]

    def _finding(self, status: Status) -> Finding:
        deep = self._settings.deep
        asked = self._space.asked
        seen = self._answers.of(self._best, deep=deep)
        control = [*self._answers.of(asked), *(self._answers.of(asked, deep=True) if deep else ())]
        return Finding(
            status=status,
            minimal=tuple(element for element in self._space.elements if element in self._best),
            proven=tuple(element for element in self._space.elements if element in self._proven),
            passes=sum(seen),
            runs=len(seen),
            control_passes=sum(control),
            control_runs=len(control),
        )


def _alike(rest: Sequence[str], floor: Members) -> int:
    """Return how many elements of the unwelcome end go together: one of *floor*, or all up to the next of it."""
    outside = next((n for n, one in enumerate(reversed(rest)) if one in floor), len(rest))
    return max(1, outside)
