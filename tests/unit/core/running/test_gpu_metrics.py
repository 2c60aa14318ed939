"""What gpu_metrics says of throttling, revision by revision, and where it says nothing."""

import pytest

from rocmrun.core.running.gpu_metrics import SOME, parse_gpu_metrics, shares
from tests.unit.core.running.metrics import residencies, table


@pytest.mark.parametrize(
    ("bits", "reasons"),
    [
        (0, ()),
        (1 << 0, ("power limit",)),
        (1 << 22, ("current limit",)),
        (1 << 36, ("too hot",)),
        (1 << 34 | 1 << 38, ("memory too hot", "voltage regulator too hot")),
        (1 << 47, ("processor hot",)),
        (1 << 57, ("another limit",)),
        (1 << 0 | 1 << 2 | 1 << 16, ("power limit", "current limit")),
    ],
)
def test_the_status_that_is_the_same_for_all_gpus_names_its_reasons(
    bits: int, reasons: tuple[str, ...]
) -> None:
    """Revision 1.3, as MI100, MI200 and Navi have it; 2.2 on, as APUs do."""
    assert parse_gpu_metrics(table((1, 3), ("Q", 112, bits))).now == reasons
    assert parse_gpu_metrics(table((2, 2), ("Q", 120, bits))).now == reasons


@pytest.mark.parametrize(
    ("revision", "offset"),
    [((1, 0), 68), ((1, 1), 68), ((1, 2), 68), ((1, 3), 68), ((1, 4), 40), ((1, 5), 104), ((2, 1), 108)],
)  # fmt: skip
def test_a_status_whose_bits_differ_from_gpu_to_gpu_names_none(
    revision: tuple[int, int], offset: int
) -> None:
    """Throttled or not is all that can be told."""
    assert parse_gpu_metrics(table(revision, ("I", offset, 0x40))).now == (SOME,)
    assert parse_gpu_metrics(table(revision, ("I", offset, 0))).now == ()


def test_what_the_firmware_leaves_at_ones_is_not_known() -> None:
    """MI300 has a field for it, and never fills it."""
    unset = parse_gpu_metrics(table((1, 4)))

    assert unset.now is None
    assert unset.problem == "this GPU's firmware does not tell it"
    assert parse_gpu_metrics(residencies((1, 6), 2**32 - 1)).cycles is None


@pytest.mark.parametrize("revision", [(1, 6), (1, 7), (1, 8)])
def test_residencies_become_shares_of_the_time(revision: tuple[int, int]) -> None:
    """MI300 and newer count cycles; counters of 32 bits run over."""
    first = parse_gpu_metrics(residencies(revision, 2**32 - 100, 0, 2**32 - 20, 7, 0, 0))
    last = parse_gpu_metrics(residencies(revision, 100, 0, 30, 7, 20, 0))

    assert shares(first, last) == {
        "processor hot": 0,
        "power limit": 25,
        "socket too hot": 0,
        "voltage regulator too hot": 10,
        "memory too hot": 0,
    }


def test_a_residency_that_the_firmware_does_not_count_is_left_out() -> None:
    """All ones again."""
    first = parse_gpu_metrics(residencies((1, 6), 0, 0))
    last = parse_gpu_metrics(residencies((1, 6), 10, 5))

    assert shares(first, last) == {"processor hot": 50}


def test_shares_need_two_readings_with_time_between_them() -> None:
    """Nothing is made up from one."""
    one = parse_gpu_metrics(residencies((1, 6), 5, 0, 0, 0, 0, 0))

    assert shares(one, one) is None
    assert shares(one, parse_gpu_metrics(b"")) is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "empty"),
        (table((3, 0)), "revision 3.0, which is not known"),
        (table((1, 9), size=64), "revision 1.9"),
        (table((1, 6), size=360), "gpu_metrics 1.6 has 360 bytes, not 1664"),
        (table((1, 3))[:60], "gpu_metrics 1.3 has 60 bytes, not 120"),
    ],
)
def test_a_table_that_is_not_known_to_the_byte_is_not_read(data: bytes, problem: str) -> None:
    """Revision 1.6 was laid out twice: a guess would read another field."""
    found = parse_gpu_metrics(data)

    assert found.now is None
    assert problem in found.problem
