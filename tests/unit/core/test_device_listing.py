"""Listings of device nodes, as people paste them."""

from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.device_listing import ListedNode, parse_device_listing


def test_device_lines_are_read_and_others_skipped() -> None:
    """Marks, spaced numbers, paths, and a date whose month is no English word."""
    text = (
        "$ ls -l /dev/kfd /dev/dri\n"
        "total 0\n"
        "drwxr-xr-x   2 root root         80 abr 30 19:53 by-path\n"
        "crw-rw----+  1 root video  226,   0 may  6 09:48 card0\n"
        "crw-rw-rw-. 1 nobody 992 235, 0  9月 20 11:10 /dev/kfd\n"
        "ls: cannot access '/dev/dri': Permission denied\n"
    )

    nodes = parse_device_listing(text)

    assert nodes == (
        ListedNode(
            name="card0", mode=0o660, mark="+", owner="root", group="video", major=226, minor=0
        ),
        ListedNode(
            name="kfd", mode=0o666, mark=".", owner="nobody", group="992", major=235, minor=0
        ),
    )


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    """Random text lists nothing."""
    assert parse_device_listing(text) == ()
