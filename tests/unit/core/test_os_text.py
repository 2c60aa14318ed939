"""Small files of an operating system."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.os_text import count_cpus, cpu_numbers, parse_mem_total, parse_os_release


def test_os_release_quotes_are_removed() -> None:
    """As a shell would read the file."""
    text = '# note\nID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME=\'A "B" C\'\nESCAPED="5 \\$"\n\nbroken\n'

    values = parse_os_release(text)

    expected = {
        "ID": "ubuntu",
        "VERSION_ID": "24.04",
        "PRETTY_NAME": 'A "B" C',
        "ESCAPED": "5 $",
    }
    assert values == expected


def test_memory_is_in_bytes() -> None:
    """The kernel's kB are KiB."""
    assert parse_mem_total("MemTotal:        2048 kB\nMemFree: 1 kB\n") == 2048 * 1024
    assert parse_mem_total("MemFree: 1 kB\n") is None


@pytest.mark.parametrize(
    ("cpus", "count"),
    [("0-15,32-47", 32), ("0", 1), ("0,2,4", 3), ("", None), ("a-b", None), (None, None)],
)
def test_cpu_lists_are_counted(cpus: str | None, count: int | None) -> None:
    """Ranges include both ends."""
    assert count_cpus(cpus) == count


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0-3,8", {0, 1, 2, 3, 8}),
        ("", set()),
        ("x,2", {2}),
        ("5", {5}),
        ("0-99999999999999999999", set(range(2**16 + 1))),
    ],
)
def test_the_kernels_lists_of_cpus(text: str, numbers: set[int]) -> None:
    """What is none is left out, and a broken list costs no memory."""
    assert cpu_numbers(text) == numbers


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    """Garbage gives nothing or something, never an exception."""
    assert isinstance(parse_os_release(text), dict)
    assert isinstance(parse_mem_total(text), int | None)
    assert isinstance(count_cpus(text), int | None)
    assert isinstance(cpu_numbers(text), frozenset)
