"""A finding, the kinds there are, and the rules that find them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from rocmrun.core.diagnosis.body import Quotes
from rocmrun.core.diagnosis.evidence import Evidence

Confidence = Literal["high", "medium", "low"]
Standing = Literal["ruled out", "no sign of it", "possible too"]

# The fixed order: what comes first has to be in order before what follows can be judged.
STEPS = (
    "host", "engine", "devices", "permissions", "container", "image", "architecture", "operators", "paths",
    "limits", "collectives", "running", "noise",
)  # fmt: skip
# No package of Python's can mend these.
HOST_STEPS = frozenset({"host", "engine", "devices", "permissions"})

Look = Callable[[Evidence], Quotes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is known about one kind of failure, whoever has it.

    Attributes:
        slug: The catalogue's name.
        step: One of STEPS.
        cause: One or two sentences.
        recognise: What tells it, with the command that shows it.
        remedy: What to do, in words.
        next: The next command; "" where none exists.
        look_alikes: Kinds that show the same symptom.
        sources: Where people reported it.
    """

    slug: str
    title: str
    step: str
    cause: str
    recognise: str
    remedy: str
    next: str = ""
    look_alikes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def order(self) -> int:
        """Its place in the fixed order."""
        return STEPS.index(self.step)


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing to look for, what it says, and how much it counts; negative speaks against."""

    points: int
    meaning: str
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one kind is told from its evidence.

    Attributes:
        needs: Nothing is said without it.
        symptom: Kinds with the same symptom exclude each other: only the strongest can be sure.
        unless: Rules the kind out, whatever else is there.
        undecided: What is still open, and what would tell, when the evidence leaves it open.
        settles: Without it the kind is named and its confidence stays at medium: the cause is not shown.
    """

    kind: str
    signs: tuple[Sign, ...]
    needs: Look | None = None
    unless: Look | None = None
    symptom: str = ""
    undecided: str = ""
    settles: Look | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A sign that was seen, with the lines that show it."""

    meaning: str
    points: int
    lines: Quotes


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAlike:
    """A kind with the same symptom, and whether it can be this one."""

    kind: str
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause that the evidence points to.

    Attributes:
        points: Those for, less those against.
        reasons: The signs that were seen, strongest first.
        undecided: What the evidence does not tell, and what would; "" when it is settled.
    """

    kind: Kind
    confidence: Confidence
    points: int
    reasons: tuple[Reason, ...]
    look_alikes: tuple[LookAlike, ...] = field(default=())
    undecided: str = ""
