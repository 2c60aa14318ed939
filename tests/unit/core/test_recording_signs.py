"""What a recording says of privileges: sentences that it can stand for, and guesses."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rocmrun.core.grants import CAPABILITIES
from rocmrun.core.privilege_sides import space_of
from rocmrun.core.privileges import AMD_RECIPE
from rocmrun.core.recording import CheckedCapability, Recording, RefusedCall
from rocmrun.core.recording_signs import guesses_of, seen_of, unlocked_calls
from rocmrun.core.search import Search
from rocmrun.core.search_space import Members, Question, Settings

WHOLE = Recording(
    recorded=True,
    complete=True,
    calls=("kcmp", "mbind", "openat", "socket"),
    refused=(
        RefusedCall(call="mbind", error="EPERM", times=2, program="python3"),
        RefusedCall(call="mbind", error="EPERM", times=1, program="worker"),
    ),
    capabilities=(
        CheckedCapability(capability="DAC_OVERRIDE", granted=4, refused=1),
        CheckedCapability(capability="NET_RAW", granted=1),
    ),
)
QUIET = Recording(recorded=True, complete=True, calls=("openat", "read"), capabilities=())


@pytest.mark.parametrize(
    ("item", "root", "said"),
    [
        ("seccomp:+mempolicy", False, "mbind refused with EPERM 3 times"),
        ("cap:SYS_NICE", False, "mbind refused with EPERM 3 times"),
        ("cap:SYS_NICE", True, "CAP_SYS_NICE never asked for; mbind refused with EPERM 3 times"),
        ("seccomp:+pidfd", False, "kcmp called"),
        ("seccomp:unconfined", False, "mbind refused with EPERM 3 times; kcmp called"),
        ("cap:NET_RAW", True, "CAP_NET_RAW used once"),
        ("cap:DAC_OVERRIDE", True, "CAP_DAC_OVERRIDE used 4 times and refused once"),
        ("cap:SYSLOG", False, "syslog never called"),
        ("network:host", True, ""),
        ("rootfs:rw", True, ""),
        ("shm:2147483648", True, ""),
        ("device:/dev/kfd:rw", True, ""),
    ],
)
def test_a_privilege_has_what_was_seen_of_it(item: str, root: bool, said: str) -> None:  # noqa: FBT001
    """Refusals with errno and number, capabilities with how often; nothing where a recording cannot tell."""
    assert seen_of(item, WHOLE, root=root) == said


def test_what_was_not_seen_is_said_where_all_was_seen() -> None:
    """And a large set of calls is not listed."""
    assert seen_of("network:bridge", QUIET, root=False) == "no socket was opened"
    assert seen_of("seccomp:unconfined", QUIET, root=False) == "no call that it opens was made"
    assert seen_of("cap:NET_RAW", QUIET, root=True) == "CAP_NET_RAW never asked for"
    # Its refusals are noise and left out, so that their absence says nothing.
    assert "never asked for" not in seen_of("cap:SYS_ADMIN", QUIET, root=True)


@pytest.mark.parametrize("change", [{"complete": False}, {"unnamed": ("32-bit 3",)}])
def test_an_incomplete_recording_says_never_of_nothing(change: dict[str, object]) -> None:
    """What was lost, or has no name, may be just that."""
    partial = QUIET.model_copy(update=change)

    for item in ("network:bridge", "seccomp:unconfined", "cap:SYSLOG"):
        assert seen_of(item, partial, root=False) == ""


def test_what_was_seen_in_an_incomplete_recording_was_seen() -> None:
    """A refusal stays one."""
    partial = WHOLE.model_copy(update={"complete": False})

    assert seen_of("seccomp:+mempolicy", partial, root=False) == "mbind refused with EPERM 3 times"


ITEMS = (
    "cap:NET_RAW", "cap:SYSLOG", "cap:SYS_ADMIN", "cap:SYS_NICE", "ipc:host", "network:bridge", "nnp:off",
    "rootfs:rw", "seccomp:+mempolicy", "seccomp:unconfined", "seccomp:/etc/own.json", "user:root",
)  # fmt: skip
UNTOLD = {"cap:SYS_ADMIN", "ipc:host", "nnp:off", "rootfs:rw", "seccomp:/etc/own.json"}


def test_what_was_seen_speaks_for_a_privilege() -> None:
    """Capabilities that were asked for, rules whose calls were made, and root where a capability was used."""
    likely, possible = guesses_of(ITEMS, WHOLE, root=True)

    assert likely == {
        "cap:NET_RAW", "cap:SYS_NICE", "seccomp:+mempolicy", "seccomp:unconfined", "user:root",
    }  # fmt: skip
    assert possible == likely | UNTOLD | {"network:bridge"}


def test_only_what_would_have_been_seen_is_left_out_of_a_guess() -> None:
    """Capabilities without a check, rules without a call, networks without a socket."""
    likely, possible = guesses_of(ITEMS, QUIET, root=True)

    assert likely == frozenset()
    assert possible == UNTOLD | {"user:root"}


def test_for_another_user_a_capability_is_what_it_unlocks() -> None:
    """None is in force, whatever was asked for."""
    likely, possible = guesses_of(("cap:NET_RAW", "cap:SYS_NICE"), WHOLE, root=False)

    assert likely == possible == {"cap:SYS_NICE"}


def test_calls_without_a_name_speak_for_no_filter() -> None:
    """They may be any call."""
    unnamed = QUIET.model_copy(update={"unnamed": ("9999",)})

    assert guesses_of(("seccomp:unconfined",), unnamed, root=False)[0] == {"seccomp:unconfined"}


def test_nothing_recorded_is_no_hint() -> None:
    """Neither are capabilities that a kernel does not tell of."""
    untold = QUIET.model_copy(update={"capabilities": None})

    assert guesses_of(ITEMS, Recording(), root=True) == ()
    assert seen_of("cap:NET_RAW", Recording(), root=True) == ""
    assert guesses_of(("cap:NET_RAW",), untold, root=True)[1] == {"cap:NET_RAW"}
    assert seen_of("cap:NET_RAW", untold, root=True) == ""


NOTHING_USED = Recording(recorded=True, complete=True, capabilities=())
EVERYTHING_USED = Recording(
    recorded=True,
    complete=True,
    calls=("socket", *sorted({call for name in CAPABILITIES for call in unlocked_calls(name)})),
    capabilities=tuple(CheckedCapability(capability=name, granted=9) for name in CAPABILITIES),
)


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize(
    "needed",
    [{"rootfs:rw"}, {"cap:NET_RAW", "user:root"}, {"seccomp:+mempolicy", "network:bridge"}],
)
def test_wrong_evidence_changes_no_answer(needed: set[str], jobs: int) -> None:
    """A recording of another job, or of none: AMD's line comes to the same set, in another number of runs."""
    space = space_of(AMD_RECIPE, (), shm_baseline=2**30)
    runs, found = [], []
    for recording in (Recording(), NOTHING_USED, EVERYTHING_USED):
        asked: list[Members] = []

        def ask(questions: Sequence[Question], asked: list[Members] = asked) -> list[bool]:
            asked += [question.members for question in questions]
            return [needed <= set(_with_rules(question.members)) for question in questions]

        guessed = replace(space, guesses=guesses_of(space.elements, recording, root=True))
        found.append(Search(guessed, ask, Settings(jobs=jobs)).run().minimal)
        runs.append(len(asked))

    assert [set(minimal) for minimal in found] == [needed] * 3
    assert len(set(runs)) > 1


def _with_rules(members: Members) -> set[str]:
    """Return *members* with what the widest of them holds too."""
    wide = {"seccomp:+mempolicy", "seccomp:+pidfd"} if "seccomp:unconfined" in members else set()
    return {*members, *wide}


def test_calls_that_a_capability_unlocks_are_the_catalogues() -> None:
    """One list for both."""
    assert unlocked_calls("SYS_PTRACE") == ("kcmp", "pidfd_getfd", "process_madvise")
    assert "unshare" in unlocked_calls("SYS_ADMIN")
    assert unlocked_calls("CHOWN") == ()
