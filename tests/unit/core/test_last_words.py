"""What a job's last words mean in its own container."""

import pytest

from rocmrun.core.last_words import pointers, read_only_mount
from rocmrun.core.plan import Plan
from tests.builders import plan, privileges


@pytest.fixture(scope="module")
def planned() -> Plan:
    mounts = [
        {"source": "/srv/models", "target": "/models"},
        {"source": "/srv/out", "target": "/models-out", "mode": "rw"},
    ]
    return plan({"container": {"shm_size": "16MiB"}, "mounts": mounts})


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("sh: 1: cannot create /models/x: Read-only file system", "/models"),
        ("OSError: [Errno 30] Read-only file system: '/models'", "/models"),
        ("touch: cannot touch '/models-out/x': Read-only file system", None),
        ("OSError: [Errno 30] Read-only file system: '/modelsfile'", None),
        ("OSError: [Errno 30] Read-only file system: '/opt/app'", None),
        ("cannot create /models/x: Permission denied", None),
    ],
)
def test_a_mount_is_told_from_the_images_own_tree(
    planned: Plan, line: str, target: str | None
) -> None:
    """By whole names; one that may be written says it for another reason."""
    mount = read_only_mount(f"starting\n{line}\n", planned)

    assert (mount.target if mount else None) == target


def test_a_read_only_mount_is_pointed_to_with_its_source(planned: Plan) -> None:
    """What to write where."""
    (said,) = pointers("cannot create /models/x: Read-only file system", planned)

    assert said == '/models is mounted read-only: mode = "rw" where the profile mounts /srv/models'


@pytest.mark.parametrize(
    "line",
    [
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
        "connect: Network is unreachable",
    ],
)
def test_no_network_is_the_reason_only_where_there_is_none(planned: Plan, line: str) -> None:
    """With one, names fail for reasons of their own."""
    (said,) = pointers(line, planned)

    assert "--network bridge" in said
    assert not list(pointers(line, plan({"container": {"network": "bridge"}})))


def test_refused_placement_counts_as_the_very_last_word_alone(planned: Plan) -> None:
    """Servers print it and go on; with the grant it is another's refusal."""
    line = "set_mempolicy: Operation not permitted"
    granted = plan(privileges("seccomp:+mempolicy"))

    (said,) = pointers(f"starting\n{line}\n", planned)
    assert '"seccomp:+mempolicy"' in said
    assert not list(pointers(f"{line}\nKeyError: 'x'\n", planned))
    assert not list(pointers(line, granted))


def test_what_may_be_full_is_listed_with_its_size(planned: Plan) -> None:
    """All that is small, or the one that the words name."""
    (any_of_them,) = pointers("OSError: [Errno 28] No space left on device", planned)
    (named,) = pointers("[Errno 28] No space left on device: '/dev/shm/part1'", planned)

    assert any_of_them.startswith("what may be full: /dev/shm (16 MiB), /tmp (")
    assert named.startswith("what is full: /dev/shm (16 MiB); ")


def test_a_job_that_failed_on_its_own_is_told_nothing(planned: Plan) -> None:
    """A guess would send people the wrong way."""
    assert not list(pointers("AssertionError: 3 != 4\n", planned))
