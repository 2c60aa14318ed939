"""Values of amdgpu's files, with units, and what is no value."""

import pytest

from rocmrun.core.running.gpu_metrics import Throttling
from rocmrun.core.running.sensors import Clock, Temperature, parse_clock, parse_sensors

MI210 = {
    "gpu_busy_percent": "97\n",
    "mem_busy_percent": "41\n",
    "mem_info_vram_used": "60129542144\n",
    "mem_info_vram_total": "68702699520\n",
    "pp_dpm_sclk": "0: 500Mhz\n1: 1200Mhz *\n2: 1700Mhz\n",
    "pp_dpm_mclk": "0: 400Mhz\n1: 1600Mhz *\n",
    "current_link_speed": "16.0 GT/s PCIe\n",
    "max_link_speed": "16.0 GT/s PCIe\n",
    "current_link_width": "16\n",
    "max_link_width": "16\n",
}
HWMON = {
    "power1_average": "210000000\n",
    "power1_cap": "300000000\n",
    "temp1_input": "45000\n",
    "temp1_label": "edge\n",
    "temp2_input": "61500\n",
    "temp2_label": "junction\n",
    "temp2_crit": "100000\n",
    "temp3_input": "broken\n",
}


def test_every_value_has_its_unit() -> None:
    """Microwatts, millidegrees and bytes become watts, degrees and bytes."""
    found = parse_sensors(MI210, HWMON, Throttling(now=()), {})

    assert (found.busy_percent, found.memory_busy_percent) == (97, 41)
    assert (found.vram_used, found.vram_total) == (60129542144, 68702699520)
    assert found.core_clock == Clock(now=1200, highest=1700)
    assert found.memory_clock == Clock(now=1600, highest=1600)
    assert (found.power_watts, found.power_cap_watts) == (210, 300)
    assert found.temperatures == (
        Temperature(label="edge", celsius=45),
        Temperature(label="junction", celsius=61, critical=100),
    )
    assert (found.link_width, found.link_speed) == (16, "16.0 GT/s PCIe")


def test_newer_drivers_have_the_power_of_the_moment() -> None:
    """power1_input stands in for power1_average; a sensor without a label has its file's name."""
    found = parse_sensors({}, {"power1_input": "4000000", "temp1_input": "30000"}, Throttling(), {})

    assert found.power_watts == 4
    assert [each.label for each in found.temperatures] == ["temp1"]


def test_what_is_not_there_is_none() -> None:
    """No zero stands for "not known"."""
    found = parse_sensors({"current_link_speed": "Unknown\n", "gpu_busy_percent": "255"}, {}, Throttling(), {"x": "y"})  # fmt: skip

    assert (found.busy_percent, found.vram_used, found.core_clock) == (None, None, None)
    assert (found.power_watts, found.temperatures, found.link_speed) == (None, (), None)
    assert found.unread == {"x": "y"}


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("S: 19Mhz *\n0: 615Mhz\n1: 2581Mhz\n", Clock(now=19, highest=2581)),
        ("0: 500Mhz\n1: 2100Mhz\n", Clock(now=None, highest=2100)),
        ("\n", None),
        ("", None),
    ],
)
def test_the_star_marks_the_clock_of_now(text: str, clock: Clock | None) -> None:
    """S is deep sleep; some GPUs mark none."""
    assert parse_clock(text) == clock
