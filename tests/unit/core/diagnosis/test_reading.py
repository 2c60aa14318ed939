"""What a text says: listings of device nodes, and whose words they are."""

import pytest

from rocmrun.core.diagnosis.reading import read_text
from tests.unit.core.diagnosis.catalogue import found_in, names


@pytest.mark.parametrize(
    "date", ["", "Nov 30 10:00 ", "Nov 30  2025 ", "2025-11-30 10:00 ", "30. Nov 10:00 "]
)
def test_a_date_in_a_listing_is_no_owner(date: str) -> None:
    """`ls -l` prints major and minor, then the date: "235, 0 Nov" is no mode, owner and group."""
    line = f"crw-rw---- 1 root render 235, 0 {date}/dev/kfd"

    nodes = read_text(line).nodes

    assert [(node.owner, node.group, node.mode) for node in nodes] == [("root", "render", 0o660)]


def test_a_listing_with_a_date_points_to_the_missing_group() -> None:
    """And not to a node of root's alone."""
    text = (
        "Unable to open /dev/kfd read-write: Permission denied\n"
        "crw-rw---- 1 root render 235, 0 Nov 30 10:00 /dev/kfd\n"
        "uid=1000(a) gid=1000(a) groups=1000(a),44(video)\n"
    )

    assert names(found_in(text))[0] == "render-gid-mismatch"


def test_what_a_launch_concluded_is_no_evidence() -> None:
    """The same log is read the same with and without the hint that a launch put below it."""
    log = "OSError: [Errno 30] Read-only file system: '/app/state'\n"
    concluded = "hint: likely cause: The image's file system is read-only: rocmrun explain readonly-rootfs\n"

    assert read_text(concluded).log.lines == ()
    assert names(found_in(log + concluded)) == names(found_in(log))
    assert [f.points for f in found_in(log + concluded)] == [f.points for f in found_in(log)]
