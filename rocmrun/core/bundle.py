"""A support bundle: what a diagnosis was made from, as one JSON file that its sender can read and others can judge anew."""

import json
from typing import Any, Literal

from pydantic import Field, ValidationError

from rocmrun.core.image_report import ImageReport
from rocmrun.core.lock import LockedFacts
from rocmrun.core.report.model import ProbeReport, Record
from rocmrun.core.text import printable
from rocmrun.errors import BundleInvalid

FORMAT = "rocmrun support bundle"
VERSION = 1
READ_THIS_FIRST = (
    "Read this file before you send it. It is plain text, and this is all of it.",
    "Replaced, each by the same mark wherever it stood: names of users, machines and registries, addresses, home "
    "directories, parts of paths, images and commands that are not everybody's, unique ids of GPUs, secrets.",
    "Kept, because a cause is told by them: numbers of users and groups, modes, errors, versions, settings, models "
    "and places of GPUs, names of variables, and directories that every machine has.",
    "Not in it: values of env_from and secrets, values of variables that no GPU library reads, labels, the "
    "profile's reasons and descriptions, environment of the caller, serial numbers.",
    "In the text of a log a name that has no form of its own cannot be told from a word: look there.",
)
# Whoever judges a bundle has a line for each that was left out: a byte and a pointer.
MOST_LINES = 16 * 1024 * 1024
_HINT = "rocmrun doctor --bundle FILE on the machine that it is about"
_MOST_MISTAKES = 8


class Made(Record):
    """When, by what and where.

    Attributes:
        rocmrun: Its version.
        at: ISO 8601 with offset.
        host: The kind of host, in words.
    """

    rocmrun: str
    at: str
    host: str = ""


class SupportAsked(Record):
    """What the support matrix is asked."""

    gpus: tuple[int, ...]
    claims: LockedFacts | None = None
    override: str | None = None


class Looked(Record):
    """What was looked at beside host and engine: the fields are those of `Seen`."""

    wants_gpus: bool | None = None
    policy: Literal["require", "warn", "ignore"] = "warn"
    engine_problem: str = ""
    support: SupportAsked | None = None
    image: ImageReport | None = None
    lints: tuple[str, ...] = ()
    torch: str | None = None
    denied: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    refusal: tuple[str, str, str] | None = None


class LogPart(Record):
    """Lines of a log that follow each other; *first* is the number of the first."""

    first: int = Field(ge=1, le=MOST_LINES)
    lines: tuple[str, ...]


class Bundle(Record):
    """What was looked at, and what was found.

    Attributes:
        masked: What was replaced → how often.
        cut: What was left out for its size, one sentence each.
        found: What the doctor of *made.rocmrun* found in exactly these facts.
        host: As `rocmrun host --json` has it.
        profile: What was asked for; for people alone.
        plan: For people alone: no rule reads it.
        proof: An earlier probe that counts for this plan; for people alone.
        run: The record of a run that the report came in; for people alone.
    """

    format: str = FORMAT
    version: int = VERSION
    read_this_first: tuple[str, ...] = READ_THIS_FIRST
    made: Made
    masked: dict[str, int] = Field(default_factory=dict)
    cut: tuple[str, ...] = ()
    found: dict[str, Any] = Field(default_factory=dict)
    host: dict[str, Any] | None = None
    engine: dict[str, Any] | None = None
    looked: Looked | None = None
    profile: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    report: ProbeReport | None = None
    run: dict[str, Any] | None = None
    proof: dict[str, Any] | None = None
    log: tuple[LogPart, ...] = ()

    @property
    def log_text(self) -> str | None:
        """The log, with empty lines for those that were left out, so that numbers of lines stay right."""
        text, before = "", 0
        for part in self.log:
            text += "\n" * max(0, part.first - 1 - before) + "\n".join(part.lines) + "\n"
            before = max(before, part.first - 1) + len(part.lines)
        return text.removesuffix("\n") if self.log else None

    @property
    def kinds(self) -> tuple[str, ...]:
        """What was found when it was made."""
        findings = self.found.get("findings")
        rows = findings if isinstance(findings, list) else []
        return tuple(str(row.get("kind")) for row in rows if isinstance(row, dict))


def bundle_text(bundle: Bundle) -> str:
    """Return the file's text: ASCII alone, so that nothing in it is hidden from who reads it."""
    return json.dumps(bundle.model_dump(mode="json"), indent=1, ensure_ascii=True) + "\n"


def parse_bundle(text: str, name: str) -> Bundle:
    """Return the bundle in *text*; keys that nobody knows are ignored. *name* is the file's.

    Raises:
        BundleInvalid: it is none, of a newer rocmrun, or damaged.
    """
    try:
        values = _clean(json.loads(text))
    except (ValueError, RecursionError) as error:
        msg = f"{name} is no support bundle, or a damaged one: it is no JSON ({error})"
        raise BundleInvalid(msg, hint=_HINT) from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        msg = f'{name} is no support bundle: it has no "format": "{FORMAT}"'
        raise BundleInvalid(msg, hint=_HINT)
    version = values.get("version")
    if type(version) is not int or version < 1:
        msg = f"{name} is damaged, or no support bundle: its version is no number"
        raise BundleInvalid(msg, hint=_HINT)
    if version > VERSION:
        shown = printable(str(version), 20)
        msg = f"{name} is a bundle of version {shown}; this rocmrun reads {VERSION}"
        raise BundleInvalid(msg, hint="use the rocmrun that made it, or a newer one")
    try:
        return Bundle.model_validate(values)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        details = tuple(printable(line, 200) for line in lines[:_MOST_MISTAKES])
        msg = f"{name} is damaged, or no support bundle"
        raise BundleInvalid(msg, hint=_HINT, details=details) from error


def _clean(value: Any) -> Any:
    """Return JSON values that a terminal can be given: whoever sent them may be anybody."""
    if isinstance(value, str):
        return printable(value, len(value))
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {printable(key, len(key)): _clean(each) for key, each in value.items()}
    return value
