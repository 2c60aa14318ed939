"""What a recording says of each privilege: a sentence for people, and guesses for the search."""

from collections.abc import Iterable
from typing import Literal

from rocmrun.core.privilege_sides import ROOT, UNCONFINED
from rocmrun.core.privilege_texts import CAPABILITY_ROWS
from rocmrun.core.recording import Recording

# Opened by a rule as by its capability (docs/design.md).
_RULES = {"seccomp:+mempolicy": "SYS_NICE", "seccomp:+pidfd": "SYS_PTRACE"}
# moby/profiles seccomp/default.json of 2026-06-30: what SYS_ADMIN unlocks; clone and clone3, which every program
# tries, are told apart by their arguments, and a recording has none.
_OF_SYS_ADMIN = (
    "bpf", "fanotify_init", "fsconfig", "fsmount", "fsopen", "fspick", "lookup_dcookie", "mount", "mount_setattr",
    "move_mount", "open_tree", "perf_event_open", "quotactl", "quotactl_fd", "setdomainname", "sethostname", "setns",
    "syslog", "umount", "umount2", "unshare",
)  # fmt: skip
# The same file: what no capability unlocks, or only with certain arguments; process_vm_* were locked until 20.10.
_UNCONFINED_ALONE = (
    "add_key", "io_uring_enter", "io_uring_register", "io_uring_setup", "kexec_file_load", "kexec_load", "keyctl",
    "migrate_pages", "move_pages", "personality", "process_vm_readv", "process_vm_writev", "request_key", "swapoff",
    "swapon", "userfaultfd",
)  # fmt: skip
# Without one of these calls a job reaches no network.
_SOCKETS = ("socket", "socketcall")
_MOST_NAMED = 4
_Sign = Literal["for", "against", "none"]


def unlocked_calls(name: str) -> tuple[str, ...]:
    """Return the system calls that a capability unlocks in the engine's seccomp profile."""
    if name == "SYS_ADMIN":
        return _OF_SYS_ADMIN
    unlocks = CAPABILITY_ROWS[name][3] if name in CAPABILITY_ROWS else ""
    return tuple(unlocks.split(", ")) if unlocks else ()


def seen_of(item: str, recording: Recording, *, root: bool) -> str:
    """Return what was seen of *item*; "" where a recording cannot tell."""
    if not recording.recorded:
        return ""
    kind, _, name = item.partition(":")
    said = [_capability_seen(name, recording)] if kind == "cap" and root else []
    said += _calls_seen(_calls_of(item), recording)
    if kind == "network" and not recording.calls_seen & set(_SOCKETS) and _tells_absence(recording):
        said.append("no socket was opened")
    return "; ".join(filter(None, said))


def guesses_of(
    items: Iterable[str], recording: Recording, *, root: bool
) -> tuple[frozenset[str], ...]:
    """Return sets of *items* that may suffice: those that something speaks for, and those that nothing speaks against."""
    if not recording.recorded:
        return ()
    signs = {item: _sign(item, recording, root=root) for item in items}
    likely = frozenset(item for item, sign in signs.items() if sign == "for")
    possible = frozenset(item for item, sign in signs.items() if sign != "against")
    return (likely, possible)


def _sign(item: str, recording: Recording, *, root: bool) -> _Sign:
    """Return what speaks for *item*: something, nothing though it would be seen, or nothing that a recording tells."""
    kind, _, name = item.partition(":")
    if recording.calls_seen & set(_calls_of(item)) or (item == UNCONFINED and recording.unnamed):
        return "for"
    if item == ROOT:
        return "for" if any(one.granted for one in recording.capabilities or ()) else "none"
    if kind == "cap" and root:
        if recording.checked(name) is not None:
            return "for"
        # Refusals of SYS_ADMIN are dropped as noise, so that nothing seen of it says nothing.
        return "none" if recording.capabilities is None or name == "SYS_ADMIN" else "against"
    if kind == "network":
        return "none" if recording.calls_seen & set(_SOCKETS) else "against"
    return "against" if kind == "cap" or item in _RULES or item == UNCONFINED else "none"


def _calls_of(item: str) -> tuple[str, ...]:
    """Return the calls that only work with *item*, as far as names tell."""
    if item == UNCONFINED:
        gated = {call for name in CAPABILITY_ROWS for call in unlocked_calls(name)}
        return tuple(sorted(gated | set(_UNCONFINED_ALONE)))
    return unlocked_calls(_RULES.get(item, item.removeprefix("cap:")))


def _tells_absence(recording: Recording) -> bool:
    """Whether what was not seen was not there: in whole, and with no call that has no name."""
    return recording.complete and not recording.unnamed


def _capability_seen(name: str, recording: Recording) -> str:
    if recording.capabilities is None:
        return ""
    found = recording.checked(name)
    if found is None:
        told = recording.complete and name != "SYS_ADMIN"
        return f"CAP_{name} never asked for" if told else ""
    parts = [
        f"{word} {_times(times)}"
        for word, times in (("used", found.granted), ("refused", found.refused))
        if times
    ]
    return f"CAP_{name} {' and '.join(parts)}"


def _calls_seen(calls: tuple[str, ...], recording: Recording) -> list[str]:
    """Return what was seen of *calls*: refusals with their errno, and what went through."""
    if not calls:
        return []
    refused = recording.refusals_of(calls)
    said = [f"{call} refused with {error} {_times(n)}" for (call, error), n in refused.items()]
    made = sorted(recording.calls_seen & set(calls) - {call for call, _ in refused})
    if made:
        said.append(f"{', '.join(made[:_MOST_NAMED])} called")
    if not said and _tells_absence(recording):
        few = len(calls) <= _MOST_NAMED
        said.append(f"{', '.join(calls)} never called" if few else "no call that it opens was made")
    return said


def _times(times: int) -> str:
    return "once" if times == 1 else f"{times} times"
