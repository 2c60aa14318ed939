"""Rows of what was measured: the least, the mean and the most."""

from dataclasses import replace

from rocmrun.core.running.measured import Measured, measured
from rocmrun.core.running.observation import Spread
from rocmrun.core.running.sensors import GpuSensors
from tests.unit.core.running.observations import seen, sensors, use


def row(found: tuple[Measured, ...], name: str) -> Measured:
    (one,) = [each for each in found if each.name == name]
    return one


def test_rates_are_between_samples_and_readings_in_them() -> None:
    """A third sample gives a second rate."""
    two = seen(
        first=sensors(busy_percent=90),
        last=sensors(busy_percent=100),
        uses=(use(), use(cpu_seconds=20.0, periods=200, throttled=50)),
    )
    third = replace(two.last, at=20.0, cgroup=use(cpu_seconds=50.0, periods=300, throttled=50))
    found = measured(replace(two, samples=(*two.samples, third)))

    assert row(found, "CPUs used").spread == Spread(least=1, mean=2, most=3)
    assert row(found, "periods throttled").spread == Spread(least=0, mean=25, most=50)
    assert row(found, "memory").spread == Spread(least=1024, mean=1024, most=1024)
    busy = row(found, "busy")
    assert (busy.unit, busy.gpu) == ("%", 0)
    assert (busy.spread.least, round(busy.spread.mean), busy.spread.most) == (90, 97, 100)
    assert row(found, "clock").spread.most == 2050
    assert row(found, "VRAM used").spread.most == 150 * 1024
    assert row(found, "hottest sensor").spread.most == 70


def test_what_was_never_read_has_no_row() -> None:
    """Nor has a quota whose periods did not begin."""
    nothing = use(cpu_seconds=None, periods=None, throttled=None, memory_bytes=None)
    assert measured(seen(last=GpuSensors(), uses=(nothing, nothing))) == ()
    still = measured(seen(uses=(use(), use())))
    assert "periods throttled" not in {each.name for each in still}
