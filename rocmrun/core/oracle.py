"""Whether a run did the job: by exit code, output and measured numbers, or by a probe's report.

An exit code alone would call silent losses unneeded, such as NUMA placement or a slower transport; so
output and metrics can be asked for, and a number that is too low is "degraded", not "pass".
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from rocmrun.core.report.model import ProbeReport
from rocmrun.core.text import printable
from rocmrun.core.writes import Writes
from rocmrun.errors import UsageError

Verdict = Literal["pass", "degraded", "fail", "unstartable"]
LONGEST_LINE = 300

# The words of the C library (strerror) for errors that a missing right gives, and what they stand for.
_ERRORS = (
    ("Operation not permitted", "EPERM"),
    ("Permission denied", "EACCES"),
    ("Read-only file system", "EROFS"),
    ("Function not implemented", "ENOSYS"),
    ("No space left on device", "ENOSPC"),
    ("Cannot allocate memory", "ENOMEM"),
    ("Too many open files", "EMFILE"),
    ("Resource temporarily unavailable", "EAGAIN"),
    ("Network is unreachable", "ENETUNREACH"),
    ("Temporary failure in name resolution", "EAI_AGAIN"),
    ("No such device", "ENODEV"),
    ("Bus error", "SIGBUS"),
    ("No such file or directory", "ENOENT"),
)
# Python's mkdir(parents=True) says it before what really kept it, and programs look for files that need not be there.
_WEAK = "ENOENT"
_NUMBER = re.compile(r"\b(?:errno|error code|Errno)[ =:]*(\d{1,3})\b")
# Linux, asm-generic/errno-base.h and errno.h.
_NAMES = {1: "EPERM", 2: "ENOENT", 11: "EAGAIN", 12: "ENOMEM", 13: "EACCES", 19: "ENODEV", 24: "EMFILE",
          28: "ENOSPC", 30: "EROFS", 38: "ENOSYS", 101: "ENETUNREACH"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOracle:
    """What a command must do.

    Attributes:
        exit_code: What it must end with.
        output: Must match somewhere in stdout or stderr.
        forbidden: Must match nowhere there.
        metrics: (name, least) of numbers that its JSON lines on stdout must hold.
    """

    exit_code: int = 0
    output: re.Pattern[str] | None = None
    forbidden: re.Pattern[str] | None = None
    metrics: tuple[tuple[str, float], ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "exit_code": self.exit_code,
            "output": self.output.pattern if self.output else None,
            "forbidden": self.forbidden.pattern if self.forbidden else None,
            "metrics": dict(self.metrics),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a container did, bounded: the last part of each stream."""

    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    timed_out: bool = False
    oom_killed: bool = False


