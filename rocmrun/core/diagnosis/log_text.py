"""Bring a log into one form: plain lines without colours, wrappers and repetitions, errors in English.

Linear in the size of the text, whatever is in it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rocmrun.core.diagnosis.errno_texts import LOCALIZED

# What is looked at of one line and of all: errors stand at the start (what began it) and at the end.
LINE_HEAD, LINE_TAIL = 1200, 400
MOST_LINES = 8_000
MOST_CHARACTERS = 64 * 1024 * 1024

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,16}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[@-Z\\-_])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_DIGITS = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")
# What kubectl, compose and CRI put before a line.
_PREFIXES = re.compile(
    r"^(?:\[pod/[^\]\s]{1,200}\] ?|[\w.-]{1,80}-\d{1,4} {1,30}\| ?|\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?)"
)

# Chinese, Japanese and Korean put no space before a word of another script; rules look for whole words.
_BESIDE_CJK = re.compile(
    r"(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])(?=[a-z0-9/])|(?<=[a-z0-9])(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)

_ENGLISH = {local: english for english, locals_ in LOCALIZED.items() for local in locals_}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log, or one fact put as a line.

    Attributes:
        number: Counted from 1 in what was read; 0 for a fact that stood in no text.
        text: As printed, without colours and wrappers.
        lower: The same in lower case, and with errors in English: what rules look at.
        repeated: How often lines came that differ in digits only.
    """

    number: int
    text: str
    lower: str
    repeated: int = 1


def line_of(number: int, text: str) -> Line:
    """Return one line, brought into form."""
    clean = _clean(text)
    return Line(number, clean, _in_english(clean.lower()))


def lines_of(text: str) -> tuple[Line, ...]:
    """Return the lines of *text* that differ in more than digits, in order, bounded from the middle."""
    unique: dict[str, int] = {}
    found: list[tuple[int, str]] = []
    counts: list[int] = []
    for number, raw in enumerate(_bounded(text).split("\n"), start=1):
        if not raw:
            # Millions of them stand for the middle of a long log.
            continue
        # A progress bar writes its line anew after each carriage return.
        for inner in (inner for piece in raw.split("\r") for inner in _unwrapped(piece)):
            clean = _clean(inner)
            if not clean.strip():
                continue
            # What differs in numbers only is one line, once there are many.
            key = _DIGITS.sub("#", clean) if len(found) > MOST_LINES // 10 else clean
            if (place := unique.get(key)) is not None:
                counts[place] += 1
                continue
            unique[key] = len(found)
            found.append((number, clean))
            counts.append(1)
    counted = [(*line, count) for line, count in zip(found, counts, strict=True)]
    half = MOST_LINES // 2
    kept = counted if len(counted) <= MOST_LINES else (*counted[:half], *counted[-half:])
    return tuple(
        Line(number, clean, _in_english(clean.lower()), count) for number, clean, count in kept
    )


def _bounded(text: str) -> str:
    """Return *text*, or a quarter of the bound from its start and the rest from its end; lines keep their numbers."""
    text = text.replace("\r\n", "\n")
    if len(text) <= MOST_CHARACTERS:
        return text
    head = text[: MOST_CHARACTERS // 4]
    tail = text[-(MOST_CHARACTERS - len(head)) :]
    skipped = text.count("\n", len(head), len(text) - len(tail))
    return head + "\n" * max(1, skipped) + tail


def _unwrapped(raw: str) -> Iterator[str]:
    """Yield what a wrapper holds: Docker's JSON log file, journald's JSON, prefixes of kubectl and compose."""
    if raw.startswith("{") and len(raw) < MOST_CHARACTERS // 1000:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = None
        inner = _message(value)
        if inner is not None:
            yield from inner.split("\n")
            return
    for _ in range(3):
        stripped = _PREFIXES.sub("", raw, count=1)
        if stripped == raw:
            break
        raw = stripped
    yield raw


def _message(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    for key in ("log", "MESSAGE", "message", "msg"):
        if isinstance(value.get(key), str):
            return str(value[key])
    return None


def _clean(text: str) -> str:
    text = _cut(text)
    return _CONTROLS.sub("", _ESCAPES.sub("", text)).rstrip()


def _cut(text: str) -> str:
    return (
        text if len(text) <= LINE_HEAD + LINE_TAIL else f"{text[:LINE_HEAD]} … {text[-LINE_TAIL:]}"
    )


def _in_english(lower: str) -> str:
    for local, english in _ENGLISH.items():
        if local in lower:
            lower = lower.replace(local, english)
    return lower if lower.isascii() else _BESIDE_CJK.sub(" ", lower)
