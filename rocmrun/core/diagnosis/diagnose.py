"""Weigh every rule against the evidence, and rank what remains: the first cause to mend comes first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rocmrun.core.diagnosis import (
    architecture,
    collectives,
    downloads,
    engine,
    homes,
    host,
    image,
    limits,
    mounts,
    nodes,
    operators,
    paths,
    permissions,
    running,
)
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import (
    Confidence,
    Finding,
    Kind,
    LookAlike,
    Reason,
    Rule,
    Standing,
)
from rocmrun.core.diagnosis.stretches import Pieces

FAMILIES = (
    host, engine, nodes, permissions, mounts, image, architecture, operators, paths, homes, downloads, limits, collectives, running,
)  # fmt: skip
RULES: tuple[Rule, ...] = tuple(rule for family in FAMILIES for rule in family.RULES)

# Points: what is said at all, what is likely, what is shown.
LEAST, MEDIUM, HIGH = 2, 4, 6
# Causes this close to the strongest may all be there; they are ordered by what must be mended first.
CLOSE = 1
MOST = 6
# In how many places of a long log one kind is looked at closely.
MOST_PLACES = 8
# Said only when nothing else is there.
NOISE = frozenset({"libdrm-ids-warning", "numa-balancing", "seccomp-mbind"})


@dataclass(frozen=True, slots=True)
class _Weighed:
    rule: Rule
    seen: Evidence
    points: int
    reasons: tuple[Reason, ...]
    excluded: bool = False


def diagnose(evidence: Evidence, kinds: Mapping[str, Kind]) -> tuple[Finding, ...]:
    """Return what the evidence points to, in the order in which it must be mended, weak suspicions last.

    A long log is judged piece by piece, and each kind where the most speaks for it.
    """
    pieces = Pieces(evidence)
    weighed = {rule.kind: _weigh_where_strongest(rule, pieces) for rule in RULES}
    found = [each for each in weighed.values() if each.points >= LEAST and not each.excluded]
    # What explains nothing is noise, unless it is all there is.
    loud = [each for each in found if each.rule.kind not in NOISE]
    found = _ranked(loud or found, kinds)
    return tuple(_finding(each, found, weighed, kinds) for each in found[:MOST])


def _weigh_where_strongest(rule: Rule, pieces: Pieces) -> _Weighed:
    weighed = [_weigh(rule, piece) for piece in pieces.all_()]
    if pieces.whole:
        return weighed[0]
    likely = sorted((each for each in weighed if each.points >= LEAST), key=lambda e: -e.points)
    # What speaks against it may stand beyond the end of a piece.
    places = {_strongest_line(each, pieces): each for each in reversed(likely)}
    again = [
        _weigh(rule, pieces.around(line)) if line else each
        for line, each in list(places.items())[-MOST_PLACES:]
    ]
    return max(again or weighed[:1], key=lambda each: (not each.excluded, each.points))


def _strongest_line(each: _Weighed, pieces: Pieces) -> int:
    """Return the number of the line that the strongest sign shows, 0 where all are told of the whole log."""
    shown = (line.number for reason in each.reasons for line in reason.lines)
    return next((number for number in shown if number and not pieces.at_an_end(number)), 0)


def _weigh(rule: Rule, evidence: Evidence) -> _Weighed:
    if rule.needs is not None and rule.needs(evidence) is None:
        return _Weighed(rule, evidence, 0, ())
    reasons = [
        Reason(meaning=sign.meaning, points=sign.points, lines=lines)
        for sign in rule.signs
        if (lines := sign.look(evidence)) is not None
    ]
    reasons.sort(key=lambda reason: -reason.points)
    excluded = rule.unless is not None and rule.unless(evidence) is not None
    points = sum(reason.points for reason in reasons)
    return _Weighed(rule, evidence, points, tuple(reasons), excluded)


def _ranked(found: Iterable[_Weighed], kinds: Mapping[str, Kind]) -> list[_Weighed]:
    """Put sure causes in the order of mending, one for each symptom, and the rest behind them by strength."""
    by_strength = sorted(found, key=lambda each: (-each.points, kinds[each.rule.kind].order))
    if not by_strength:
        return []
    strongest = by_strength[0].points
    sure: list[_Weighed] = []
    for each in by_strength:
        taken = {other.rule.symptom for other in sure if other.rule.symptom}
        if each.points >= max(MEDIUM + 1, strongest - CLOSE) and each.rule.symptom not in taken:
            sure.append(each)
    sure.sort(key=lambda each: kinds[each.rule.kind].order)
    return sure + [each for each in by_strength if each not in sure]


def _finding(
    each: _Weighed,
    found: list[_Weighed],
    weighed: Mapping[str, _Weighed],
    kinds: Mapping[str, Kind],
) -> Finding:
    rule = each.rule
    rivals = [o for o in found if o is not each and rule.symptom and o.rule.symptom == rule.symptom]
    tied = [other for other in rivals if abs(other.points - each.points) <= CLOSE]
    settled = rule.settles is None or rule.settles(each.seen) is not None
    open_ = rule.undecided if not settled or each.points < HIGH else ""
    if tied:
        names = ", ".join(sorted(other.rule.kind for other in tied))
        open_ = (
            f"the evidence fits {names} as well{f'; {rule.undecided}' if rule.undecided else ''}"
        )
    return Finding(
        kind=kinds[rule.kind],
        confidence=_confidence(
            each.points,
            settled=settled and not tied,
            beaten=any(o.points > each.points for o in rivals),
        ),
        points=each.points,
        reasons=each.reasons,
        look_alikes=tuple(
            LookAlike(kind=kind, standing=_standing(weighed.get(kind)))
            for kind in kinds[rule.kind].look_alikes
        ),
        undecided=open_,
    )


def _confidence(points: int, *, settled: bool, beaten: bool) -> Confidence:
    if beaten or points < MEDIUM:
        return "low"
    return "high" if points >= HIGH and settled else "medium"


def _standing(other: _Weighed | None) -> Standing:
    if other is None or not other.reasons:
        return "no sign of it"
    if other.excluded or other.points < LEAST:
        return "ruled out"
    return "possible too"
