"""How much of a log and of a report goes into a support bundle, and what is said of the rest."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rocmrun.core.bundle import MOST_LINES, LogPart
from rocmrun.core.report.model import ProbeReport

MOST_LOG_CHARACTERS = 1024 * 1024
MOST_REPORT_CHARACTERS = 512 * 1024
# Of a longer line rules look at the start and the end alone.
LONGEST_LINE = 16 * 1024
LONGEST_TEXT, MOST_ITEMS, DEEPEST = 8_000, 500, 12
_LONG = re.compile(rf"[^\n]{{{LONGEST_LINE + 1},}}")
# What is cut through may be half of something that would have been known whole.
_EDGE = 1_000

Redact = Callable[[str], str]


def bounded_log(
    log: str | None, redact: Redact, unread: str = ""
) -> tuple[tuple[LogPart, ...], tuple[str, ...]]:
    """Return the start and the end of a log without what is private, and what is to be said of the rest.

    Args:
        log: What was read of it.
        redact: Takes out what is private.
        unread: What was not even read, in words.
    """
    if log is None:
        return (), ()
    # As rules count lines.
    text = log.replace("\r\n", "\n").replace("\r", "\n")
    kept = tuple(_kept(text))
    parts = tuple(
        LogPart(first=min(first, MOST_LINES), lines=tuple(_redacted(some, redact)))
        for first, some in kept
    )
    long = sum(1 for _ in _LONG.finditer(text))
    cut = [f"the middle of {long} long lines of the log"] if long else []
    if left_out := text.count("\n") + 1 - sum(len(some) for _, some in kept):
        cut.append(f"{left_out} lines of the log from line {kept[0][0] + len(kept[0][1])} on")
    return parts, (*cut, *([unread] if unread else []))


def _kept(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first quarter of what is kept, and the rest from the end; no list of all lines is made for it."""
    spared = sum(len(line[0]) - LONGEST_LINE for line in _LONG.finditer(text))
    if len(text) + 1 - spared <= MOST_LOG_CHARACTERS:
        yield 1, text.split("\n")
        return
    head = _fitting(_forward(text), MOST_LOG_CHARACTERS // 4)
    tail = _fitting(_backward(text), MOST_LOG_CHARACTERS * 3 // 4)
    lines = text.count("\n") + 1
    tail = tail[: lines - len(head)][::-1]
    yield 1, head
    yield lines - len(tail) + 1, tail


def _forward(text: str) -> Iterator[str]:
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _backward(text: str) -> Iterator[str]:
    end = len(text)
    while (start := text.rfind("\n", 0, end)) >= 0:
        yield text[start + 1 : end]
        end = start
    yield text[:end]


def _fitting(lines: Iterator[str], most: int) -> list[str]:
    found: list[str] = []
    for line in lines:
        most -= min(len(line), LONGEST_LINE) + 1
        if most < 0:
            break
        found.append(line)
    return found


def _redacted(lines: list[str], redact: Redact) -> list[str]:
    # A line that comes again is read once.
    unique = tuple(dict.fromkeys(line for line in lines if len(line) <= LONGEST_LINE))
    shown = dict(zip(unique, redact("\n".join(unique)).split("\n"), strict=True)) if unique else {}
    return [shown[line] if line in shown else _long(line, redact) for line in lines]


def _long(line: str, redact: Redact) -> str:
    half = LONGEST_LINE // 2
    return f"{redact(line[:half])[:-_EDGE]} … {redact(line[-half:])[_EDGE:]}"


def bounded_report(
    report: ProbeReport | None,
    redact: Callable[[Any], Any],
    shape: Callable[[Iterable[str]], list[str]],
) -> tuple[ProbeReport | None, tuple[str, ...]]:
    """Return a report without what is private, of a command its *shape*, and what of it was left out."""
    if report is None:
        return None, ()
    cut: list[str] = []
    values = _bounded(report.model_dump(mode="json"), cut, DEEPEST)
    for check in values["checks"]:
        if isinstance(words := check["evidence"].get("command"), list):
            check["evidence"]["command"] = shape(map(str, words))
    for spared in (("fail", "degraded"), ()):
        if len(json.dumps(values)) <= MOST_REPORT_CHARACTERS:
            break
        cut.append(f"the evidence of checks{' that failed' if not spared else ' that passed'}")
        for check in values["checks"]:
            if check["status"] not in spared:
                check["evidence"] = {}
    return ProbeReport.model_validate(redact(values)), tuple(dict.fromkeys(cut))


def _bounded(value: Any, cut: list[str], depth: int) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        cut.append("the end of long texts in the report")
        # No known string is cut in two: the redactor sees whole words.
        return value[:LONGEST_TEXT].rsplit(None, 1)[0]
    if isinstance(value, dict | list):
        if depth == 0:
            cut.append("what is nested deep in the report")
            return None
        if len(value) > MOST_ITEMS:
            cut.append("the end of long lists in the report")
        if isinstance(value, dict):
            return {
                key: _bounded(each, cut, depth - 1)
                for key, each in list(value.items())[:MOST_ITEMS]
            }
        return [_bounded(each, cut, depth - 1) for each in value[:MOST_ITEMS]]
    return value
