"""How much memory is swept, and what happens when there is less of it than was said."""

from types import SimpleNamespace
from typing import Any

import pytest

from rocmrun.probe.parts.checks import Check, Reporter
from rocmrun.probe.parts.memory import CHUNK_BYTES, chunks_of, fitting_rows, sweep_bytes

GIB = 1 << 30


def a_check() -> Check:
    return Check(Reporter(-1), "device", "memory_pattern", quiet=True)


def a_torch(free: int, *, integrated: bool = False) -> Any:
    cuda = SimpleNamespace(
        empty_cache=lambda: None,
        mem_get_info=lambda: (free, 200 * GIB),
        get_device_properties=lambda _index: SimpleNamespace(is_integrated=int(integrated)),
    )
    return SimpleNamespace(cuda=cuda)


@pytest.mark.parametrize(
    ("level", "free", "swept"),
    [
        ("standard", 100 * GIB, 25 * GIB),
        ("full", 100 * GIB, 90 * GIB),
        ("full", 4 * GIB, 3 * GIB),  # 1 GiB stays, whatever the share
        ("standard", GIB + GIB // 4, GIB // 4),
    ],
)
def test_a_share_of_what_is_free_is_swept(level: str, free: int, swept: int) -> None:
    check = a_check()

    assert sweep_bytes(check, a_torch(free), "cuda:0", {"level": level}) == swept
    assert check.status == "pass"


def test_where_less_than_a_gib_is_free_nothing_is_swept() -> None:
    check = a_check()

    assert sweep_bytes(check, a_torch(GIB), "cuda:0", {"level": "full"}) == 0
    assert (check.status, check.reason) == (
        "skipped",
        "1073741824 bytes are free, and 1 GiB is to stay free",
    )


@pytest.mark.parametrize(("planned", "integrated"), [(True, False), (False, True)])
def test_an_apu_gives_two_gib_at_most(planned: bool, integrated: bool) -> None:  # noqa: FBT001  # cases
    """Known from the plan or from torch: what it calls its memory is the host's."""
    job = {"level": "full", "index": 1, "planned": [{"apu": False}, {"apu": planned}]}

    assert sweep_bytes(a_check(), a_torch(60 * GIB, integrated=integrated), "cuda:0", job) == (
        2 * GIB
    )


def test_memory_that_is_gone_by_then_ends_the_allocation() -> None:
    """Somebody else took it: the sweep goes on with what there is, and says so."""
    given: list[int] = []

    def empty(words: int, **_how: Any) -> list[int]:
        if len(given) == 2:
            message = "HIP out of memory. Tried to allocate 256.00 MiB."
            raise RuntimeError(message)
        given.append(words)
        return [0]

    check = a_check()
    torch: Any = SimpleNamespace(empty=empty, int64="int64")
    chunks = chunks_of(check, torch, "cuda:0", 5 * CHUNK_BYTES)

    assert (len(chunks), given) == (2, [CHUNK_BYTES // 8] * 2)
    assert check.evidence["out_of_memory_after_bytes"] == 2 * CHUNK_BYTES


def test_another_error_of_an_allocation_is_an_error() -> None:
    def empty(_words: int, **_how: Any) -> None:
        message = "HIP error: unspecified launch failure"
        raise RuntimeError(message)

    torch: Any = SimpleNamespace(empty=empty, int64="int64")
    with pytest.raises(RuntimeError, match="launch failure"):
        chunks_of(a_check(), torch, "cuda:0", CHUNK_BYTES)


@pytest.mark.parametrize(
    ("free", "rows", "fits"),
    [
        (100 * GIB, 8192, 8192),
        (4 * GIB, 8192, 4096),
        (GIB // 2, 8192, 2048),
        (0, 8192, 1024),
        (0, 8, 8),
    ],
)
def test_products_are_no_larger_than_the_free_memory(free: int, rows: int, fits: int) -> None:
    """An APU may have half a GiB of its own."""
    assert fitting_rows(a_torch(free), rows) == fits
