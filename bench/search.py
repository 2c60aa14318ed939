"""How many questions a search for a minimal set asks, on random monotone predicates.

    python bench/search.py [--instances N] [--seed N] [--json]

Compared are this project's search (`rocmrun.core.search`), QuickXplain (Junker 2004), ddmin (Zeller and
Hildebrandt 2002) and dropping one element after the other. All answers are kept, so that no way asks
one question twice. Our count holds the gate (the permissive side twice, the minimal side once), the
others' the minimal side; what proves the result afterwards is counted apart. A round is a batch of as
many questions as there are workers.
"""

import argparse
import itertools
import json
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rocmrun.core.search import Search
from rocmrun.core.search_space import Members, Question, Settings, Space

Test = Callable[[Members], bool]
SIZES = ((20, 2), (40, 1), (40, 3), (40, 6), (60, 3), (60, 10))
GROUPS = 7  # as many as the catalogue of privileges has
GOALS = {"mean_runs": 21, "rounds_jobs4": 12}


def main() -> int:
    """Print the means; exit 1 when a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {
        f"n{size}_k{needed}": measure(size, needed, options.instances, random.Random(options.seed))
        for size, needed in SIZES
    }
    if options.json:
        print(json.dumps({"goals": GOALS, "instances": options.instances, **results}, indent=2))
    else:
        for name, row in results.items():
            print(name, ", ".join(f"{key} {value:g}" for key, value in row.items()))
    met = all(results["n40_k3"][key] <= most for key, most in GOALS.items())
    return 0 if met else 1


def measure(size: int, needed: int, instances: int, chance: random.Random) -> dict[str, float]:
    """Return means over *instances* random sets of *needed* among *size* elements, each in 7 groups."""
    counts: dict[str, list[int]] = {}
    elements = [f"e{index:02}" for index in range(size)]
    for _ in range(instances):
        core = frozenset(chance.sample(elements, needed))
        groups = {element: str(chance.randrange(GROUPS)) for element in elements}
        one = ours(elements, core, groups, jobs=1)
        four = ours(elements, core, groups, jobs=4)
        sample = {
            "mean_runs": one.searching,
            "most_runs": one.searching,
            "proof_runs": one.proving,
            "rounds_jobs4": four.rounds,
            "runs_jobs4": four.searching,
            "quickxplain": counted(quickxplain, elements, core),
            "ddmin": counted(ddmin, elements, core),
            "linear": counted(linear, elements, core),
        }
        for name, value in sample.items():
            counts.setdefault(name, []).append(value)
    return {
        name: max(values) if name == "most_runs" else round(statistics.mean(values), 1)
        for name, values in counts.items()
    }


@dataclass(slots=True)
class Counting:
    """Answers for a hidden set and counts what searches and what proves."""

    core: Members
    searching: int = 0
    proving: int = 0
    rounds: int = 0

    def __call__(self, batch: Sequence[Question]) -> list[bool]:
        """Answer one batch."""
        proof = batch[0].purpose == "proof"
        self.proving += len(batch) if proof else 0
        self.searching += 0 if proof else len(batch)
        self.rounds += not proof
        return [self.core <= question.members for question in batch]


def ours(elements: Sequence[str], core: Members, groups: dict[str, str], *, jobs: int) -> Counting:
    """Run this project's search."""
    counting = Counting(core=core)
    space = Space(elements=tuple(elements), asked=frozenset(elements), groups=groups)
    found = Search(space, counting, Settings(jobs=jobs)).run()
    assert frozenset(found.minimal) == core, found
    return counting


def counted(way: Callable[[Sequence[str], Test], Members], elements: Sequence[str], core: Members) -> int:  # fmt: skip
    """Return how many different questions *way* asks."""
    known: dict[Members, bool] = {}

    def test(members: Members) -> bool:
        return known.setdefault(members, core <= members)

    assert way(elements, test) == core
    return len(known)


def linear(elements: Sequence[str], test: Test) -> Members:
    """Drop each element that can go, one after the other."""
    kept = frozenset(elements)
    if test(frozenset()):
        return frozenset()
    for element in reversed(elements):
        if test(kept - {element}):
            kept -= {element}
    return kept


def quickxplain(elements: Sequence[str], test: Test) -> Members:
    """Divide and conquer with the other half in the background."""

    def explain(background: Members, *, grown: bool, rest: Sequence[str]) -> Members:
        if grown and test(background):
            return frozenset()
        if len(rest) == 1:
            return frozenset(rest)
        low, high = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        above = explain(background | frozenset(low), grown=True, rest=high)
        below = explain(background | above, grown=bool(above), rest=low)
        return above | below

    nothing: Members = frozenset()
    return nothing if test(nothing) else explain(nothing, grown=False, rest=elements)


def ddmin(elements: Sequence[str], test: Test) -> Members:
    """Try parts and complements, finer and finer."""
    if test(frozenset()):
        return frozenset()
    kept, parts = list(elements), 2
    while len(kept) > 1:
        cuts = [len(kept) * index // parts for index in range(parts + 1)]
        chunks = [kept[low:high] for low, high in itertools.pairwise(cuts)]
        small = next((chunk for chunk in chunks if test(frozenset(chunk))), None)
        if small is not None:
            kept, parts = small, 2
            continue
        rests = [[e for e in kept if e not in chunk] for chunk in chunks]
        rest = next((rest for rest in rests if test(frozenset(rest))), None)
        if rest is not None:
            kept, parts = rest, max(parts - 1, 2)
        elif parts < len(kept):
            parts = min(len(kept), parts * 2)
        else:
            break
    return frozenset(kept)


if __name__ == "__main__":
    raise SystemExit(main())
