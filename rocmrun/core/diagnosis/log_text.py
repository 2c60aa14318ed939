"""Bring a log into one form: plain lines without colours, wrappers and repetitions, errors in English.

Linear in the size of the text, whatever is in it.
"""

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from rocmrun.core.diagnosis.errno_texts import LOCALIZED

# What is looked at of one line and of all: errors stand at the start (what began it) and at the end.
LINE_HEAD, LINE_TAIL = 1200, 400
MOST_LINES = 8_000
MOST_CHARACTERS = 64 * 1024 * 1024
# Of the lines between, those that tell of trouble, each with so many that follow.
MOST_TROUBLE, _FOLLOWING = 2_000, 12
_TROUBLE = re.compile(
    r"error|exception|traceback|fail|fatal|denied|not permitted|no such|not found|cannot|can't|unable|invalid|killed|out of memory|abort|segfault|fault|timed out|warn:|unsupported|not supported|missing",
    re.IGNORECASE,
)
# Of how many lines it is remembered that they were there: more would cost more than the log.
_MOST_KNOWN = 200_000

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,16}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[@-Z\\-_])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_FULL = re.compile(r"[^\n]+")
_DIGITS = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")
_ALIKE = str.maketrans("123456789", "000000000")
# What kubectl, compose and CRI put before a line.
_PREFIXES = re.compile(
    r"^(?:\[pod/[^\]\s]{1,200}\] ?|[\w.-]{1,80}-\d{1,4} {1,30}\| ?|\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?)"
)

# Chinese, Japanese and Korean put no space before a word of another script; rules look for whole words.
_BESIDE_CJK = re.compile(
    r"(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])(?=[a-z0-9/])|(?<=[a-z0-9])(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)

# Where programs that log JSON put their message, and beside it what went wrong.
_SAID = ("log", "MESSAGE", "message", "msg")
_SAID_BESIDE = (
    "error",
    "err",
    "exception",
    "exc_info",
    "traceback",
    "stack_trace",
    "stacktrace",
    "stack",
)

_ENGLISH = {local: english for english, locals_ in LOCALIZED.items() for local in locals_}
_ENGLISH_OF_ASCII = {local: english for local, english in _ENGLISH.items() if local.isascii()}


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
    kept = _Kept()
    for number, raw in _numbered(text):
        # A progress bar writes its line anew after each carriage return.
        for inner in (inner for piece in raw.split("\r") for inner in _unwrapped(piece)):
            clean = _clean(inner)
            if clean.strip():
                kept.add(number, clean)
    return tuple(
        Line(each.number, each.text, _in_english(each.text.lower()), each.count)
        for each in (*kept.first, *kept.between, *kept.last)
    )


@dataclass(slots=True)
class _Counted:
    number: int
    text: str
    key: int
    count: int = 1


class _Kept:
    """The first and the last different lines; of those between what tells of trouble, and that the rest was there."""

    def __init__(self) -> None:
        self.first: list[_Counted] = []
        self.between: list[_Counted] = []
        self.last: deque[_Counted] = deque()
        self._follow = 0
        # By the hash of a line: the lines themselves may be as long as the log.
        self._known: dict[int, _Counted | None] = {}
        # Lines with numbers of the same lengths: to look these up is quicker than to take numbers out.
        self._alike: dict[int, int] = {}
        self._different = 0

    def add(self, number: int, text: str) -> None:
        # What differs in numbers only is one line, once there are many.
        key = self._without_numbers(text) if self._different > MOST_LINES // 10 else hash(text)
        if key in self._known:
            if (before := self._known[key]) is not None:
                before.count += 1
            return
        self._different += 1
        counted = _Counted(number, text, key)
        if len(self._known) < _MOST_KNOWN:
            self._known[key] = counted
        if len(self.first) < MOST_LINES // 2:
            self.first.append(counted)
            return
        self.last.append(counted)
        if len(self.last) > MOST_LINES // 2:
            self._drop(self.last.popleft())

    def _drop(self, line: _Counted) -> None:
        self._follow = _FOLLOWING if _TROUBLE.search(line.text) else self._follow - 1
        if self._follow > 0 and len(self.between) < MOST_TROUBLE:
            self.between.append(line)
        elif line.key in self._known:
            self._known[line.key] = None

    def _without_numbers(self, text: str) -> int:
        alike = hash(text.translate(_ALIKE))
        key = self._alike.get(alike)
        if key is None:
            key = hash(_DIGITS.sub("#", text))
            if len(self._alike) < _MOST_KNOWN:
                self._alike[alike] = key
        return key


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that is not empty with its number; of a long text of its first quarter and its end, uncopied."""
    head = MOST_CHARACTERS // 4
    whole = len(text) <= MOST_CHARACTERS
    number, counted = 1, 0
    for start, end in ((0, len(text)),) if whole else ((0, head), (len(text) - MOST_CHARACTERS + head, len(text))):  # fmt: skip
        for match in _FULL.finditer(text, start, end):
            number += text.count("\n", counted, match.start())
            counted = match.start()
            yield number, match[0]


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
        prefix = _PREFIXES.match(raw)
        if prefix is None:
            break
        raw = raw[prefix.end() :]
    yield raw


def _message(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    said = next((value[key] for key in _SAID if isinstance(value.get(key), str)), None)
    if said is None and "level" in value and isinstance(value.get("event"), str):
        said = value["event"]
    if said is None:
        return None
    beside = (value[key] for key in _SAID_BESIDE if isinstance(value.get(key), str))
    return "\n".join([said, *beside])


def _clean(text: str) -> str:
    text = _cut(text)
    if text.isascii() and text.isprintable():
        return text.rstrip()
    return _CONTROLS.sub("", _ESCAPES.sub("", text)).rstrip()


def _cut(text: str) -> str:
    return (
        text if len(text) <= LINE_HEAD + LINE_TAIL else f"{text[:LINE_HEAD]} … {text[-LINE_TAIL:]}"
    )


def _in_english(lower: str) -> str:
    for local, english in (_ENGLISH_OF_ASCII if lower.isascii() else _ENGLISH).items():
        if local in lower:
            lower = lower.replace(local, english)
    return lower if lower.isascii() else _BESIDE_CJK.sub(" ", lower)
