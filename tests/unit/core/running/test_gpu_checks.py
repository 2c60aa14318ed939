"""What is said of a GPU: unknown with its reason, well, or what is wrong with it."""

from dataclasses import replace

import pytest

from rocmrun.core.running.checks import container_checks
from rocmrun.core.running.gpu_metrics import Throttling
from rocmrun.core.running.sensors import Clock, GpuSensors, Temperature
from tests.builders import GIB, gpu
from tests.unit.core.running.observations import check, seen, sensors, with_sensors


def test_a_gpu_that_works_well() -> None:
    """Every check is ok, with numbers."""
    found = {
        each.id: each
        for each in container_checks(seen(first=sensors(busy_percent=91), last=sensors()))
    }

    assert {each.result for each in found.values()} == {"ok"}
    assert found["gpu-busy"].evidence.startswith("GPU 0: busy 91 to 97 % in 2 samples")
    assert found["gpu-memory"].evidence == "GPU 0: 150 GiB of 192 GiB used"
    assert found["gpu-clock"].evidence == "GPU 0: 2050 MHz of 2100 MHz, memory 1300 of 1300 MHz"
    assert found["gpu-power"].evidence == "GPU 0: 600 W of 750 W, junction 70 °C"
    assert found["gpu-link"].evidence == "GPU 0: 16 lanes at 32.0 GT/s PCIe"
    assert found["gpu-sharing"].evidence == "GPU 0: nobody else has memory or a queue on it"


def test_samples_give_a_range_and_a_mean() -> None:
    """Whatever changed between them."""
    found = check(seen(first=sensors(busy_percent=79), last=sensors()), "gpu-busy")

    assert found.evidence == "GPU 0: busy 79 to 97 % in 2 samples, 88 % on average, memory busy 40 %"  # fmt: skip


def test_a_gpu_without_memory_load_is_as_busy() -> None:
    """Some have no mem_busy_percent."""
    found = check(with_sensors(memory_busy_percent=None), "gpu-busy")

    assert found.evidence == "GPU 0: busy 97 % in 2 samples"


def test_a_partition_has_the_sensors_of_its_gpu() -> None:
    """So it is said."""
    named = replace(seen(), gpus=(gpu(0, partition=3, compute_partition="CPX"),))
    unnamed = replace(seen(), gpus=(gpu(0, partition=0),))

    assert "of which this is partition 3 in CPX" in check(named, "gpu-busy").evidence
    assert "partition 0 in a mode that is not known" in check(unnamed, "gpu-busy").evidence


@pytest.mark.parametrize(
    ("check_id", "name"),
    [
        ("gpu-busy", "gpu_busy_percent"),
        ("gpu-memory", "mem_info_vram_used"),
        ("gpu-clock", "pp_dpm_sclk"),
        ("gpu-throttling", "gpu_metrics"),
        ("gpu-link", "current_link_width"),
    ],
)
def test_what_cannot_be_read_is_unknown_with_its_reason(check_id: str, name: str) -> None:
    """By its file."""
    found = check(seen(last=GpuSensors(unread={name: "no such file"})), check_id)

    assert (found.result, found.evidence) == ("unknown", f"GPU 0: {name}: no such file")


def test_neither_power_nor_heat_is_unknown() -> None:
    """A virtual function may have no hwmon at all."""
    assert check(seen(last=GpuSensors()), "gpu-power").result == "unknown"


def test_a_clock_that_is_held_down_under_load() -> None:
    """Low while it works: held. Low while it idles: as it should be."""
    slow = {"core_clock": Clock(now=132, highest=2100), "memory_clock": None}
    held = check(with_sensors(**slow), "gpu-clock")

    assert held.result == "warn"
    assert held.evidence == "GPU 0: clock held at 132 MHz of 2100 MHz while 97 % busy"
    assert held.hint == "cat /sys/class/drm/renderD128/device/power_dpm_force_performance_level"
    assert check(with_sensors(**slow, busy_percent=2), "gpu-clock").result == "ok"
    assert check(with_sensors(**slow, busy_percent=None), "gpu-clock").result == "ok"


def test_memory_that_is_all_used() -> None:
    """An APU has main memory beside it."""
    full = with_sensors(vram_used=192 * GIB - 1)
    apu = replace(full, gpus=(gpu(0, apu=True),))

    assert (check(full, "gpu-memory").result, check(full, "gpu-memory").kind) == ("warn", "oom-vram")  # fmt: skip
    assert check(apu, "gpu-memory").result == "ok"


