"""Lines of the kernel's trace: a recorded container, names that lie, and more than is kept."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from rocmrun.core.recording import (
    OF_ITS_NAMESPACE,
    OF_MEMORY,
    OF_THE_MOUNTER,
    CheckedCapability,
    Recording,
    RefusedCall,
    recording_of,
)
from rocmrun.core.system_calls import CallNames, parse_call_names
from rocmrun.core.trace import MOST_FILTER, MOST_KINDS, Trace, entries_but
from rocmrun.system.package_data import read_system_calls

# Docker 20.10.24, runc 1.1.5, kernel 6.18, x86_64: root with NET_RAW runs Python, which asks for a memory policy
# three times, for a raw socket and for another uid, then starts a 32-bit program and /bin/true. Lines of the
# daemons, and calls that were made before, are left out.
RECORDED = Path(__file__).parent / "recorded/trace-docker-20.10.txt"
INIT = 14205


def names(architecture: str = "x86_64") -> CallNames:
    found = parse_call_names(read_system_calls(), architecture)
    assert found is not None
    return found


def line(pid: int, event: str, *, program: str = "job") -> str:
    """Return a line as the kernel writes it."""
    return f"{program:>16}-{pid:<7} [000]  123.456789: {event}"


def started(pid: int) -> list[str]:
    """Return the two lines of a program of the kernel's own kind."""
    return [
        line(pid, f"sched_process_exec: filename=/bin/job pid={pid} old_pid={pid}"),
        line(pid, "sys_execve -> 0x0"),
    ]


def traced(lines: Iterable[str], first: int = 7) -> Trace:
    trace = Trace(names(), tells_programs=True)
    trace.first_process(first)
    trace.feed(lines)
    return trace


def recorded(trace: Trace, *, lost: int = 0) -> Recording:
    return recording_of(trace, names(), held=("NET_RAW",), lost=lost)


@pytest.mark.parametrize("known", ["before", "after", "never"])
def test_a_recorded_container_is_told_from_its_engine(known: str) -> None:
    """Whenever its first process becomes known, and where nobody could say: the same calls, refusals and checks."""
    trace = Trace(names(), tells_programs=True)
    if known == "before":
        trace.first_process(INIT)
    trace.feed(RECORDED.read_text().splitlines())
    if known == "after":
        trace.first_process(INIT)
    if known == "never":
        assert trace.guess_first_process()

    found = recorded(trace)

    assert (found.recorded, found.complete, found.why) == (True, True, "")
    assert found.refused == (
        RefusedCall(call="set_mempolicy", error="EPERM", times=3, program="python3"),
        RefusedCall(call="setuid", error="EPERM", times=1, program="python3"),
    )
    assert found.capabilities == (
        CheckedCapability(capability="NET_RAW", granted=1),
        CheckedCapability(capability="SETUID", refused=1),
    )
    assert found.unnamed == ("32-bit 1", "32-bit 20", "32-bit 199")
    assert {"socket", "setuid", "set_mempolicy", "wait4"} <= found.calls_seen
    # What the runtime did to set the container up, and the daemons', is none of the job's.
    assert found.calls_seen.isdisjoint({"pivot_root", "mount", "setns", "epoll_ctl", "capset"})
    assert set(found.dropped) == {OF_MEMORY, OF_THE_MOUNTER}


def test_what_a_process_did_before_its_first_program_counts_for_all_but_the_first() -> None:
    """A child of the container is the container's from its first instruction on; a thread of the runtime is not."""
    trace = traced(
        [
            line(7, "task_newtask: pid=8 comm=runc clone_flags=3d0f00 oom_score_adj=0"),
            line(8, "sys_enter: NR 101 (0, 0, 0, 0, 0, 0)"),
            line(7, "sys_enter: NR 165 (0, 0, 0, 0, 0, 0)"),
            *started(7),
            line(7, "task_newtask: pid=9 comm=job clone_flags=11 oom_score_adj=0"),
            line(9, "sys_enter: NR 109 (0, 0, 0, 0, 0, 0)"),
            *started(9),
            line(9, "sys_enter: NR 41 (0, 0, 0, 0, 0, 0)"),
        ]
    )

    assert recorded(trace).calls == ("setpgid", "socket")


def test_the_number_of_a_process_may_be_used_again() -> None:
    """A process that the engine starts later, under the number of one of the job's, is the engine's."""
    trace = traced(
        [
            *started(7),
            line(7, "task_newtask: pid=9 comm=job clone_flags=11 oom_score_adj=0"),
            line(4, "task_newtask: pid=9 comm=containerd clone_flags=11 oom_score_adj=0"),
            line(9, "sys_enter: NR 165 (0, 0, 0, 0, 0, 0)"),
        ]
    )

    assert recorded(trace).calls == ()


@pytest.mark.parametrize(
    "program",
    ["-1 [0] 1.0: a: ", "x\ny", "a: sys_exit: NR", "] 1.0: sys_exit", "sys_enter: NR 1"],
)
def test_a_name_cannot_pass_for_an_event(program: str) -> None:
    """15 characters are what a process may choose, line ends among them."""
    text = line(7, "sys_exit: NR 238 = -1", program=program)

    trace = traced([*started(7), *text.split("\n")])

    assert list(Counter(trace.inside.refused).values()) == [1]
    kind = next(iter(trace.inside.refused))
    assert (kind.number, kind.error) == (238, "EPERM")


