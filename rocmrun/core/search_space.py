"""What a search for a minimal set asks, in what, how much, and what it finds. Values only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Members = frozenset[str]
Purpose = Literal["gate", "search", "proof"]
Status = Literal["found", "never", "blind", "unstable", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Whether a set passes.

    Attributes:
        attempt: Which try of the same question this is, from 0: an answer may be kept by set and attempt.
        deep: Whether the thorough test is meant, which the answer is verified with.
        purpose: Which part of the search asks first; no part of the question.
    """

    members: Members
    attempt: int = 0
    deep: bool = False
    purpose: Purpose = field(default="search", compare=False)


Ask = Callable[[Sequence[Question]], Sequence[bool]]


Passes = Callable[[Members, int], bool]


class Stopped(Exception):
    """Whoever is asked answers no more: the budget is spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much is asked.

    Attributes:
        jobs: How many questions may be asked at once.
        retries: How often a failure that decides is asked again.
        repeats: How often the set that was found must pass.
        verify_least: Whether the minimal side must pass as often where it passes as it is; otherwise once is enough.
        deep: Whether verifying asks more than searching does.
    """

    jobs: int = 1
    retries: int = 2
    repeats: int = 5
    verify_least: bool = False
    deep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What is searched.

    Attributes:
        elements: In order of preference, the most welcome first.
        asked: What the permissive side has; the other elements are alternatives to it.
        groups: Element → group. Groups without a needed element are passed over at once.
        pairs: (harm, cure): with the first present, the second can be needed where it is not without.
        guesses: Sets that may suffice, tried in turn before the search: everything else is left out at once. A
            wrong one costs a question; none changes the answer.
    """

    elements: tuple[str, ...]
    asked: Members
    groups: Mapping[str, str] = field(default_factory=dict)
    pairs: frozenset[tuple[str, str]] = frozenset()
    guesses: tuple[Members, ...] = ()

    @classmethod
    def of(cls, elements: Sequence[str]) -> "Space":
        """Return a space without alternatives, groups or pairs."""
        return cls(elements=tuple(elements), asked=frozenset(elements))

    def unwelcome(self, members: Members) -> tuple[int, ...]:
        """Return a key that is smaller for a set the sooner its least welcome elements are lacking in it."""
        places = {element: place for place, element in enumerate(self.elements)}
        return tuple(sorted((places[element] for element in members), reverse=True))

    @property
    def cures_first(self) -> tuple[str, ...]:
        """The elements so that a harm is dropped before its cures are."""
        order = list(self.elements)
        for harm, cure in sorted(self.pairs):
            if harm in order and cure in order and order.index(harm) < order.index(cure):
                order.remove(harm)
                order.insert(order.index(cure) + 1, harm)
        return tuple(order)


# Called once the minimal side is known to fail: returns the space with what it found that may do in the place of
# something wide. What it is given tells whether a set passes in one of as many tries.
Offer = Callable[[Passes], Space]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found.

    Attributes:
        status: "found"; "never": not even the permissive side passes; "unstable": answers contradict each
            other; "stopped": the budget was spent.
        minimal: The most welcome set that is known to pass, in order of preference.
        proven: Those of its elements without which it failed, each by itself.
        passes, runs: How often the set passed when it was verified.
        control_passes, control_runs: How often the permissive side passed.
    """

    status: Status
    minimal: tuple[str, ...]
    proven: tuple[str, ...] = ()
    passes: int = 0
    runs: int = 0
    control_passes: int = 0
    control_runs: int = 0


def failure_rate_excluded(passes: int) -> float:
    """Return the failure rate above which *passes* passes in a row are less likely than one in twenty."""
    return 1.0 if passes <= 0 else 1 - 0.05 ** (1 / passes)