def counted(cycles: int, power: int = 0, hot: int = 0) -> Throttling:
    return Throttling(cycles=cycles, residencies={"power limit": power, "socket too hot": hot})


@pytest.mark.parametrize(
    ("first", "last", "result", "evidence"),
    [
        (Throttling(now=()), Throttling(now=("too hot",)), "warn", "throttled in 1 of 2 samples: too hot"),
        (Throttling(now=()), Throttling(now=()), "ok", "not throttled in 2 samples"),
        (Throttling(now=("power limit",)), Throttling(now=("power limit",)), "ok", "throttled in 2 of 2 samples: power limit, as full load brings it"),
        (counted(0), counted(100, hot=12), "warn", "throttled for part of the time: socket too hot 12 %"),
        (counted(0), counted(100, power=60), "ok", "throttled for part of the time: power limit 60 %, as full load brings it"),
        (counted(0), counted(100), "ok", "not throttled"),
        (counted(5), counted(5), "unknown", "the firmware's counters did not move between the samples"),
        (Throttling(problem="not told"), Throttling(problem="not told"), "unknown", "not told"),
    ],
)  # fmt: skip
def test_throttling_names_its_reasons(
    first: Throttling, last: Throttling, result: str, evidence: str
) -> None:
    """A power limit belongs to full load; heat does not."""
    found = check(seen(first=sensors(throttling=first), last=sensors(throttling=last)), "gpu-throttling")  # fmt: skip

    assert (found.result, found.evidence) == (result, f"GPU 0: {evidence}")


def test_a_sensor_at_its_limit() -> None:
    """The hottest reading of each sensor counts."""
    cool = (Temperature(label="mem", celsius=60, critical=95), Temperature(label="edge", celsius=50))  # fmt: skip
    hot = (Temperature(label="mem", celsius=95, critical=95),)
    found = check(seen(first=sensors(temperatures=hot), last=sensors(temperatures=cool, power_cap_watts=None)), "gpu-power")  # fmt: skip

    assert found.result == "warn"
    assert found.evidence == "GPU 0: 600 W, mem 95 °C, edge 50 °C; mem is at its limit of 95 °C"


@pytest.mark.parametrize(
    ("changes", "result", "evidence"),
    [
        ({"link_width": 8}, "warn", "8 lanes at 32.0 GT/s PCIe, of 16"),
        ({"link_speed": "8.0 GT/s PCIe"}, "warn", "16 lanes at 8.0 GT/s PCIe, of 32.0 GT/s PCIe, under load"),
        ({"link_speed": "2.5 GT/s PCIe", "busy_percent": 0}, "ok", "16 lanes at 2.5 GT/s PCIe"),
        ({"link_speed": None}, "ok", "16 lanes at a speed that is not known"),
    ],
)  # fmt: skip
def test_a_link_below_its_best(changes: dict[str, object], result: str, evidence: str) -> None:
    """An idle link may be slow; a narrow one never becomes wider."""
    found = check(with_sensors(**changes), "gpu-link")

    assert (found.result, found.evidence) == (result, f"GPU 0: {evidence}")


def test_others_on_the_same_gpu() -> None:
    """Named as the use-case found them."""
    shared = check(seen(others={128: ("process 12", "process 90 in container llama")}), "gpu-sharing")  # fmt: skip
    hidden = check(seen(kfd_listed=False), "gpu-sharing")

    assert (shared.result, shared.kind) == ("warn", "gpu-busy")
    assert shared.evidence == "GPU 0: process 12, process 90 in container llama use it as well"
    assert hidden.result == "unknown"


def test_gpus_of_which_the_same_is_said_stand_together() -> None:
    """Sixty-four partitions are no sixty-four rows; another result is another row."""
    found = [
        each
        for each in container_checks(seen(gpus=3, last=[sensors(), sensors(), sensors(link_width=4)]))
        if each.id == "gpu-link"
    ]  # fmt: skip

    assert [(each.result, each.evidence) for each in found] == [
        ("ok", "GPU 0, 1: 16 lanes at 32.0 GT/s PCIe"),
        ("warn", "GPU 2: 4 lanes at 32.0 GT/s PCIe, of 16"),
    ]
