"""A filter read, made smaller and written again, without losing a condition or an errno on the way."""

from typing import Any

import pytest

from rocmrun.core.seccomp_filter import FilterRule, SeccompFilter, Surface, parse_filter

ALLOW, ERRNO = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"
PLAIN = Surface(capabilities=frozenset(), architecture="amd64", kernel="6.8.0-45-generic")
FLAGS = {"index": 0, "value": 2114060288, "op": "SCMP_CMP_MASKED_EQ"}
# As an engine hands it to its runtime: nothing left to decide.
RESOLVED: dict[str, Any] = {
    "defaultAction": ERRNO,
    "defaultErrnoRet": 1,
    "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
    "syscalls": [
        {"names": ["read", "io_setup", "io_submit"], "action": ALLOW},
        {"names": ["clone"], "action": ALLOW, "args": [FLAGS]},
        {"names": ["clone3"], "action": ERRNO, "errnoRet": 38},
    ],
}
# As people write it.
DOCKER: dict[str, Any] = {
    "defaultAction": ERRNO,
    "archMap": [
        {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]},
        {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]},
    ],
    "syscalls": [
        {"names": ["read"], "action": ALLOW, "comment": "always", "includes": {}, "excludes": {}, "args": []},
        {"name": "write", "action": ALLOW},
        {"names": ["ptrace"], "action": ALLOW, "includes": {"minKernel": "4.8"}},
        {"names": ["modify_ldt"], "action": ALLOW, "includes": {"arches": ["amd64", "x32"]}},
        {"names": ["mbind"], "action": ALLOW, "includes": {"caps": ["CAP_SYS_NICE"]}},
        {"names": ["mbind"], "action": ERRNO, "errno": "EPERM", "excludes": {"caps": ["CAP_SYS_NICE"]}},
        {"names": ["clone"], "action": ALLOW, "args": [FLAGS], "excludes": {"caps": ["CAP_SYS_ADMIN"], "arches": ["s390x"]}},
        {"names": ["old"], "action": ALLOW, "excludes": {"minKernel": "5.0"}},
    ],
}  # fmt: skip


def test_what_an_engine_resolved_comes_out_as_it_went_in() -> None:
    """Every argument, errno and architecture."""
    assert parse_filter(RESOLVED, PLAIN).to_json() == RESOLVED


def test_conditions_are_decided_for_the_container() -> None:
    """Capabilities, architecture and kernel; what is left has no condition, and its order."""
    found = parse_filter(DOCKER, PLAIN)

    assert found.architectures == ("SCMP_ARCH_X86_64", "SCMP_ARCH_X86")
    assert found.calls == {"read", "write", "ptrace", "modify_ldt", "clone"}
    assert [rule.names for rule in found.rules if not rule.lets_run] == [("mbind",)]
    assert found.rules[-2] == FilterRule(names=("mbind",), action=ERRNO, errno=1)
    assert found.rules[-1] == FilterRule(names=("clone",), action=ALLOW, args=(FLAGS,))


def test_another_container_gets_another_filter() -> None:
    """SYS_NICE in the bounding set, arm64, an old kernel."""
    other = Surface(
        capabilities=frozenset({"SYS_NICE", "SYS_ADMIN"}), architecture="arm64", kernel="4.4.0"
    )

    found = parse_filter(DOCKER, other)

    assert found.architectures == ("SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM")
    assert found.calls == {"read", "write", "mbind", "old"}


def test_subtracting_takes_names_from_what_is_allowed_and_from_nothing_else() -> None:
    """clone3 stays refused with ENOSYS, which glibc falls back on; arguments stay; an empty rule goes."""
    found = parse_filter(RESOLVED, PLAIN).without(
        ["io_setup", "io_submit", "clone3", "mbind"], ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]
    )

    assert found.to_json() == {
        **RESOLVED,
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": [{"names": ["read"], "action": ALLOW}, *RESOLVED["syscalls"][1:]],
    }
    assert found.without(["clone"]).calls == {"read"}
    assert [rule.names for rule in found.without(["clone"]).rules] == [("read",), ("clone3",)]


