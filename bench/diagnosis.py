"""How well the doctor's rules understand the open catalogue and reports beyond it: rates, and every confusion.

Run it from the checkout: python -m bench.diagnosis [LINES …]

With numbers of lines (300 8000) each report is also looked for in long logs of work that goes well: in one sort of log at
each of three places, chosen by the report's name, and by turns with what is told beside it at the log's very end.
"""

import sys
import time
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.unit.core.diagnosis.catalogue import (
    FIFTH,
    FOURTH,
    LATER,
    THIRD,
    Case,
    cases,
    first,
    found_in,
    from_mechanisms,
    held_out,
    names,
)
from tests.unit.core.diagnosis.haystacks import MIXED, PLACES, SORTS, buried, haystack
from tests.unit.core.diagnosis.other_texts import TEXTS

# What the rules made of the held-out reports when these were frozen: the rates that say how well
# they generalise. Each time the rules were mended then, with the reports at hand.
FROZEN = """\
as frozen  the first 145: first 93 of 121, in three 94, sure and wrong 8; of 24 others 11 got a sure cause
           the 61 after:  first 47 of 54, in three 48, sure and wrong 0; of 7 others 1 got a sure cause
           the third 122: first 60 of 101, in three 63, sure and wrong 8; of 21 others 2 got a sure cause
           the fourth 157: first 104 of 137, in three 106, sure and wrong 1; of 20 others 6 got a sure cause
           the fifth 179: first 104 of 164, in three 107, sure and wrong 5; of 15 others 3 got a sure cause
           the same, after rules were widened from messages: first 111, in three 114, sure and wrong 5; of the others 3
           14 written:    first 10 of 14, in three 12, sure and wrong 1"""


def main() -> None:
    """Print the rates of the catalogue and of the held-out reports, and what was taken for what."""
    everything = cases()
    parts = {
        "verbatim, confirmed": [case for case in everything if case.verbatim and case.confirmed],
        "verbatim, unconfirmed": [case for case in everything if case.verbatim and not case.confirmed],
        "paraphrased": [case for case in everything if not case.verbatim],
        "other texts": [
            Case(name=kind, kind=kind, text=text, verbatim=True, confirmed=True) for kind, text in TEXTS
        ],
    }  # fmt: skip
    others = {
        "145": held_out(),
        "61 after": held_out(LATER),
        "third 122": held_out(THIRD),
        "fourth 157": held_out(FOURTH),
        "fifth 179": held_out(FIFTH),
    }
    confused: Counter[tuple[str, str]] = Counter()
    begin = time.perf_counter()
    _table("part", parts, confused)
    print()
    of_kinds = {
        f"{name}, of the kinds": [case for case in found if case.kind]
        for name, found in others.items()
    }
    of_kinds["14 from mechanisms"] = list(from_mechanisms())
    _table("held out", of_kinds, confused)
    for name, found in others.items():
        print(_none(name, [case for case in found if not case.kind]))
    print(FROZEN)
    seconds = time.perf_counter() - begin
    number = sum(map(len, (*parts.values(), *others.values(), from_mechanisms())))
    print(f"\n{1000 * seconds / number:.1f} ms a case")
    _confusion(confused, "reported as → understood as")
    for size in sys.argv[1:]:
        _long(int(size), [*everything, *(case for found in others.values() for case in found)])


def _confusion(confused: Counter[tuple[str, str]], title: str) -> None:
    print(f"\n{title}:" if confused else "\nno confusion")
    for (kind, other), count in confused.most_common():
        print(f"  {kind:<34} → {other:<34} {count}")


def _long(size: int, found: list[Case]) -> None:
    """Print how many reports have another first kind in a long log than alone, and what healthy logs are taken for."""
    lines = cache(lambda sort: haystack(sort, size))
    changed: Counter[tuple[str, str]] = Counter()
    begin, tried = time.process_time(), 0
    for case in found:
        alone = first(case.text)
        for turn, place in enumerate(PLACES):
            random = Random(f"{case.name} {place}")
            facts = case.facts if turn % 2 else random.choice((0, case.facts))
            text = buried(case.text, lines(random.choice([*SORTS, MIXED])), place, facts=facts)
            tried += 1
            if (there := first(text)) != alone:
                changed[alone, there] += 1
    seconds = time.process_time() - begin
    print(f"\nin a log of {size} lines: {changed.total()} of {tried} have another first kind, {1000 * seconds / tried:.0f} ms of CPU each")  # fmt: skip
    _confusion(changed, "alone → in a long log")
    for sort in [*SORTS, MIXED]:
        for finding in found_in("\n".join(lines(sort))):
            print(f"  healthy log of {sort}: {finding.kind.slug}, {finding.confidence}")


def _table(title: str, parts: Mapping[str, list[Case]], confused: Counter[tuple[str, str]]) -> None:
    print(f"{title:<24}{'cases':>6}{'first':>9}{'in three':>10}{'sure, wrong':>13}")
    for part, found in parts.items():
        print(_row(part, found, confused))


def _none(name: str, found: list[Case]) -> str:
    """Say how many reports of other causes got a cause that the doctor is sure of."""
    sure = sum(any(f.confidence == "high" for f in found_in(case.text)) for case in found)
    return f"{f'{name}, of other causes':<24}{len(found):>6}{'':>9}{'':>10}{sure:>13}"


def _row(part: str, found: list[Case], confused: Counter[tuple[str, str]]) -> str:
    first = three = wrong = 0
    for case in found:
        findings = found_in(case.text)
        kinds = names(findings)
        first += kinds[:1] == [case.kind]
        three += case.kind in kinds[:3]
        wrong += any(f.confidence == "high" and f.kind.slug != case.kind for f in findings[:1])
        if kinds[:1] != [case.kind]:
            confused[case.kind, kinds[0] if kinds else "nothing"] += 1
    size = len(found)
    return f"{part:<24}{size:>6}{first / size:>9.1%}{three / size:>10.1%}{wrong:>13}"


if __name__ == "__main__":
    main()