def test_what_refuses_is_told_by_its_errno() -> None:
    """A file that is not there is no refusal."""
    trace = traced(
        [
            *started(7),
            *(line(7, f"sys_exit: NR 257 = {result}") for result in (-13, -13, -2, 3)),
            line(7, "sys_exit: NR 435 = -38"),
        ]
    )

    assert [(r.call, r.error, r.times) for r in recorded(trace).refused] == [
        ("openat", "EACCES", 2),
        ("clone3", "ENOSYS", 1),
    ]


def test_a_call_without_a_name_keeps_its_number() -> None:
    """A newer kernel's, one of x32, and all calls of a 32-bit program."""
    trace = traced(
        [
            *started(7),
            line(7, "sys_enter: NR 9999 (0, 0, 0, 0, 0, 0)"),
            line(7, f"sys_enter: NR {(1 << 30) + 1} (0, 0, 0, 0, 0, 0)"),
            line(7, "sched_process_exec: filename=/old pid=7 old_pid=7"),
            line(7, "sys_exit: NR 3 = -1"),
        ]
    )

    found = recorded(trace)
    assert found.unnamed == ("9999", "32-bit 3", "x32 1")
    assert found.refused[0].call == "32-bit 3"


@pytest.mark.parametrize(
    "after",
    [
        [],
        started(7),
        [line(4, "task_newtask: pid=7 comm=dockerd clone_flags=11 oom_score_adj=0")],
    ],
)
def test_a_32_bit_program_is_told_even_by_no_call(after: list[str]) -> None:
    """Its numbers may all be those of calls that are asked for no more: while it runs, after it, under a used number."""
    foreign = line(7, "sched_process_exec: filename=/old pid=7 old_pid=7")

    assert recorded(traced([*started(7), foreign, *after])).unnamed == ("32-bit program",)
    assert recorded(traced([*started(7), *after])).unnamed == ()


def test_where_a_kernel_does_not_tell_programs_apart_all_are_its_own_kind() -> None:
    """Nothing says otherwise there."""
    trace = Trace(names(), tells_programs=False)
    trace.first_process(7)
    trace.feed([started(7)[0], line(7, "sys_enter: NR 0 (0, 0, 0, 0, 0, 0)")])

    assert recorded(trace).calls == ("read",)


def test_checks_in_a_namespace_of_the_jobs_own_are_no_privilege_of_it() -> None:
    """Whoever may make a user namespace has every capability in it; the first check of all is the daemons'."""
    own, other = "cred 1, target_ns a, capable_ns a", "cred 2, target_ns b, capable_ns b"
    trace = traced(
        [
            line(4, "cap_capable: cred 0, target_ns a, capable_ns a, cap 21, ret 0"),
            *started(7),
            line(7, f"cap_capable: {other}, cap 21, ret 0"),
            line(7, f"cap_capable: {own}, cap 13, ret 0"),
        ]
    )

    found = recorded(trace)
    assert found.capabilities == (CheckedCapability(capability="NET_RAW", granted=1),)
    assert found.dropped == {OF_ITS_NAMESPACE: 1}


def test_a_kernel_without_the_event_says_nothing_of_capabilities() -> None:
    """That is not the same as none."""
    found = recording_of(traced(started(7)), names(), held=(), tells_capabilities=False)

    assert found.capabilities is None


def test_what_is_missing_is_said() -> None:
    """Events without room, a start that nobody saw, and more than is kept."""
    whole, unseen = traced(started(7)), traced([])
    many = traced(
        [*started(7), *(line(7, f"sys_enter: NR {n} (0, 0)") for n in range(MOST_KINDS + 1))]
    )

    assert recorded(whole, lost=3).why == "the kernel had no room for 3 events"
    assert not recorded(whole, lost=3).complete
    assert recorded(whole, lost=3).recorded
    assert recorded(unseen).why.startswith("the container's start was not seen")
    assert not recorded(unseen).recorded
    assert recorded(unseen, lost=3).why.endswith("3 events, the container's start among them")
    assert recorded(many).why.startswith("more processes, or kinds of events")


def test_two_containers_that_start_at_once_are_not_guessed_at() -> None:
    """Nothing is better than another's calls."""
    trace = Trace(names(), tells_programs=True)
    for pid in (7, 8):
        trace.feed([line(pid, "sys_enter: NR 155 (0, 0, 0, 0, 0, 0)"), *started(pid)])

    assert not trace.guess_first_process()


def test_calls_that_are_known_are_asked_for_no_more() -> None:
    """As a filter of the kernel, which takes less than a page."""
    assert entries_but(()) == "0"
    assert entries_but({3, 1}) == "id != 1 && id != 3"
    long = entries_but(range(10_000))
    assert MOST_FILTER - 20 < len(long) <= MOST_FILTER
    assert long.endswith(f" && id != {long.count('&&')}")


def test_numbers_are_those_of_the_architecture() -> None:
    """From the kernel's own headers; another architecture has no table."""
    assert names().numbers["mbind"] == 237
    assert names("aarch64").numbers["mbind"] == 235
    assert "open" not in names("aarch64").numbers
    assert parse_call_names(read_system_calls(), "riscv64") is None
