"""A GPU's sensors as sysfs shows them, and why one cannot be read."""

import shutil
from pathlib import Path

from rocmrun.core.host import Gpu
from rocmrun.core.running.gpu_metrics import Throttling
from rocmrun.core.running.sensors import Clock, GpuSensors
from rocmrun.system.sysfs import Tree, read_file, read_host
from rocmrun.system.sysfs.sensors import lists_processes, read_sensors
from tests.builders import gpu
from tests.hosts import FakeGpu, build_host, refusing
from tests.running_machines import SENSORS, write_sensors
from tests.unit.core.running.metrics import table

ADDRESS = "0000:05:00.0"


def one(tree: Tree, of: Gpu) -> GpuSensors:
    (found,) = read_sensors(tree, [of])
    return found


def test_the_sensors_of_a_gpu_of_this_host(tmp_path: Path) -> None:
    """By its PCI device: files, hwmon and the binary table."""
    build_host(tmp_path, [FakeGpu()], holders={77: [0]})
    write_sensors(tmp_path, ADDRESS, metrics=table((1, 3), ("Q", 112, 1 << 36)))
    tree = Tree(tmp_path)
    (sensors,) = read_sensors(tree, read_host(tmp_path).gpus)

    assert (sensors.busy_percent, sensors.core_clock) == (97, Clock(now=2100, highest=2100))
    assert (sensors.power_watts, sensors.temperatures[0].label) == (600, "junction")
    assert sensors.throttling == Throttling(now=("too hot",))
    assert sensors.unread == {}
    assert lists_processes(tree)


def test_a_file_that_the_driver_has_not_is_told_from_one_that_it_refuses(tmp_path: Path) -> None:
    """EPERM is the driver's word for a GPU in reset."""
    build_host(tmp_path, [FakeGpu()])
    write_sensors(tmp_path, ADDRESS)
    device = tmp_path / f"sys/bus/pci/devices/{ADDRESS}"
    (device / "mem_busy_percent").unlink()
    shutil.rmtree(device / "hwmon")
    tree = Tree(tmp_path, refusing("gpu_busy_percent"))
    late = Tree(tmp_path, refusing("pp_dpm_sclk", number=110))

    sensors = one(tree, gpu(0, pci_address=ADDRESS))
    unread = sensors.unread
    assert (sensors.power_watts, sensors.temperatures) == (None, ())
    assert unread["mem_busy_percent"] == "this GPU's driver has no such file"
    assert "in reset, or suspended" in unread["gpu_busy_percent"]
    assert unread["gpu_metrics"] == "this GPU's driver has no such file"
    assert one(late, gpu(0, pci_address=ADDRESS)).unread["pp_dpm_sclk"] == "it cannot be read now"  # fmt: skip
    assert not lists_processes(tree)


def test_a_device_is_found_by_its_render_node_too(tmp_path: Path) -> None:
    """Where KFD tells no address; where neither is there, nothing is known."""
    build_host(tmp_path, [FakeGpu()])
    write_sensors(tmp_path, ADDRESS)
    by_node = one(Tree(tmp_path), gpu(0, pci_address=None))
    nowhere = one(Tree(tmp_path), gpu(5, pci_address=None, render_minor=None))

    assert by_node.busy_percent == 97
    assert one(Tree(tmp_path / "empty"), gpu(0)).temperatures == ()
    assert set(nowhere.unread) == {*SENSORS, "gpu_metrics"}
    assert nowhere.unread["gpu_busy_percent"] == "its device is not in sysfs"


def test_a_hwmon_directory_of_another_driver_is_passed_over(tmp_path: Path) -> None:
    """The one with power or heat is meant."""
    build_host(tmp_path, [FakeGpu()])
    write_sensors(tmp_path, ADDRESS)
    (tmp_path / f"sys/bus/pci/devices/{ADDRESS}/hwmon/hwmon1").mkdir()

    assert one(Tree(tmp_path), gpu(0, pci_address=ADDRESS)).power_watts == 600


def test_partitions_are_read_once_from_their_gpu(tmp_path: Path) -> None:
    """Sixty-four of them share eight devices, and a table of the firmware's takes its time."""
    build_host(tmp_path, [FakeGpu()])
    write_sensors(tmp_path, ADDRESS)
    read: list[str] = []

    def counting(path: str) -> bytes:
        read.append(path)
        return read_file(path)

    parts = [gpu(place, pci_address=ADDRESS, partition=place) for place in range(8)]
    found = read_sensors(Tree(tmp_path, counting), parts)

    assert [each.busy_percent for each in found] == 8 * [97]
    assert len([path for path in read if path.endswith("gpu_busy_percent")]) == 1
