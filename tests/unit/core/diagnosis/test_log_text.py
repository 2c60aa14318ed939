"""A cause is found wherever it stands, however it is wrapped, and in linear time."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmrun.core.diagnosis.log_text import MOST_CHARACTERS, MOST_LINES, lines_of
from tests.unit.core.diagnosis.catalogue import Case, found_in, held_out, names

CAUSE = "Unable to open /dev/kfd read-write: Operation not permitted"


@pytest.mark.parametrize(
    "wrapped",
    [
        f"\x1b[31;1mERROR\x1b[0m \x1b]8;;http://x\x07{CAUSE}",
        json.dumps({"log": f"{CAUSE}\n", "stream": "stderr", "time": "2026-01-01T00:00:00Z"}),
        json.dumps({"MESSAGE": CAUSE, "_PID": "1"}),
        f"[pod/vllm-0/main] {CAUSE}",
        f"vllm-1  | {CAUSE}",
        f"2026-11-02T10:11:12.123456789Z stderr F {CAUSE}",
        f"2026-11-02T10:11:12.123456789Z {CAUSE}",
        f"2026-11-02T10:11:12+01:00 {CAUSE}",
        f"(RayWorkerWrapper pid=7, ip=10.0.0.1) {CAUSE}",
        f"\x1b[36m(RayWorker pid=123)\x1b[0m {CAUSE}\x1b[32m [repeated 7x across cluster]\x1b[0m",
        f"[rank0]: {CAUSE}",
        f"(EngineCore pid=123) ERROR 11-02 10:11:12 [core.py:55] {CAUSE}",
        f"E       OSError: {CAUSE}",
        f"Nov 02 10:11:12 box dockerd[12]: {CAUSE}\r",
        f"Loading:  10%|#    |\rLoading: 100%|#####|\r{CAUSE}",
        f"\ufffd\ufffd{''.join(letter + chr(0) for letter in CAUSE)}",
        "打开 /dev/kfd 失败, 不允许的操作",
        "Unable to open /dev/kfd: Vorgang nicht zulässig",
        "impossible d'ouvrir /dev/kfd : Opération non permise",
        "/dev/kfd: 許可されていない操作です",
    ],
)  # fmt: skip
def test_wrappers_and_languages_do_not_hide_it(wrapped: str) -> None:
    """Colours, Docker's JSON, journald, kubectl, compose, CRI, Ray, vLLM, pytest, syslog, progress bars, UTF-16; four languages."""
    found = found_in(f"starting\n{wrapped}\n")

    assert names(found)[:1] == ["cgroup-device-denied"]
    assert found[0].reasons[0].lines[0].number == 2


WRAPPERS = (
    "(EngineCore pid=84) ERROR 11-02 10:11:12 [core.py:1224] {}",
    "(RayWorkerWrapper pid=7106, ip=192.168.10.10) {}",
    "2026-11-02T10:11:12.123456789Z {}",
    "vllm-1  | {}",
    "E       {}",
    "Nov 02 10:11:12 box python3[77]: {}",
    "\x1b[31m{}\x1b[0m\r",
)
# One line of an error, which nothing beside it explains.
SHORT = [case for case in held_out() if case.kind and "\n" not in case.text]


@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name)
def test_a_wrapper_changes_no_cause(case: Case) -> None:
    """What is found in a line is found in it behind every prefix."""
    found = {wrapper: names(found_in(wrapper.format(case.text)))[:1] for wrapper in WRAPPERS}

    assert found == {wrapper: [case.kind] for wrapper in WRAPPERS}


def test_there_are_lines_to_wrap() -> None:
    """Of several families."""
    assert len({case.kind for case in SHORT}) >= 6


def test_lines_end_as_windows_ends_them() -> None:
    """Numbers are those that an editor shows."""
    found = found_in(f"starting\r\n\r\n{CAUSE}\r\n")

    assert found[0].reasons[0].lines[0].number == 3


def test_a_cause_in_the_middle_of_much_is_found_with_its_line() -> None:
    """Repeated lines, with numbers that change, are one."""
    many = [f"step {step} loss {step / 7:.4f}" for step in range(50_000)]
    text = "\n".join([*many[:25_000], CAUSE, *many[25_000:]])

    found = found_in(text)

    assert names(found)[:1] == ["cgroup-device-denied"]
    assert found[0].reasons[0].lines[0].number == 25_001


def test_lines_are_bounded_from_the_middle() -> None:
    """What began it and what ended it stay."""
    letters = "abcdefghij"
    texts = ["".join(letters[int(digit)] for digit in f"{n:06d}") for n in range(3 * MOST_LINES)]

    kept = lines_of("\n".join(texts))

    assert len(kept) == MOST_LINES
    assert (kept[0].number, kept[-1].number) == (1, 3 * MOST_LINES)


@pytest.mark.parametrize(
    "hostile",
    ["a" * 2_000_000, "permission denied " * 50_000, "/dev/kfd " * 100_000, "HIP_" * 300_000, "{" * 500_000,
     ("/root/" + "x" * 300 + "\n") * 3_000, "--device " * 60_000, "key: [" + "[" * 3000, "\x1b[" * 200_000,
     "docker run " + "'" * 10_000, "-" * 100_000 + "\n" + "=" * 100_000],
    ids=range(11),
)  # fmt: skip
def test_hostile_text_takes_no_more_than_its_length(hostile: str) -> None:
    """No pattern goes back over what it has read."""
    begin = time.process_time()
    found_in(hostile)

    assert time.process_time() - begin < 5


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    """Nothing in a text breaks the reading of it."""
    for finding in found_in(text):
        assert finding.points >= 2


def test_a_text_beyond_the_bound_keeps_its_ends_and_line_numbers() -> None:
    """The cause may be at the very end."""
    line = "x" * 999
    text = "\n".join([line] * (MOST_CHARACTERS // 1000 + 5000) + [CAUSE])

    kept = lines_of(text)

    assert [found.text for found in kept[-1:]] == [CAUSE]
    assert kept[-1].number == MOST_CHARACTERS // 1000 + 5001
