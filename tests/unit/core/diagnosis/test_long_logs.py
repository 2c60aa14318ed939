"""What is true of a report is true of it anywhere in a long log, and a long log of work that goes well has no cause in it."""

from functools import cache
from random import Random

import pytest

from rocmrun.core.diagnosis.body import compiled
from rocmrun.core.diagnosis.finding import Finding
from rocmrun.core.diagnosis.literals import Words
from rocmrun.core.diagnosis.log_text import MOST_LINES
from tests.unit.core.diagnosis.catalogue import (
    FIFTH,
    FOURTH,
    THIRD,
    Case,
    cases,
    found_in,
    held_out,
    names,
)
from tests.unit.core.diagnosis.haystacks import MIXED, PLACES, SORTS, buried, haystack

LINES = 150
# Every report of the catalogue, and of the others as many as take little time; the bench tries all of them.
CASES = (
    *cases(),
    *(held_out() + held_out(THIRD) + held_out(FOURTH) + held_out(FIFTH))[::30],
)
SHORTAGE = "[rank0]: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.98 GiB of which 1.20 GiB is free"  # fmt: skip


@cache
def _lines(sort: str, size: int) -> list[str]:
    return haystack(sort, size)


def _likely(found: tuple[Finding, ...]) -> list[str]:
    return [finding.kind.slug for finding in found if finding.confidence != "low"]


@pytest.mark.parametrize("sort", [*SORTS, MIXED])
def test_a_long_log_of_work_that_goes_well_has_no_likely_cause(sort: str) -> None:
    """Whatever numbers, names and harmless warnings are in it."""
    assert _likely(found_in("\n".join(_lines(sort, LINES)))) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_report_in_a_long_log_has_the_cause_that_it_has_alone(case: Case) -> None:
    """At its start, in its middle or at its end, what was told beside it or at the very end."""
    random = Random(case.name)
    sort, place = random.choice([*SORTS, MIXED]), random.choice(PLACES)
    facts = random.choice((0, case.facts))
    alone = names(found_in(case.text))[:1]

    found = found_in(buried(case.text, _lines(sort, LINES), place, facts=facts))

    # What points to nothing alone may be taken for something unlikely.
    assert names(found)[:1] == alone if alone else _likely(found) == []


@pytest.mark.parametrize("sort", ["vllm", MIXED])
def test_the_lines_that_show_it_are_those_of_the_report(sort: str) -> None:
    """And no line elsewhere that has the same words."""
    lines = _lines(sort, 3 * LINES)
    at = 2 * LINES

    found = found_in("\n".join([*lines[:at], SHORTAGE, *lines[at:]]))

    assert names(found)[:1] == ["oom-vram"]
    assert {line.number for reason in found[0].reasons for line in reason.lines} == {at + 1}


def test_a_number_elsewhere_speaks_against_nothing() -> None:
    """Line 137 of a file is no signal 9, and a process's number no process that holds memory."""
    told = "[loader.py:137] Loading weights took 3.10 seconds (pid 4711)"

    found = found_in(f"{told}\n{SHORTAGE}\n")

    assert names(found)[:1] == ["oom-vram"]
    assert [reason.points for reason in found[0].reasons] == [6]


def test_facts_at_the_end_belong_to_an_error_anywhere() -> None:
    """So a log is given with what is known beside it."""
    text = "Unable to open /dev/kfd read-write: Permission denied"
    facts = "nodes: /dev/kfd root:992 0660\ngroups: 1000 44\nkernel: 6.8.0"

    for place in PLACES:
        found = found_in(buried(f"{text}\n{facts}", _lines("vllm", LINES), place, facts=3))
        assert names(found)[:1] == ["render-gid-mismatch"], place
        assert found[0].confidence == "high"


def test_what_stands_far_from_an_error_does_not_explain_it() -> None:
    """Two parts of one cause count together where they are neighbours."""
    parts = ("rank 3 timed out", "[3] NCCL INFO comm 0x1 rank 0 nranks 8 - Init COMPLETE")
    between = _lines("journal", LINES)

    assert "iommu-p2p" in names(found_in("\n".join(parts)))
    assert names(found_in("\n".join([parts[0], *between, parts[1]]))) == []


def test_an_error_in_the_middle_of_a_log_beyond_every_bound_is_found() -> None:
    """Of lines between the first and the last those that tell of trouble are kept."""
    letters = "abcdefghij"
    words = ["".join(letters[int(digit)] for digit in f"{n:06d}") for n in range(3 * MOST_LINES)]
    at = len(words) // 2

    found = found_in("\n".join([*words[:at], SHORTAGE, *words[at:]]))

    assert names(found)[:1] == ["oom-vram"]
    assert found[0].reasons[0].lines[0].number == at + 1


def test_a_pattern_is_searched_for_where_it_can_be_found() -> None:
    """To look only around the words that it cannot do without loses nothing."""
    patterns = ("fatal error: [^\\n]{0,80}not found", "errno (?:13|28)\\b|\\bkilled$", "^(?:no|two) gpus?\\b[\\s\\S]{0,200}?timed out", "(?<=hip )out of memory", "\\d+ lines?")  # fmt: skip
    told = ("fatal error: hip.h not found", "x errno 28", "killed", "no gpu", "timed out", "hip out of memory", "137 lines")  # fmt: skip
    lines = [line.lower() for line in _lines(MIXED, 20 * LINES)]
    for number, line in enumerate(told):
        lines[number * 500 : number * 500] = [line, *told]
    text = "\n".join(lines)

    for pattern in patterns:
        everywhere = [match.span() for match in compiled(pattern).finditer(text)]
        around = [
            match.span()
            for start, end in Words(text).around(pattern)
            for match in compiled(pattern).finditer(text, start, end)
        ]
        assert len(everywhere) >= len(told)
        assert around == everywhere


@pytest.mark.parametrize(
    "line",
    [
        "-- Looking for pthread_create in pthreads - not found",
        "-- Performing Test HAVE_PTHREAD_CREATE - Failed",
        "checking for pthread_create in -lpthread... no",
        "tests/unit/test_a.py::test_clone3_operation_not_permitted[x] PASSED [ 41%]",
        "[gw1] [ 12%] PASSED tests/unit/test_a.py::test_no_thread_can_be_started_pthread_create",
        '10.0.0.1 - "GET /std::system_error/pthread_create HTTP/1.1" 200 OK',
    ],
)
def test_what_went_well_is_no_evidence(line: str) -> None:
    """What a configure step asks, a test that passed, a request that was answered."""
    assert found_in(line) == ()


def test_what_went_wrong_beside_a_json_message_is_read() -> None:
    """A program that logs JSON puts the error under a key of its own."""
    line = '{"level": "error", "msg": "engine failed", "error": "HIP out of memory. Tried to allocate 2.00 GiB"}'

    assert names(found_in(line))[:1] == ["oom-vram"]
