"""What public reports turned out to be is what is found in them."""

import json
import re

import pytest

from rocmrun.console.doctor import finding_as_json
from rocmrun.core.diagnosis.diagnose import RULES
from rocmrun.core.diagnosis.finding import Kind, Rule
from tests.unit.core.diagnosis.catalogue import KINDS, Case, cases, found_in, names
from tests.unit.core.diagnosis.other_texts import CLEAN, TEXTS

CASES = cases()
CONFIRMED = [case for case in CASES if case.verbatim and case.confirmed]
# What no advice may be: it opens the host instead of mending the cause.
NEVER = re.compile(
    r"privileged|chmod|\b666\b|\b777\b|seccomp[=:]unconfined|apparmor[=:]unconfined|label[=:]disable|setenforce|--user[ =](?:0|root)|user: ?root|run(?:ning)? as root|as the root user|--ipc=host|--pid=host|--net(?:work)?=host|sys_admin",
    re.IGNORECASE,
)


@pytest.mark.parametrize("case", CONFIRMED, ids=lambda case: case.name)
def test_a_confirmed_report_is_understood(case: Case) -> None:
    """The right kind is among the first three."""
    assert case.kind in names(found_in(case.text))[:3]


def test_most_confirmed_reports_have_the_right_kind_first() -> None:
    """At least nine of ten, as shares of all."""
    right = [case for case in CONFIRMED if names(found_in(case.text))[:1] == [case.kind]]

    assert len(CONFIRMED) > 60
    assert len(right) / len(CONFIRMED) >= 0.9


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.confirmed], ids=lambda case: case.name
)
def test_an_unconfirmed_report_gets_no_sure_wrong_cause(case: Case) -> None:
    """Nothing but the report's own kind may be said with confidence."""
    sure = [f.kind.slug for f in found_in(case.text) if f.confidence == "high"]

    assert set(sure) <= {case.kind}


@pytest.mark.parametrize(
    ("kind", "text"), TEXTS, ids=[f"{number}-{kind}" for number, (kind, _) in enumerate(TEXTS)]
)
def test_other_texts_of_the_same_mechanism_are_understood(kind: str, text: str) -> None:
    """Rules rest on errno, owners, variables and versions, and not on one program's wording."""
    assert names(found_in(text))[:1] == [kind]


def test_many_kinds_have_other_texts() -> None:
    """At least forty kinds have two, and every kind has one."""
    count = {kind: sum(kind == other for other, _ in TEXTS) for kind in KINDS}

    assert sum(number >= 2 for number in count.values()) >= 40
    assert [kind for kind, number in count.items() if number == 0] == []


@pytest.mark.parametrize("text", CLEAN, ids=range(len(CLEAN)))
def test_a_log_of_work_that_goes_well_gives_no_finding(text: str) -> None:
    """Words such as amdgpu, cache, cpu or offload are no failure."""
    assert names(found_in(text)) == []


def test_every_kind_has_one_rule_and_every_rule_its_kind() -> None:
    """The catalogue's 76 kinds, ten of the first hour, and an image without Python or torch."""
    ruled = [rule.kind for rule in RULES]

    assert sorted(ruled) == sorted(KINDS)
    assert len(ruled) == 88


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_advice_opens_the_host(kind: Kind) -> None:
    """Neither more rights for everybody nor the container's root is ever the next step."""
    assert kind.remedy
    assert NEVER.findall(f"{kind.next} {kind.remedy}") == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_no_advice_hides_in_what_is_left_open(rule: Rule) -> None:
    """What would settle a doubt is a look, and no right."""
    assert NEVER.findall(rule.undecided) == []


def test_no_report_gets_advice_that_opens_the_host() -> None:
    """Whatever people did in their threads is quoted at most, never advised."""
    for case in CASES:
        for finding in found_in(case.text):
            told = finding_as_json(finding)
            advice = json.dumps(
                [told[key] for key in ("next", "remedy", "cannot_tell", "cause", "title")]
            )
            assert NEVER.findall(advice) == [], case.name
            shown = json.dumps([quote["text"] for quote in told["evidence"]])
            assert "chmod" not in shown, case.name
