"""Groups of calls, the floor below them, and what a search over them may say."""

import ctypes
import ctypes.util
import itertools

import pytest

from rocmrun.core.oracle import TrialResult
from rocmrun.core.search_space import Finding
from rocmrun.core.seccomp_filter import FilterRule, SeccompFilter
from rocmrun.core.seccomp_groups import FLOOR, GROUPS, RUNTIME_FLOOR, floor, group_of
from rocmrun.core.seccomp_tailored import (
    GroupVerdict,
    group_verdicts,
    groups_in,
    groups_space,
    tailored,
    ungrouped,
)

ALLOW = "SCMP_ACT_ALLOW"
AUDIT_ARCHITECTURES = (0xC000003E, 0x40000003, 0xC00000B7, 0x40000028)  # x86_64, x86, arm64, arm
# libseccomp 2.5 is older than these, or they are of architectures that rocmrun has no images for.
NEWER_OR_ELSEWHERE = {
    "getxattrat", "listmount", "listxattrat", "lsm_get_self_attr", "lsm_list_modules", "lsm_set_self_attr",
    "open_tree_attr", "removexattrat", "rtas", "s390_runtime_instr", "setxattrat", "statmount", "subpage_prot",
    "switch_endian",
}  # fmt: skip


def base(*calls: str, architectures: tuple[str, ...] = ("SCMP_ARCH_X86_64",)) -> SeccompFilter:
    return SeccompFilter(
        default_action="SCMP_ACT_ERRNO",
        architectures=architectures,
        rules=(FilterRule(names=calls, action=ALLOW),),
    )


def test_no_call_is_in_two_groups() -> None:
    """What goes with one group must not be missed by another."""
    for one, other in itertools.combinations(GROUPS, 2):
        assert one.calls & other.calls == set(), f"{one.name} and {other.name}"


def test_the_floor_is_in_no_group() -> None:
    """Where no-new-privileges is off, the runtime's own calls reach into groups: the floor wins there."""
    for group in GROUPS:
        assert group.calls & FLOOR == set(), group.name
    assert {"@setuid", "@chown", "@event-fds"} == {
        group.name for group in GROUPS if group.calls & RUNTIME_FLOOR
    }


def test_every_group_says_what_it_exposes_and_where_it_is_from() -> None:
    """And has a name of its own that looks like systemd's."""
    assert len({group.name for group in GROUPS}) == len(GROUPS)
    for group in GROUPS:
        assert group.name.startswith("@")
        assert group.calls
        assert group.exposes
        assert group.source
        assert 0 < group.severity <= 10


def test_every_call_is_one_that_the_filter_library_knows() -> None:
    """A name with a slip would take nothing away, and say that it did."""
    found = ctypes.util.find_library("seccomp")
    if found is None:
        pytest.skip("this machine has no libseccomp to ask")
    library = ctypes.CDLL(found)
    unknown = -1
    names = sorted(FLOOR.union(RUNTIME_FLOOR, *(group.calls for group in GROUPS)))

    strange = {
        name
        for name in names
        if all(
            library.seccomp_syscall_resolve_name_arch(ctypes.c_uint32(arch), name.encode())
            == unknown
            for arch in AUDIT_ARCHITECTURES
        )
    }

    assert strange <= NEWER_OR_ELSEWHERE


def test_kept_groups_stay_whole_and_the_floor_always() -> None:
    """What no group has stays too, and is named."""
    whole = base("read", "execve", "io_setup", "io_submit", "inotify_init1", "rename", "setuid")

    found = tailored(whole, ["@aio"], floor(no_new_privileges=True))

    assert found.calls == {"read", "execve", "io_setup", "io_submit", "rename"}
    assert ungrouped(whole, FLOOR) == ("rename",)
    assert tailored(whole, [], RUNTIME_FLOOR).calls == {"read", "execve", "rename", "setuid"}


def test_the_floor_survives_a_filter_without_any_group() -> None:
    """Whatever a group may come to name."""
    whole = base(*RUNTIME_FLOOR, *itertools.chain.from_iterable(g.calls for g in GROUPS))

    assert tailored(whole, [], floor(no_new_privileges=True)).calls >= FLOOR
    assert tailored(whole, [], floor(no_new_privileges=False)).calls == RUNTIME_FLOOR


def test_architectures_go_with_their_group() -> None:
    """The native one stays."""
    whole = base("read", architectures=("SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"))

    assert [group.name for group in groups_in(whole, FLOOR)] == ["@32-bit"]
    assert tailored(whole, [], FLOOR).architectures == ("SCMP_ARCH_X86_64",)
    assert tailored(whole, ["@32-bit"], FLOOR) == whole


def test_only_groups_of_the_base_vary_the_mildest_preferred() -> None:
    """A group of which the floor keeps all that there is says nothing."""
    whole = base("io_setup", "inotify_init1", "ptrace", "setuid")

    space = groups_space(whole, RUNTIME_FLOOR)

    assert space.elements == ("@inotify", "@aio", "@debug")
    assert space.asked == {"@inotify", "@aio", "@debug"}


def test_calls_that_were_seen_put_their_groups_first() -> None:
    """They order, and take nothing out."""
    whole = base("io_setup", "inotify_init1", "ptrace")

    space = groups_space(whole, FLOOR, hints=frozenset({"ptrace", "read"}))

    assert space.elements == ("@debug", "@inotify", "@aio")


def test_what_may_be_lost_without_a_word_is_said_of_what_is_removed() -> None:
    """A job that copies between processes falls back to something slower, and ends with 0."""
    whole = base("ptrace", "process_vm_readv", "mlock")
    finding = Finding(status="found", minimal=("@memlock",), proven=("@memlock",))

    kept, removed = group_verdicts(whole, groups_space(whole, FLOOR), finding, {})

    assert kept.warning == ""
    assert removed.warning == "jobs can lose without a word: " + group_of("@debug").wanted_by


def test_verdicts_carry_what_happened_without_the_group() -> None:
    """Kept ones first; a runtime that cannot start without is a need; an unproven one is untested."""
    whole = base("io_setup", "inotify_init1", "ptrace", "mlock")
    finding = Finding(
        status="stopped", minimal=("@inotify", "@aio", "@debug"), proven=("@inotify", "@aio")
    )
    failed = TrialResult(
        verdict="fail", line="inotify_init1: Operation not permitted", error="EPERM"
    )
    dead = TrialResult(verdict="unstartable", reason="cannot start")

    found = group_verdicts(
        whole, groups_space(whole, FLOOR), finding,
        {frozenset({"@aio", "@debug"}): [failed], frozenset({"@inotify", "@debug"}): [dead]},
    )  # fmt: skip

    assert [(v.group, v.verdict, v.evidence) for v in found] == [
        ("@inotify", "required", "inotify_init1: Operation not permitted (EPERM)"),
        ("@aio", "required", "cannot start"),
        ("@debug", "untested", "the search ended before it was left out by itself; the filter that passes has it"),
        ("@memlock", "removed", ""),
    ]  # fmt: skip
    assert found[0] == GroupVerdict(
        group="@inotify", verdict="required", evidence="inotify_init1: Operation not permitted (EPERM)", error="EPERM",
        exposes=group_of("@inotify").exposes, severity=0.8, calls=("inotify_init1",),
    )  # fmt: skip
