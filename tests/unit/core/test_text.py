"""Text from outside is shown without what a terminal would obey; sizes are exact enough to read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.text import before_port, human_size, one_line, printable, short_digest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("back\x08space\rreturn\x00nul", "backspacereturnnul"),
        ("c1\x9b31m", "c131m"),
        ("\u202eright to left\u202c", "right to left"),
        ("\u2066isolate\u2069", "isolate"),
        ("grüße 你好", "grüße 你好"),
    ],
)
def test_what_a_terminal_would_obey_is_gone(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_long_text_is_cut_and_says_so() -> None:
    assert printable("x" * 10, limit=10) == "x" * 10
    assert printable("x" * 11, limit=10) == "x" * 9 + "…"


@given(st.text())
def test_nothing_that_moves_a_cursor_survives(text: str) -> None:
    shown = printable(text)

    assert not set(shown) & {"\x1b", "\r", "\x08", "\x7f", "\x9b", "\u202e"}
    assert printable(shown) == shown
    assert len(shown) <= 2000


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 20, "1 MiB"),
        (9 << 30, "9 GiB"), ((1 << 30) - 1, "1024 MiB"), (int(1.5 * (1 << 30)), "1.5 GiB"),
    ],
)  # fmt: skip
def test_sizes_for_people(size: int, expected: str) -> None:
    assert human_size(size) == expected


def test_a_digest_is_shown_by_what_people_compare() -> None:
    assert short_digest("sha256:" + "ab" * 32) == "abababababab"
    assert short_digest("unlocked") == "unlocked"


def test_a_name_stays_on_its_line() -> None:
    """A line end in it would begin a line that looks like one of ours."""
    assert one_line("a\nstate  ok\t\r\x1b[31m b\u2028c") == "a state ok b c"
    assert one_line("x" * 300) == "x" * 199 + "…"


@pytest.mark.parametrize(
    ("address", "expected"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("", "")]
)
def test_an_address_before_a_port(address: str, expected: str) -> None:
    """The colons of version 6 would be taken for the port's."""
    assert before_port(address) == expected


def test_a_title_that_nobody_ended_hides_no_other_line() -> None:
    """A log is cut anywhere; what a terminal would wait for is on this line."""
    assert printable("\x1b]0;title\nerror: x\n\x1b]0;t\x07y") == "\nerror: x\ny"
