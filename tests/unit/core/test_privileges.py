"""The catalogue: complete, explained, and ordered so that the milder of two is kept."""

import pytest

from rocmrun.core.exposure.container_rights import DEFAULT_CAPABILITIES
from rocmrun.core.grants import CAPABILITIES, KINDS, parse_grant
from rocmrun.core.privileges import (
    AMD_RECIPE,
    DOCKER_DEFAULTS,
    GROUPS,
    NOT_MONOTONE,
    catalogue,
    narrower_than,
    privilege_of,
    severity_of,
)
from tests.strategies import GRANTS


def test_every_kind_of_grant_is_in_the_catalogue() -> None:
    """Whatever a profile may ask for has an entry."""
    assert set(KINDS) <= {entry.spelling.partition(":")[0] for entry in catalogue()}
    for grant in GRANTS:
        assert privilege_of(grant, root=False).spelling == grant


def test_every_capability_is_there_twice() -> None:
    """In force for root, and in the bounding set for others."""
    names = [entry.spelling for entry in catalogue() if entry.spelling.startswith("cap:")]

    assert sorted([f"cap:{name}" for name in CAPABILITIES] * 2) == sorted(names)


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: f"{entry.spelling} {entry.effect}")
def test_an_entry_says_what_it_exposes_who_wants_it_and_where_that_is_from(entry) -> None:  # type: ignore[no-untyped-def]  # a parameter of pytest
    """Nothing is left blank, and severities stay on their scale."""
    assert entry.exposes
    assert entry.wanted_by
    assert entry.source
    assert entry.group in GROUPS
    assert 0 < entry.severity <= 10


def test_a_capability_weighs_more_in_force() -> None:
    """Never less than in the bounding set alone."""
    for name in CAPABILITIES:
        assert severity_of(f"cap:{name}", root=True) >= severity_of(f"cap:{name}", root=False)


@pytest.mark.parametrize(
    ("wide", "root", "narrow"),
    [
        ("seccomp:unconfined", False, ("seccomp:+mempolicy", "seccomp:+pidfd")),
        ("seccomp:unconfined", True, ("cap:SYS_NICE", "cap:SYS_PTRACE")),
        ("cap:SYS_NICE", False, ("seccomp:+mempolicy",)),
        ("cap:SYS_NICE", True, ()),
        ("cap:IPC_LOCK", True, ("ulimit:memlock=-1",)),
        ("network:host", False, ("network:bridge",)),
        ("device:/dev/kfd:rwm", False, ("device:/dev/kfd:rw",)),
        ("device:/dev/kfd:rw", False, ()),
        ("rootfs:rw", False, ()),
    ],
)
def test_what_is_narrower(wide: str, *, root: bool, narrow: tuple[str, ...]) -> None:
    """For root a rule is a capability in force, so that one is offered."""
    assert narrow == narrower_than(wide, root=root)
    assert all(severity_of(one, root=root) <= severity_of(wide, root=root) for one in narrow)


def test_a_larger_shm_is_less_welcome() -> None:
    """Sizes rank among themselves."""
    assert severity_of("shm:1024", root=False) < severity_of("shm:2048", root=False)


def test_amds_line_is_made_of_grants() -> None:
    """With Docker's default capabilities, which it drops none of."""
    assert set(DOCKER_DEFAULTS) == DEFAULT_CAPABILITIES
    words = [item for item in AMD_RECIPE if item != "network:bridge"]
    assert words == [str(parse_grant(item)) for item in words]


def test_pairs_name_what_the_catalogue_has() -> None:
    """Both ends of each."""
    for harm, cure, why in NOT_MONOTONE:
        assert privilege_of(harm, root=True).spelling == harm
        assert privilege_of(cure, root=True).spelling == cure
        assert why


def test_what_is_no_privilege_is_refused() -> None:
    """A mount is not searched."""
    with pytest.raises(ValueError, match="not a privilege"):
        privilege_of("mount:/models:ro", root=False)
