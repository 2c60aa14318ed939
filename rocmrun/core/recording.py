"""What one run asked of the kernel: the calls and capabilities that it used, and those that it was refused.

It is evidence, and decides nothing: a check is no need (the kernel may ask, and go another way), a call that was not
made in this run may be made in the next, and a refusal may be what the job is prepared for.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from pydantic import BaseModel, ConfigDict

from rocmrun.core.grants import CAPABILITIES
from rocmrun.core.system_calls import CallNames
from rocmrun.core.trace import X32, Check, Refusal, Trace

MOST_LISTED = 200
SYS_ADMIN = CAPABILITIES.index("SYS_ADMIN")
# Checks that say nothing of the job, and why.
OF_THE_MOUNTER = "with the credentials of whoever mounted the image's file system (overlayfs)"
OF_MEMORY = "refusals of SYS_ADMIN, which the kernel asks for whenever memory is accounted, and goes on without"
OF_ITS_NAMESPACE = "in a user namespace that the job made itself"


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class RefusedCall(_Record):
    """A call that a program was refused: with which errno, and how often."""

    call: str
    error: str
    times: int
    program: str


class CheckedCapability(_Record):
    """A capability that the kernel asked for on the job's behalf: how often it had it, and how often not."""

    capability: str
    granted: int = 0
    refused: int = 0


class Recording(_Record):
    """What was recorded of the permissive side.

    Attributes:
        recorded: Whether anything was.
        complete: Whether all of it was.
        why: Why nothing was recorded, or why it is incomplete.
        calls: Names of the system calls that were made, refused ones among them.
        unnamed: Calls that have no name here: their numbers, and those of 32-bit programs.
        refused: The most frequent first.
        capabilities: None where the kernel does not tell.
        dropped: Why → how many checks of capabilities were left out.
    """

    recorded: bool = False
    complete: bool = False
    why: str = ""
    calls: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    refused: tuple[RefusedCall, ...] = ()
    capabilities: tuple[CheckedCapability, ...] | None = None
    dropped: dict[str, int] = {}

    @property
    def calls_seen(self) -> frozenset[str]:
        """The calls by name, as a set."""
        return frozenset(self.calls)

    def refusals_of(self, calls: Iterable[str]) -> dict[tuple[str, str], int]:
        """Return (call, errno) → how often, for those of *calls* that were refused."""
        found: Counter[tuple[str, str]] = Counter()
        wanted = frozenset(calls)
        for one in self.refused:
            if one.call in wanted:
                found[one.call, one.error] += one.times
        return dict(sorted(found.items()))

    def checked(self, name: str) -> CheckedCapability | None:
        """Return how often a capability was asked for; None for never."""
        return next((c for c in self.capabilities or () if c.capability == name), None)


NOT_ASKED = Recording(why="nobody asked for it: --record-evidence")


def recording_of(
    trace: Trace,
    names: CallNames,
    *,
    held: Collection[str],
    lost: int = 0,
    tells_capabilities: bool = True,
) -> Recording:
    """Return what *trace* saw of the container.

    Args:
        trace: All of its lines are in.
        names: Of this machine's architecture.
        held: The capabilities that the container could have.
        lost: How many events the kernel had no room for.
        tells_capabilities: Whether the kernel traces checks of capabilities.
    """
    facts = trace.inside
    refused = tuple(
        RefusedCall(call=_name(kind, names), error=kind.error, times=times, program=kind.program)
        for kind, times in sorted(facts.refused.items(), key=lambda one: (-one[1], one[0]))
    )
    numbers = facts.calls | {kind.number for kind in facts.refused if not kind.foreign}
    foreign = facts.foreign | {kind.number for kind in facts.refused if kind.foreign}
    foreign_names = [_foreign(number) for number in sorted(foreign)[:MOST_LISTED]]
    if trace.ran_foreign and not foreign_names:
        foreign_names = ["32-bit program"]
    checks, dropped = _sifted(facts.checks, held, trace.namespace)
    why = _incomplete(trace, lost)
    return Recording(
        recorded=trace.began,
        complete=trace.began and not why,
        why=why,
        calls=tuple(sorted(names.names[number] for number in numbers if number in names.names)),
        unnamed=(
            *(str(number) for number in sorted(numbers - names.names.keys())[:MOST_LISTED]),
            *foreign_names,
        ),
        refused=refused[:MOST_LISTED],
        capabilities=checks if tells_capabilities else None,
        dropped=dropped,
    )


def _incomplete(trace: Trace, lost: int) -> str:
    if lost:
        start = "" if trace.began else ", the container's start among them"
        return f"the kernel had no room for {lost} events{start}"
    if not trace.began:
        return (
            "the container's start was not seen: its engine's process has a name that is not known"
        )
    if trace.crowded:
        return "more processes, or kinds of events, than are kept"
    return ""


def _name(kind: Refusal, names: CallNames) -> str:
    if kind.foreign:
        return _foreign(kind.number)
    return names.names.get(kind.number, str(kind.number))


def _foreign(number: int) -> str:
    return f"x32 {number & ~X32}" if number & X32 else f"32-bit {number}"


def _sifted(
    checks: Counter[Check], held: Collection[str], namespace: str
) -> tuple[tuple[CheckedCapability, ...], dict[str, int]]:
    """Return the checks that say something of the job, and how many do not."""
    numbers = {CAPABILITIES.index(name) for name in held}
    mounters = {
        check.credentials
        for check in checks
        if check.granted and check.namespace == namespace and check.capability not in numbers
    }
    found: dict[str, Counter[bool]] = {}
    dropped: Counter[str] = Counter()
    for check, times in checks.items():
        if check.namespace != namespace:
            dropped[OF_ITS_NAMESPACE] += times
        elif check.credentials in mounters:
            dropped[OF_THE_MOUNTER] += times
        elif check.capability == SYS_ADMIN and not check.granted:
            dropped[OF_MEMORY] += times
        else:
            found.setdefault(_capability(check.capability), Counter())[check.granted] += times
    kept = tuple(
        CheckedCapability(capability=name, granted=times[True], refused=times[False])
        for name, times in sorted(found.items())
    )
    return kept, dict(sorted(dropped.items()))


def _capability(number: int) -> str:
    return CAPABILITIES[number] if number < len(CAPABILITIES) else str(number)