class TrialResult(BaseModel):
    """One run, judged.

    Attributes:
        verdict: "unstartable" is a container that the engine refuses: it says nothing of the job.
        reason: Why the verdict is not "pass".
        line: The line that tells of the failure, as the program wrote it.
        error: What that line says went wrong, "EPERM"; "" where it cannot be told.
        metrics: Numbers that were asked for and found.
        degraded: Labels of what a probe found degraded.
        refused: Paths that a run under a read-only root named as read-only, where that was looked at.
        writes: Where a run under a writable root wrote in the image's tree, where that was looked at.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    verdict: Verdict
    reason: str = ""
    line: str = ""
    error: str = ""
    seconds: float = 0.0
    exit_code: int | None = None
    metrics: dict[str, float] = {}
    degraded: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    writes: Writes | None = None

    @property
    def passed(self) -> bool:
        """Whether the run did what was asked, all of it."""
        return self.verdict == "pass"

    @property
    def evidence(self) -> str:
        """The failing line with its meaning, or the reason."""
        if not self.line:
            return self.reason
        return (
            f"{self.line} ({self.error})"
            if self.error and self.error not in self.line
            else self.line
        )


def parse_pattern(option: str, text: str | None) -> re.Pattern[str] | None:
    """Return the regular expression of an option; lines count one by one.

    Raises:
        UsageError: it is none.
    """
    if text is None:
        return None
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        msg = f'{option} "{text}" is no regular expression: {error}'
        raise UsageError(msg) from error


def parse_metric(text: str) -> tuple[str, float]:
    """Return the name and the least value of "NAME=MIN".

    Raises:
        UsageError: it has another form.
    """
    name, equals, least = text.rpartition("=")
    try:
        number = float(least)
    except ValueError:
        number = math.nan
    if not name or not equals or not math.isfinite(number):
        msg = f'--metric "{text}" is not NAME=MIN'
        raise UsageError(msg, hint="for example --metric busbw_gbs=200")
    return name, number


def judge(outcome: Outcome, oracle: CommandOracle) -> TrialResult:
    """Return what *outcome* is worth under *oracle*."""
    found = dict(_metrics(outcome.stdout, {name for name, _ in oracle.metrics}))
    why = _why_failed(outcome, oracle, found)
    low = [
        f"{name} is {found[name]:g}, {least:g} was asked for"
        for name, least in oracle.metrics
        if name in found and found[name] < least
    ]
    line, error = first_failure(outcome) if why else ("", "")
    return TrialResult(
        verdict="fail" if why else "degraded" if low else "pass",
        reason=why or "; ".join(low),
        line=line,
        error=error,
        seconds=round(outcome.seconds, 3),
        exit_code=outcome.exit_code,
        metrics=found,
    )


def judge_probe(report: ProbeReport, accepted: Iterable[str] | None) -> TrialResult:
    """Return what a probe's report is worth; *accepted* names what may be degraded, None when anything may."""
    degraded = tuple(check.label for check in report.checks if check.status == "degraded")
    new = [] if accepted is None else [label for label in degraded if label not in set(accepted)]
    failed = report.failures[0] if report.failures else None
    text = failed.reason if failed else "\n".join(report.stderr_tail)
    line, error = _meaning(text.splitlines())
    usable = report.usable
    return TrialResult(
        verdict="fail" if not usable else "degraded" if new else "pass",
        reason=(f"{failed.label}: {failed.reason}" if failed else report.reason)
        if not usable
        else f"degraded: {', '.join(new)}"
        if new
        else "",
        line=printable(line, LONGEST_LINE) if not usable else "",
        error=error if not usable else "",
        seconds=report.seconds,
        exit_code=report.exit_code,
        degraded=degraded,
    )


def _why_failed(outcome: Outcome, oracle: CommandOracle, found: Mapping[str, float]) -> str:
    if outcome.timed_out:
        return f"did not end within the time limit ({outcome.seconds:.0f} s)"
    if outcome.oom_killed:
        return "the kernel killed it: the container's memory limit was reached"
    if outcome.exit_code != oracle.exit_code:
        return f"exit code {outcome.exit_code}, {oracle.exit_code} was expected"
    text = f"{outcome.stdout}\n{outcome.stderr}"
    if oracle.output and not oracle.output.search(text):
        return f"nothing in its output matches {oracle.output.pattern}"
    if oracle.forbidden and (match := oracle.forbidden.search(text)):
        return f"its output has {printable(match[0], 80)}"
    missing = [name for name, _ in oracle.metrics if name not in found]
    return f"no JSON line has the number {', '.join(missing)}" if missing else ""


def _metrics(text: str, names: set[str]) -> Iterator[tuple[str, float]]:
    """Yield the numbers of JSON lines by name; the last of each counts."""
    for line in text.splitlines() if names else ():
        if not line.lstrip().startswith("{"):
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            continue
        yield from (
            (name, number) for name in names if (number := _number(values.get(name))) is not None
        )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def first_failure(outcome: Outcome) -> tuple[str, str]:
    """Return the first line that names an error and the error's name, else the last line that was written.

    A line that says a file is missing counts only where no other names an error.
    """
    lines = [*outcome.stderr.splitlines(), *outcome.stdout.splitlines()]
    line, error = _meaning(lines)
    if not line:
        said = [text for text in outcome.stderr.splitlines() if text.strip()]
        line = said[-1] if said else next(iter(outcome.stdout.splitlines()[-1:]), "")
    return printable(line.strip(), LONGEST_LINE), error


def _meaning(lines: Iterable[str]) -> tuple[str, str]:
    named = list(_named(lines))
    strong = (one for one in named if one[1] != _WEAK)
    return next(strong, named[0] if named else ("", ""))


def _named(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each line that names an error, with the error's name."""
    for line in lines:
        if name := _error_of(line):
            yield line, name


def _error_of(line: str) -> str:
    said = next((name for text, name in _ERRORS if text.lower() in line.lower()), "")
    number = _NUMBER.search(line)
    return said or (_NAMES.get(int(number[1]), "") if number else "")
