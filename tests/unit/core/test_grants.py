"""The grant vocabulary: one spelling for each right, and a way back from a wrong one."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.grants import CAPABILITIES, KINDS, ULIMITS, ParsedGrant, parse_grant


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cap:SYS_PTRACE", ParsedGrant(kind="cap", value="SYS_PTRACE")),
        ("seccomp:unconfined", ParsedGrant(kind="seccomp", value="unconfined")),
        ("seccomp:+mempolicy", ParsedGrant(kind="seccomp", value="+mempolicy")),
        ("seccomp:./rules.json", ParsedGrant(kind="seccomp", value="./rules.json")),
        ("apparmor:unconfined", ParsedGrant(kind="apparmor", value="unconfined")),
        ("label:disable", ParsedGrant(kind="label", value="disable")),
        ("nnp:off", ParsedGrant(kind="nnp", value="off")),
        ("rootfs:rw", ParsedGrant(kind="rootfs", value="rw")),
        ("user:root", ParsedGrant(kind="user", value="root")),
        ("group:0992", ParsedGrant(kind="group", value="992")),
        ("device:/dev/kfd:rw", ParsedGrant(kind="device", value="/dev/kfd", extra="rw")),
        ("ipc:shareable", ParsedGrant(kind="ipc", value="shareable")),
        ("pid:host", ParsedGrant(kind="pid", value="host")),
        ("network:host", ParsedGrant(kind="network", value="host")),
        ("ulimit:memlock=-1", ParsedGrant(kind="ulimit", value="memlock", extra="-1:-1")),
        ("ulimit:nofile=1:2", ParsedGrant(kind="ulimit", value="nofile", extra="1:2")),
        (
            "sysctl:net.core.somaxconn=1=2",
            ParsedGrant(kind="sysctl", value="net.core.somaxconn", extra="1=2"),
        ),
        ("tmpfs-exec:/scratch", ParsedGrant(kind="tmpfs-exec", value="/scratch")),
        ("masks:off", ParsedGrant(kind="masks", value="off")),
    ],
)
def test_every_form_is_taken_apart(text: str, expected: ParsedGrant) -> None:
    assert expected == parse_grant(text)


def test_a_device_path_may_hold_colons() -> None:
    """Paths below /dev/dri/by-path hold the PCI address."""
    grant = parse_grant("device:/dev/dri/by-path/pci-0000:63:00.0-render:rwm")

    assert grant.value == "/dev/dri/by-path/pci-0000:63:00.0-render"
    assert grant.extra == "rwm"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a kind of grant"),
        ("capp:SYS_ADMIN", 'did you mean "cap"?'),
        ("privileged", "the kinds are cap"),
        ("cap", 'write "cap:SYS_PTRACE"'),
        ("cap:", "says nothing"),
        ("cap:CAP_SYS_PTRACE", 'is written "cap:SYS_PTRACE"'),
        ("cap:sys_ptrace", 'is written "cap:SYS_PTRACE"'),
        ("cap:SYS_PTRAC", 'did you mean "SYS_PTRACE"?'),
        ("cap:ALL", "name the ones"),
        ("seccomp:unconfind", 'did you mean "unconfined"?'),
        ("seccomp:+pidf", 'did you mean "+pidfd"?'),
        ("label:off", 'write "label:disable"'),
        ("ipc:private", 'write "ipc:host" or "ipc:shareable"'),
        ("group:render", "in the image"),
        ("group:-1", "not a number"),
        ("group:2147483648", "the highest is 2147483647"),
        ("group:99999999999999999999", "the highest is 2147483647"),
        (f"group:{'9' * 5000}", "the highest is 2147483647"),
        ("group:٣", "not a number"),
        ("device:/dev/kfd", "does not end in permissions"),
        ("device:/etc/shadow:rw", "not a path below /dev"),
        ("device:/dev/../etc/shadow:rw", "not a path below /dev"),
        ("ulimit:memlok=1", 'did you mean "memlock"?'),
        ("ulimit:memlock", "needs a number"),
        ("ulimit:memlock=8MiB", "needs a number"),
        ("ulimit:nofile=2:1", "soft limit above"),
        ("ulimit:nofile=-1:1", "soft limit above"),
        ("sysctl:somaxconn=1", "not a sysctl"),
        ("sysctl:net.core.somaxconn=", "not a sysctl"),
        ("tmpfs-exec:scratch", "not an absolute path"),
        ("tmpfs-exec:/a/../b", "not an absolute path"),
    ],
)
def test_a_wrong_grant_says_what_is_right(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_grant(text)


def test_only_files_of_seccomp_are_files() -> None:
    texts = ("seccomp:unconfined", "seccomp:+pidfd", "seccomp:/etc/x", "seccomp:x.json", "pid:host")

    assert [parse_grant(t).is_seccomp_file for t in texts] == [False, False, True, True, False]


def test_capabilities_are_those_of_the_kernel() -> None:
    """Linux 5.9 and later number them from CHOWN, 0, to CHECKPOINT_RESTORE, 40."""
    assert len(set(CAPABILITIES)) == 41
    assert (CAPABILITIES.index("SYS_ADMIN"), CAPABILITIES.index("BPF")) == (21, 39)


_limits = st.integers(0, 2**63 - 1)
_words = st.from_regex(r"[a-zA-Z0-9_./-]{1,20}", fullmatch=True)
_grants = st.one_of(
    st.sampled_from(CAPABILITIES).map(lambda name: f"cap:{name}"),
    st.sampled_from([
        "seccomp:unconfined", "seccomp:+mempolicy", "seccomp:+pidfd", "apparmor:unconfined", "label:disable",
        "nnp:off", "rootfs:rw", "user:root", "ipc:host", "ipc:shareable", "pid:host", "network:host", "masks:off",
    ]),
    st.integers(0, 2**31 - 1).map(lambda number: f"group:{number}"),
    st.tuples(st.from_regex(r"[a-z0-9:*_-]{1,12}", fullmatch=True), st.sampled_from(["r", "rw", "rwm"])).map(
        lambda parts: f"device:/dev/{parts[0]}:{parts[1]}"
    ),
    st.tuples(st.sampled_from(ULIMITS), _limits).map(lambda parts: f"ulimit:{parts[0]}={parts[1]}"),
    st.tuples(st.sampled_from(ULIMITS), _limits).map(lambda parts: f"ulimit:{parts[0]}=0:{parts[1]}"),
    _words.map(lambda word: f"sysctl:net.core.x={word}"),
    st.from_regex(r"(/[a-z]{1,5}){1,3}", fullmatch=True).map(lambda path: f"tmpfs-exec:{path}"),
    st.from_regex(r"(/[a-z]{1,5}){1,3}", fullmatch=True).map(lambda path: f"seccomp:{path}"),
)  # fmt: skip


@given(_grants)
def test_a_grant_and_its_text_are_one_to_one(text: str) -> None:
    grant = parse_grant(text)

    assert grant == parse_grant(str(grant))
    assert grant.kind in KINDS


@given(st.text(max_size=30))
def test_nothing_but_a_value_error_comes_out(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert str(parse_grant(text)).partition(":")[0] in KINDS
