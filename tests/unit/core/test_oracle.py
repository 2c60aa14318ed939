"""Judging a run: exit code, output, numbers, a probe's report, and the line that tells of a failure."""

import re

import pytest

from rocmrun.core.oracle import (
    CommandOracle,
    Outcome,
    first_failure,
    judge,
    judge_probe,
    parse_metric,
    parse_pattern,
)
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.errors import UsageError

FAST = CommandOracle(metrics=(("speed", 40.0),))


def test_exit_code_zero_is_a_pass_unless_more_is_asked() -> None:
    """Without words of its own the oracle wants 0."""
    assert judge(Outcome(exit_code=0), CommandOracle()).verdict == "pass"
    assert judge(Outcome(exit_code=3), CommandOracle()).reason == "exit code 3, 0 was expected"
    assert judge(Outcome(exit_code=3), CommandOracle(exit_code=3)).passed


def test_output_must_match_and_must_not() -> None:
    """Both streams are looked at, line by line."""
    oracle = CommandOracle(
        output=re.compile("^loss 0", re.MULTILINE), forbidden=re.compile("via SHM")
    )

    assert judge(Outcome(exit_code=0, stdout="x\nloss 0.1\n"), oracle).passed
    assert judge(Outcome(exit_code=0), oracle).reason == "nothing in its output matches ^loss 0"
    fell_back = judge(Outcome(exit_code=0, stdout="loss 0", stderr="0 via SHM"), oracle)
    assert (fell_back.verdict, fell_back.reason) == ("fail", "its output has via SHM")


@pytest.mark.parametrize(
    ("stdout", "verdict", "reason"),
    [
        ('{"speed": 50}\n', "pass", ""),
        ('{"speed": 50}\n{"speed": 30.5}\n', "degraded", "speed is 30.5, 40 was asked for"),
        ('{"other": 50}\n[1]\n{broken\n', "fail", "no JSON line has the number speed"),
        ('{"speed": true}\n', "fail", "no JSON line has the number speed"),
        ('{"speed": NaN}\n', "fail", "no JSON line has the number speed"),
        ('{"speed": ' + "9" * 400 + "}\n", "fail", "no JSON line has the number speed"),
    ],
)
def test_a_number_is_read_from_json_lines(stdout: str, verdict: str, reason: str) -> None:
    """The last counts; too low is degraded, and what is no number is none."""
    result = judge(Outcome(exit_code=0, stdout=stdout), FAST)

    assert (verdict, reason) == (result.verdict, result.reason)


def test_a_time_limit_and_a_memory_limit_are_told_apart() -> None:
    """Neither is an exit code."""
    late = judge(Outcome(exit_code=137, timed_out=True, seconds=60), CommandOracle())
    killed = judge(Outcome(exit_code=137, oom_killed=True), CommandOracle())

    assert late.reason == "did not end within the time limit (60 s)"
    assert killed.reason == "the kernel killed it: the container's memory limit was reached"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("set_mempolicy: Operation not permitted", "EPERM"),
        ("OSError: [Errno 30] Read-only file system: '/x'", "EROFS"),
        ("Unable to open /dev/kfd read-write: Permission denied", "EACCES"),
        ("nccl: posix_fallocate failed : No space left on device", "ENOSPC"),
        ("cma_ep.c:84 process_vm_readv returned -1, errno=1", "EPERM"),
        ("errno 4096", ""),
    ],
)
def test_the_first_line_that_names_an_error_is_the_evidence(line: str, error: str) -> None:
    """By the C library's words, or by errno's number."""
    told = first_failure(Outcome(exit_code=1, stderr=f"starting\n{line}\nTraceback\n  end\n"))

    assert (line if error else "end", error) == (told[0], told[1])


def test_a_missing_file_tells_only_where_nothing_else_does() -> None:
    """Python's mkdir(parents=True) raises it on its way to the real one."""
    missing = "FileNotFoundError: [Errno 2] No such file or directory: '/opt/app/cache'"
    real = "OSError: [Errno 30] Read-only file system: '/opt/app'"
    both = first_failure(Outcome(exit_code=1, stderr=f"{missing}\nDuring handling\n{real}\n"))
    alone = first_failure(Outcome(exit_code=1, stderr=f"{missing}\nend\n"))

    assert both == (real, "EROFS")
    assert alone == (missing, "ENOENT")


def test_evidence_holds_no_control_characters() -> None:
    """Output of a container is untrusted."""
    result = judge(
        Outcome(exit_code=1, stderr="\x1b[31mboom\x1b]0;title\x07: Permission denied\n"),
        CommandOracle(),
    )

    assert result.line == "boom: Permission denied"
    assert result.evidence == "boom: Permission denied (EACCES)"


def report(*statuses: str, status: str = "pass") -> ProbeReport:
    checks = tuple(
        ProbeCheck(group="device", name=f"check{index}", status=one, reason="mbind: Operation not permitted")
        for index, one in enumerate(statuses)
    )  # fmt: skip
    return ProbeReport(status=status, checks=checks, seconds=2.0)


def test_a_probe_passes_with_what_is_degraded_anyway() -> None:
    """What is degraded with every privilege is no privilege's doing; what becomes degraded is."""
    usual = judge_probe(report("pass", "degraded", status="degraded"), None)
    same = judge_probe(report("pass", "degraded", status="degraded"), usual.degraded)
    worse = judge_probe(report("degraded", "degraded", status="degraded"), usual.degraded)

    assert usual.passed
    assert same.passed
    assert (worse.verdict, worse.reason) == ("degraded", "degraded: device: check0")


def test_a_failed_probe_names_its_check() -> None:
    """With the words of the check, and their errno."""
    failed = judge_probe(report("pass", "fail", status="fail"), ())

    assert (failed.verdict, failed.error) == ("fail", "EPERM")
    assert failed.reason == "device: check1: mbind: Operation not permitted"


def test_patterns_and_metrics_are_checked_when_they_are_read() -> None:
    """A mistake is told before anything runs."""
    assert parse_metric("busbw_gbs=200") == ("busbw_gbs", 200.0)
    assert parse_pattern("--expect-output", None) is None
    for wrong in ("speed", "=3", "speed=fast", "speed=nan"):
        with pytest.raises(UsageError):
            parse_metric(wrong)
    with pytest.raises(UsageError, match="no regular expression"):
        parse_pattern("--expect-output", "(")
