"""Whatever a container prints, the result is a bounded, clean report that says what it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.report.model import ProbeReport
from rocmrun.core.report.parser import MAX_CHECKS, MAX_LINES, MAX_TOTAL_BYTES, ReportParser

START = {"v": 1, "event": "start", "level": "quick", "accelerator": "rocm", "stages": ["device"]}
CHECK = {
    "v": 1,
    "event": "check",
    "group": "device",
    "name": "matmul_fp32",
    "device": 0,
    "status": "pass",
    "seconds": 0.5,
    "evidence": {"gflops": 1.5},
}
END = {"v": 1, "event": "end", "status": "pass", "seconds": 2.5}


def lines(*events: dict[str, Any] | bytes) -> bytes:
    return b"".join(
        (event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n"
        for event in events
    )


def parsed(*events: dict[str, Any] | bytes, exit_code: int | None = None) -> ProbeReport:
    parser = ReportParser()
    parser.feed(lines(*events))
    return parser.finish(exit_code=exit_code)


def check(**changes: Any) -> dict[str, Any]:
    return {**CHECK, **changes}


def test_a_whole_report_passes() -> None:
    report = parsed(START, CHECK, END, exit_code=0)

    assert (report.status, report.reason, report.usable) == ("pass", "", True)
    assert (report.level, report.accelerator, report.stages) == ("quick", "rocm", ("device",))
    assert (report.seconds, report.counts) == (2.5, {"pass": 1})
    assert report.checks[0].evidence == {"gflops": 1.5}


def test_bytes_arrive_in_any_pieces_and_checks_as_they_are_complete() -> None:
    parser = ReportParser()
    live = [
        complete.name
        for byte in lines(START, CHECK, check(name="repeat_fp32"), END)
        for complete in parser.feed(bytes([byte]))
    ]

    assert live == ["matmul_fp32", "repeat_fp32"]
    assert parser.finish().status == "pass"


def test_the_last_line_needs_no_newline() -> None:
    parser = ReportParser()
    parser.feed(lines(START, CHECK, END).rstrip())

    assert parser.finish().status == "pass"


def test_unknown_keys_and_events_and_blank_lines_are_ignored() -> None:
    report = parsed(
        {**START, "new": 1}, b"", b"  ", check(later=[1]), {"v": 1, "event": "stage"}, END
    )

    assert (report.status, report.noise_lines) == ("pass", 0)


@pytest.mark.parametrize(
    ("said", "status"), [("pass", "fail"), ("degraded", "fail"), ("fail", "fail")]
)
def test_the_worst_word_counts(said: str, status: str) -> None:
    """An end that says "pass" over a failed check is not believed, nor the other way round."""
    failed = check(status="fail", reason="1 of 64 results are wrong")
    report = parsed(START, CHECK, failed, {**END, "status": said})

    assert report.status == status
    assert report.reason == "device 0: matmul_fp32: 1 of 64 results are wrong"


def test_several_failures_are_counted() -> None:
    failed = [check(status="fail", reason="bad", device=index) for index in range(3)]

    assert parsed(START, *failed, END).reason == "device 0: matmul_fp32: bad (and 2 more)"


def test_what_the_checks_say_together_follows_the_first_reason() -> None:
    """The probe knows whether torch or HIP is broken; a report that passed has nothing to diagnose."""
    end = {**END, "diagnosis": "HIP works\x1b[2J without torch"}

    failed = parsed(START, check(status="fail", reason="bad"), end)
    passed = parsed(START, CHECK, end)

    assert failed.reason == "device 0: matmul_fp32: bad; HIP works without torch"
    assert passed.reason == ""


def test_without_torch_a_check_of_hip_proves_a_device() -> None:
    """And of HIP alone: what a report says of another runtime proves nothing."""
    start = {**START, "runtime": "hip"}
    kernel = check(group="hip", name="kernel_matmul_fp32")

    assert (parsed(start, kernel, END).status, parsed(start, kernel, END).runtime) == (
        "pass",
        "hip",
    )
    assert parsed(start, check(), END).reason == "no device was exercised"
    assert parsed(START, kernel, END).reason == "no device was exercised"
    assert parsed(start, {**kernel, "device": None}, END).reason == "no device was exercised"


def test_degraded_is_usable_with_its_reason() -> None:
    slow = check(name="temporary", group="environment", device=None, status="degraded", reason="s")
    report = parsed(START, CHECK, slow, END)

    assert (report.status, report.usable) == ("degraded", True)
    assert report.reason == "environment: temporary: s"


def test_a_failed_end_without_a_failed_check_keeps_its_reason() -> None:
    report = parsed(START, CHECK, {**END, "status": "fail", "reason": "ended by SIGTERM"})

    assert (report.status, report.reason) == ("fail", "ended by SIGTERM")


@pytest.mark.parametrize(
    "checks", [[], [check(group="environment")], [check(status="skipped", reason="no torch")]]
)
def test_no_device_is_never_a_pass(checks: list[dict[str, Any]]) -> None:
    report = parsed(START, *checks, END)

    assert (report.status, report.reason) == ("fail", "no device was exercised")


@pytest.mark.parametrize(
    ("events", "exit_code", "reason"),
    [
        ([], 1, "the probe reported nothing (exit code 1)"),
        ([], None, "the probe reported nothing"),
        ([START, CHECK], 137, "the report stops before its end (exit code 137)"),
        ([START, CHECK, END], 1, "the probe reported pass and then ended badly (exit code 1)"),
        ([START, CHECK, {**END, "status": "great"}], 0, "the report's end has no verdict"),
        (
            [{**START, "v": 2}, CHECK, END],
            0,
            "the probe's output is not a report: protocol version 2; this rocmrun reads 1",
        ),
        (
            [START, CHECK, END, START, CHECK, END],
            0,
            "the probe's output is not a report: more than one report in one stream",
        ),
        (
            [START, START, END],
            0,
            "the probe's output is not a report: more than one report in one stream",
        ),
        (
            [CHECK, END],
            0,
            "the probe's output is not a report: a check event before the start",
        ),
        (
            [START, {**CHECK, "status": "splendid"}, END],
            0,
            "the probe's output is not a report: a check without the fields that one has",
        ),
    ],
)
def test_a_report_that_cannot_be_believed_is_broken(
    events: list[dict[str, Any]], exit_code: int | None, reason: str
) -> None:
    report = parsed(*events, exit_code=exit_code)

    assert (report.status, report.reason, report.usable) == ("broken", reason, False)


def test_lines_that_are_no_events_are_counted_and_the_first_kept() -> None:
    """An entrypoint may greet; the report beside it still counts."""
    report = parsed(b"Welcome to \x1b[1mthis\x1b[0m image\x00", START, *[b"{"] * 30, CHECK, END)

    assert (report.status, report.noise_lines) == ("pass", 31)
    assert report.noise[0] == "Welcome to this image"
    assert len(report.noise) == 10


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"9" * 5000,
        b'"text"',
        b"[1]",
        b'{"event":"end"}',
        b"\x00" * 100,
    ],
)
def test_a_strange_line_is_noise(line: bytes) -> None:
    report = parsed(START, line, CHECK, END)

    assert (report.status, report.noise_lines) == ("pass", 1)


def test_a_line_beyond_the_limit_breaks_the_report_and_is_not_kept() -> None:
    """Of a line of 1 GiB."""
    parser = ReportParser()
    parser.feed(lines(START))
    piece = b"x" * (1 << 20)
    for _ in range(1024):
        parser.feed(piece)
        assert len(parser._line) <= 2 * 1024 * 1024
    parser.feed(b"\n" + lines(CHECK, END))

    report = parser.finish()
    assert report.status == "broken"
    assert report.reason.endswith("a line longer than 1 MiB")


def test_endless_output_costs_no_memory() -> None:
    parser = ReportParser()
    parser.feed(lines(START))
    piece = b"noise\n" * 100_000
    for _ in range(2 * MAX_TOTAL_BYTES // len(piece)):
        parser.feed(piece)
    parser.feed(lines(CHECK, END))

    report = parser.finish()
    assert report.status == "broken"
    assert report.reason.endswith(f"more than {MAX_LINES} lines")
    assert report.checks == ()


def test_more_bytes_than_a_report_can_have_break_it() -> None:
    parser = ReportParser()
    line = b"x" * 500_000 + b"\n"
    for _ in range(MAX_TOTAL_BYTES // len(line) + 1):
        parser.feed(line)

    assert parser.finish().reason.endswith("more than 64 MiB")


def test_more_checks_than_a_report_can_have_break_it() -> None:
    report = parsed(START, *[CHECK] * (MAX_CHECKS + 1), END)

    assert report.reason.endswith(f"more than {MAX_CHECKS} checks")
    assert len(report.checks) == MAX_CHECKS


def test_text_is_cleaned_before_it_is_stored() -> None:
    """A terminal must not obey a container: no escapes, no line breaks, no direction marks."""
    nasty = "a\x1b[2Jb\x1b]0;title\x07c\nd\x00e\u202ef\ud800"
    report = parsed(
        START,
        check(name=nasty, reason=nasty, evidence={nasty: [nasty, {"deep": nasty}]}),
        END,
    )

    stored = report.checks[0]
    assert stored.name == stored.reason == "abc def?"
    assert stored.evidence == {"abc def?": ["abc def?", {"deep": "abc def?"}]}
    assert report.model_dump_json().encode()


def test_numbers_that_json_has_not_are_dropped() -> None:
    line = json.dumps(check(evidence={"a": float("nan"), "b": 1.0})).replace("1.0", "1e999")
    report = parsed(START, line.encode(), END)

    assert report.checks[0].evidence == {"a": None, "b": None}


def test_deep_evidence_is_cut() -> None:
    deep: Any = "bottom"
    for _ in range(50):
        deep = [deep]
    report = parsed(START, check(evidence={"deep": deep}), END)

    assert "bottom" not in report.model_dump_json()
    assert "…" in report.checks[0].evidence["deep"][0][0][0][0][0][0][0][0][0][0][0]


def test_the_tail_of_standard_error_is_kept_clean_and_short() -> None:
    tail = ("old", *["line"] * 39, "\x1b[31mSyntaxError\x1b[0m")
    report = ReportParser().finish(exit_code=1, stderr_tail=tail)

    assert len(report.stderr_tail) == 40
    assert report.stderr_tail[-1] == "SyntaxError"


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_nothing_that_arrives_raises(pieces: list[bytes]) -> None:
    parser = ReportParser()
    for piece in pieces:
        parser.feed(piece)

    assert parser.finish().status in {"broken", "fail"}


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_any_value_anywhere_in_a_check_is_a_check_or_broken(value: Any) -> None:
    for key in ("name", "device", "status", "seconds", "evidence", "reason", "threshold", "v"):
        report = parsed(START, check(**{key: value}), END)

        assert report.status in {"pass", "fail", "broken", "degraded"}
        assert report.model_dump_json().encode()


@pytest.mark.parametrize(
    ("seconds", "kept"), [("1" * 400, 0.0), ("1e999", 0.0), ("-5", 0.0), ("true", 1.0), ("2", 2.0)]
)
def test_a_time_that_is_none_counts_as_none(seconds: str, kept: float) -> None:
    """An integer of hundreds of digits is JSON, and no float."""
    end = b'{"v": 1, "event": "end", "status": "pass", "seconds": %s}' % seconds.encode()

    assert parsed(START, CHECK, end, exit_code=0).seconds == kept