def test_a_rule_can_be_added_once() -> None:
    """A call that is allowed under a condition becomes free, one that was refused is refused no more."""
    base = parse_filter(DOCKER, PLAIN)

    found = base.also(["mbind", "read"])

    assert found.rules[-1] == FilterRule(names=("mbind",), action=ALLOW)
    assert all(rule.lets_run for rule in found.rules)
    assert found.also(["mbind"]) == found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"newKey": 1}, "newKey"),
        ({"listenerPath": "/run/agent"}, "listenerPath"),
        ({"defaultErrnoRet": None, "defaultErrno": "EWHAT"}, "EWHAT"),
        ({"archMap": ["SCMP_ARCH_X86"]}, "an architecture is not a JSON object"),
        ({"syscalls": [{"names": "read", "action": ALLOW}]}, "names is not a list"),
        ({"syscalls": {}, "archMap": "x"}, "archMap is not a list"),
        ({"syscalls": "all"}, "syscalls is not a list"),
        ({"syscalls": ["read"]}, "a rule is not a JSON object"),
        ({"syscalls": [{"names": ["a"], "action": ALLOW, "unless": 1}]}, "unless"),
        ({"syscalls": [{"names": ["a"], "action": "SCMP_ACT_NOTIFY"}]}, "SCMP_ACT_NOTIFY"),
        ({"syscalls": [{"names": ["a"], "action": ALLOW, "includes": {"moon": "full"}}]}, "moon"),
        ({"syscalls": [{"names": ["a"], "action": ALLOW, "args": [{"mask": 1}]}]}, "mask"),
        ({"syscalls": [{"names": ["a"], "action": ALLOW, "includes": {"minKernel": "new"}}]}, "no release"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused(changes: dict[str, Any], said: str) -> None:
    """A word that is passed over could have been the one that matters."""
    with pytest.raises(ValueError, match=said):
        parse_filter({**RESOLVED, **changes}, PLAIN)


def test_a_filter_without_the_optional_words_is_as_short() -> None:
    """An absent errno is the runtime's default, and stays absent."""
    found = SeccompFilter(
        default_action=ERRNO, flags=("SECCOMP_FILTER_FLAG_LOG",),
        rules=(FilterRule(names=("read",), action="SCMP_ACT_LOG"),),
    )  # fmt: skip

    assert found.to_json() == {
        "defaultAction": ERRNO,
        "flags": ["SECCOMP_FILTER_FLAG_LOG"],
        "syscalls": [{"names": ["read"], "action": "SCMP_ACT_LOG"}],
    }
    assert found.calls == {"read"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"defaultErrnoRet": "1"},
        {"defaultErrnoRet": [1]},
        {"defaultErrnoRet": -1},
        {"defaultErrnoRet": True},
        {"defaultErrnoRet": None, "defaultErrno": ["EPERM"]},
        {"flags": 1},
        {"architectures": [1]},
        {"archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": 5}]},
        {"syscalls": [{"names": "read", "action": ALLOW}]},
        {"syscalls": [{"names": [["read"]], "action": ALLOW}]},
        {"syscalls": [{"name": 5, "action": ALLOW}]},
        {"syscalls": [{"names": ["read"], "action": "SCMP_ACT_PERHAPS"}]},
        {"syscalls": [{"names": ["read"]}]},
        {"syscalls": [{"names": ["read"], "action": ERRNO, "errnoRet": 10**30}]},
        {"syscalls": [{"names": ["read"], "action": ERRNO, "errno": {}, "errnoRet": 1.5}]},
        {"syscalls": [{"names": ["read"], "action": ALLOW, "includes": {"caps": [{}]}}]},
        {"syscalls": [{"names": ["read"], "action": ALLOW, "excludes": {"caps": 5}}]},
        {"syscalls": [{"names": ["read"], "action": ALLOW, "excludes": {"arches": "amd64"}}]},
        {"syscalls": [{"names": ["read"], "action": ALLOW, "includes": {"arches": True}}]},
        {"syscalls": [{"names": ["read"], "action": ALLOW, "includes": {"minKernel": ["4.8"]}}]},
    ],
)
def test_values_of_the_wrong_kind_are_said(wrong: dict[str, Any]) -> None:
    """They are neither guessed at nor taken for none: a word that is read letter by letter is another rule."""
    with pytest.raises(ValueError, match=r"seccomp profile|errno|action|release"):
        parse_filter(RESOLVED | wrong, PLAIN)
