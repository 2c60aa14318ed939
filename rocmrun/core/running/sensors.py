"""What amdgpu's files in sysfs say of a GPU at one moment. Reads nothing itself.

The files and their units: the DOC comments of the kernel's drivers/gpu/drm/amd/pm/amdgpu_pm.c
(busy percent, pp_dpm_*, hwmon) and amdgpu_vram_mgr.c (mem_info_vram_*).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rocmrun.core.os_text import number
from rocmrun.core.running.gpu_metrics import Throttling

_LEVEL = re.compile(r"^\s*\w+:\s*(\d{1,6})\s*mhz\s*(\*?)", re.IGNORECASE | re.MULTILINE)
_MICRO, _MILLI = 1_000_000, 1000
PERCENT_FILES = ("gpu_busy_percent", "mem_busy_percent")
FILES = (
    *PERCENT_FILES,
    "mem_info_vram_used",
    "mem_info_vram_total",
    "pp_dpm_sclk",
    "pp_dpm_mclk",
    "current_link_speed",
    "max_link_speed",
    "current_link_width",
    "max_link_width",
)
HWMON_FILES = re.compile(r"power1_(?:average|input|cap)|temp\d_(?:input|label|crit)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A clock in MHz: now (None where no level is marked), and the highest of its levels."""

    now: int | None
    highest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Temperature:
    """One sensor in degrees Celsius; *critical* is what the driver calls so."""

    label: str
    celsius: int
    critical: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSensors:
    """A GPU at one moment; None is what could not be read.

    Attributes:
        busy_percent: Of compute and graphics engines.
        memory_busy_percent: Of the memory controller.
        power_watts: Of the socket; on an APU with its processor.
        unread: Why files could not be read: name → reason.
    """

    busy_percent: int | None = None
    memory_busy_percent: int | None = None
    vram_used: int | None = None
    vram_total: int | None = None
    core_clock: Clock | None = None
    memory_clock: Clock | None = None
    power_watts: float | None = None
    power_cap_watts: float | None = None
    temperatures: tuple[Temperature, ...] = ()
    throttling: Throttling = field(default_factory=Throttling)
    link_width: int | None = None
    link_width_max: int | None = None
    link_speed: str | None = None
    link_speed_max: str | None = None
    unread: Mapping[str, str] = field(default_factory=dict)


def parse_sensors(
    files: Mapping[str, str],
    hwmon: Mapping[str, str],
    throttling: Throttling,
    unread: Mapping[str, str],
) -> GpuSensors:
    """Return the values in a device's *files* and its *hwmon* directory (name → text)."""
    average = number(_line(hwmon.get("power1_average")))
    power = average if average is not None else number(_line(hwmon.get("power1_input")))
    cap = number(_line(hwmon.get("power1_cap")))
    return GpuSensors(
        busy_percent=_percent(files.get("gpu_busy_percent")),
        memory_busy_percent=_percent(files.get("mem_busy_percent")),
        vram_used=number(_line(files.get("mem_info_vram_used"))),
        vram_total=number(_line(files.get("mem_info_vram_total"))) or None,
        core_clock=parse_clock(files.get("pp_dpm_sclk", "")),
        memory_clock=parse_clock(files.get("pp_dpm_mclk", "")),
        power_watts=None if power is None else power / _MICRO,
        power_cap_watts=cap / _MICRO if cap else None,
        temperatures=_temperatures(hwmon),
        throttling=throttling,
        link_width=number(_line(files.get("current_link_width"))) or None,
        link_width_max=number(_line(files.get("max_link_width"))) or None,
        link_speed=_speed(files.get("current_link_speed")),
        link_speed_max=_speed(files.get("max_link_speed")),
        unread=dict(unread),
    )


def parse_clock(text: str) -> Clock | None:
    """Return the levels of a pp_dpm file ("1: 2100Mhz *", the star is where it is now); None without any."""
    levels = [(int(mhz), bool(star)) for mhz, star in _LEVEL.findall(text)]
    if not levels:
        return None
    now = next((mhz for mhz, current in levels if current), None)
    return Clock(now=now, highest=max(mhz for mhz, _ in levels))


def _temperatures(hwmon: Mapping[str, str]) -> tuple[Temperature, ...]:
    found = []
    for name in sorted(hwmon):
        sensor, _, kind = name.partition("_")
        celsius = number(_line(hwmon[name])) if kind == "input" else None
        if celsius is not None and sensor.startswith("temp"):
            critical = number(_line(hwmon.get(f"{sensor}_crit")))
            label = _line(hwmon.get(f"{sensor}_label")) or sensor
            found.append(
                Temperature(
                    label=label,
                    celsius=celsius // _MILLI,
                    critical=critical // _MILLI if critical else None,
                )
            )
    return tuple(found)


def _line(text: str | None) -> str | None:
    return text.partition("\n")[0].strip() if text else None


def _percent(text: str | None) -> int | None:
    value = number(_line(text))
    return value if value is not None and value <= 100 else None  # noqa: PLR2004  # percent


def _speed(text: str | None) -> str | None:
    # "Unknown" is what the kernel prints for a link that it cannot ask.
    line = _line(text)
    return line if line and line[0].isdigit() else None
