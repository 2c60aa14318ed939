"""How well the doctor's rules understand the open catalogue: rates, and every confusion.

Run it from the checkout: python -m bench.diagnosis
"""

import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.unit.core.diagnosis.catalogue import Case, cases, found_in, names
from tests.unit.core.diagnosis.other_texts import TEXTS


def main() -> None:
    """Print the rates of each part of the catalogue, and what was taken for what."""
    everything = cases()
    parts = {
        "verbatim, confirmed": [case for case in everything if case.verbatim and case.confirmed],
        "verbatim, unconfirmed": [case for case in everything if case.verbatim and not case.confirmed],
        "paraphrased": [case for case in everything if not case.verbatim],
        "other texts": [
            Case(name=kind, kind=kind, text=text, verbatim=True, confirmed=True) for kind, text in TEXTS
        ],
    }  # fmt: skip
    confused: Counter[tuple[str, str]] = Counter()
    print(f"{'part':<24}{'cases':>6}{'first':>9}{'in three':>10}{'sure, wrong':>13}")
    begin = time.perf_counter()
    for part, found in parts.items():
        print(_row(part, found, confused))
    seconds = time.perf_counter() - begin
    number = sum(map(len, parts.values()))
    print(f"\n{1000 * seconds / number:.1f} ms a case")
    print("\nreported as → understood as:" if confused else "\nno confusion")
    for (kind, other), count in confused.most_common():
        print(f"  {kind:<34} → {other:<34} {count}")


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
