"""Machines on which a container runs: sensors of its GPU in sysfs, its processes in /proc, its control group.

write_sensors(root, "0000:05:00.0", gpu_busy_percent="97")
write_process(root, 700, container=ID, cpu_ticks=100)
write_group_v2(root, ID, pids=[700])
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.hosts import write

SENSORS = {
    "gpu_busy_percent": "97",
    "mem_busy_percent": "41",
    "mem_info_vram_used": "60129542144",
    "mem_info_vram_total": "206158430208",
    "pp_dpm_sclk": "0: 132Mhz\n1: 2100Mhz *",
    "pp_dpm_mclk": "0: 900Mhz\n1: 1300Mhz *",
    "current_link_speed": "32.0 GT/s PCIe",
    "max_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16",
    "max_link_width": "16",
}
HWMON = {"name": "amdgpu", "power1_average": "600000000", "power1_cap": "750000000",
         "temp1_input": "61000", "temp1_label": "junction", "temp1_crit": "100000"}  # fmt: skip


def write_sensors(root: Path, address: str, *, metrics: bytes = b"", **files: str) -> None:
    """Write a GPU's sensors below *root*; *files* replace single ones."""
    device = root / f"sys/bus/pci/devices/{address}"
    for name, text in (SENSORS | files).items():
        write(device / name, f"{text}\n")
    for name, text in HWMON.items():
        write(device / f"hwmon/hwmon3/{name}", f"{text}\n")
    if metrics:
        (device / "gpu_metrics").write_bytes(metrics)


def write_process(  # one keyword for each thing that a test may want different
    root: Path,
    pid: int,
    *,
    container: str,
    name: str = "python3",
    cpu_ticks: int = 0,
    opens: Mapping[int, str] | None = None,
    fdinfo: Mapping[int, str] | None = None,
    controllers: Iterable[str] = (),
) -> None:
    """Write a process of *container*, in one group of version 2, or in one for each of *controllers*."""
    place = root / f"proc/{pid}"
    path = f"/system.slice/docker-{container}.scope" if not controllers else f"/docker/{container}"
    lines = [f"{n}:{name}:{path}" for n, name in enumerate(controllers, 1)] or [f"0::{path}"]
    write(place / "cgroup", "\n".join(lines) + "\n")
    write(place / "stat", f"{pid} ({name}) S 1 {pid} {pid} 0 -1 0 1 0 0 0 {cpu_ticks} 0 0 0 20 0 1 0 1 1 1\n")  # fmt: skip
    (place / "fd").mkdir(exist_ok=True)
    for descriptor, target in (opens or {}).items():
        link = place / f"fd/{descriptor}"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        write(place / f"fdinfo/{descriptor}", (fdinfo or {}).get(descriptor, "pos:\t0\n"))


def write_group_v2(root: Path, container: str, *, pids: Iterable[int] = (), **files: str) -> Path:
    """Write the group of *container* in version 2; names of *files* have "_" for their first dot."""
    write(root / "sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory pids\n")
    group = root / f"sys/fs/cgroup/system.slice/docker-{container}.scope"
    write(group / "cgroup.procs", "".join(f"{pid}\n" for pid in pids))
    defaults = {
        "cpu_max": "max 100000", "cpu_stat": "usage_usec 0\nnr_periods 0\nnr_throttled 0",
        "cpuset_cpus.effective": "0-15", "memory_current": "1073741824", "memory_max": "8589934592",
        "memory_stat": "inactive_file 0", "memory_events": "max 0\noom_kill 0",
        "pids_current": "3", "pids_max": "100", "pids_events": "max 0",
    }  # fmt: skip
    for name, text in (defaults | files).items():
        write(group / name.replace("_", ".", 1), f"{text}\n")
    return group


TICKS = os.sysconf("SC_CLK_TCK")
