"""Samples of a watch of any length: bounded, and evenly spread over it."""

from dataclasses import replace

import pytest

from rocmrun.core.running.observation import MOST_SAMPLES, Observation
from tests.unit.core.running.observations import seen


def after(count: int, most: int) -> Observation:
    """Return what is kept of *count* samples, a second apart."""
    one = seen()
    watched = replace(one, samples=())
    for at in range(count):
        watched = watched.with_sample(replace(one.last, at=float(at)), most)
    return watched


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 10, 16, 17, 100, 1001, 4096, 4097])
def test_what_is_kept_lies_evenly_between_the_first_and_the_last(count: int) -> None:
    """At most so many, and at least half of that once there were more; the last is always the newest."""
    watched = after(count, 8)

    *even, last = (int(sample.at) for sample in watched.samples)
    assert last == count - 1
    assert even == list(range(0, count - 1, watched.every))
    assert min(count, 8 // 2) <= len(watched.samples) <= 8
    assert (watched.taken, watched.seconds) == (count, count - 1)


def test_a_short_watch_keeps_every_sample() -> None:
    """Nothing is thinned before there is need."""
    watched = after(MOST_SAMPLES, MOST_SAMPLES)

    assert (len(watched.samples), watched.every) == (MOST_SAMPLES, 1)


def test_a_long_watch_counts_from_the_first_to_the_last() -> None:
    """Counters of the control group and of processes lose nothing by what is left out between."""
    one = seen()
    watched = replace(one, samples=())
    for at in range(500):
        use = replace(one.last.cgroup, cpu_seconds=float(3 * at))
        watched = watched.with_sample(replace(one.last, at=float(at), cgroup=use), 16)

    assert len(watched.samples) <= 16
    assert watched.cpus == 3
