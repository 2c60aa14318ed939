"""The collectives: what goes in, what must come out, and how busy the links were."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

PATTERN_PERIOD = (
    251  # a prime: data that arrives shifted by a power of two is not what was expected
)
BANDWIDTH_SOURCE = (
    "rccl-tests, doc/PERFORMANCE.md: algbw = S / t, busbw = algbw * factor; t is the slowest rank's"
)
# What one rank is to run, what it then holds, and what it should hold.
Made = tuple[Callable[[], Any], Any, Any]


class Collective(NamedTuple):
    """One collective of torch.distributed.

    Attributes:
        name: As people call it.
        function: What it calls in torch.distributed.
        make: (torch, distributed, rank, world, elements, device) -> what to run, result, expected.
        factor: From algorithm bandwidth to bus bandwidth, by the number of ranks.
    """

    name: str
    function: str
    make: Callable[..., Made]
    factor: Callable[[int], float]


def counted(torch: Any, elements: int, device: str) -> Any:
    """Return 0, 1, 2 … on the device; whole numbers up to 2**24 are exact in fp32, in any order."""
    return torch.arange(elements, dtype=torch.int32, device=device)


def empty_result(torch: Any, elements: int, device: str) -> Any:
    """Return memory that holds no value which could be expected."""
    return torch.full((elements,), -1.0, dtype=torch.float32, device=device)


def made_all_reduce(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets the sum of what all have."""
    pattern = counted(torch, elements, device) % PATTERN_PERIOD
    values = (pattern + rank).to(torch.float32)
    expected = pattern * world + world * (world - 1) // 2
    return (lambda: distributed.all_reduce(values)), values, expected


def made_all_gather(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets what each has, one after the other."""
    share = elements // world
    mine = (counted(torch, share, device) % PATTERN_PERIOD + rank).to(torch.float32)
    index = counted(torch, share * world, device)
    expected = index % share % PATTERN_PERIOD + index // share
    result = empty_result(torch, share * world, device)
    return (lambda: distributed.all_gather_into_tensor(result, mine)), result, expected


def made_reduce_scatter(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets a share of the sum of what all have."""
    share = elements // world
    values = (counted(torch, share * world, device) % PATTERN_PERIOD + rank).to(torch.float32)
    pattern = (counted(torch, share, device) + rank * share) % PATTERN_PERIOD
    expected = pattern * world + world * (world - 1) // 2
    result = empty_result(torch, share, device)
    return (lambda: distributed.reduce_scatter_tensor(result, values)), result, expected


def made_broadcast(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets what the last rank has."""
    root = world - 1
    expected = counted(torch, elements, device) % PATTERN_PERIOD + root
    result = expected.to(torch.float32) if rank == root else empty_result(torch, elements, device)
    return (lambda: distributed.broadcast(result, root)), result, expected


def made_all_to_all(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets a share from each, made for it alone."""
    share = elements // world
    index = counted(torch, share * world, device)
    pattern, other = index % share % PATTERN_PERIOD, index // share
    values = (pattern + other + rank * world).to(torch.float32)
    expected = pattern + other * world + rank
    result = empty_result(torch, share * world, device)
    return (lambda: distributed.all_to_all_single(result, values)), result, expected


def share_of_others(world: int) -> float:
    """Return the part of the data that has to come from other ranks."""
    return (world - 1) / world


COLLECTIVES = (
    Collective("all_reduce", "all_reduce", made_all_reduce, lambda n: 2 * share_of_others(n)),
    Collective("all_gather", "all_gather_into_tensor", made_all_gather, share_of_others),
    Collective("reduce_scatter", "reduce_scatter_tensor", made_reduce_scatter, share_of_others),
    Collective("broadcast", "broadcast", made_broadcast, lambda _: 1.0),
    Collective("all_to_all", "all_to_all_single", made_all_to_all, share_of_others),
)
# Bytes of one message, the larger of what a rank puts in and gets out. `quick` sends what it always
# did: one size shows that the ranks reach each other, more would only show how fast.
MESSAGE_BYTES = {
    "cpu": {
        "quick": (64 << 10,),
        "standard": (64 << 10, 1 << 20),
        "full": (4096, 64 << 10, 1 << 20, 4 << 20),
    },
    "gpu": {
        "quick": (4 << 20,),
        "standard": (64 << 10, 4 << 20, 64 << 20),
        "full": (4096, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20),
    },
}
REPEATS = {"quick": 3, "standard": 5, "full": 20}  # timed runs of one size, after one that is not


def collective_names(level: str) -> list[str]:
    """Return the collectives that a level runs."""
    names = [collective.name for collective in COLLECTIVES]
    return names[:1] if level == "quick" else names


def message_elements(accelerator: str, level: str, world: int, most_bytes: int | None) -> list[int]:
    """Return how many fp32 values each message has: a multiple of the ranks."""
    sizes = MESSAGE_BYTES["cpu" if accelerator == "cpu" else "gpu"][level]
    rounded = [max(1, min(size, most_bytes or size) // 4 // world) * world for size in sizes]
    return list(dict.fromkeys(rounded))


def bandwidth(name: str, world: int, size: int, seconds: float) -> dict[str, Any]:
    """Return one row of the table that rccl-tests prints: bytes, seconds, algbw and busbw in GB/s."""
    (factor,) = (known.factor(world) for known in COLLECTIVES if known.name == name)
    algbw = size / max(seconds, 1e-9) / 1e9
    return {
        "bytes": size,
        "seconds": round(seconds, 7),
        "algbw_gb_per_s": round(algbw, 3),
        "busbw_gb_per_s": round(algbw * factor, 3),
    }
