"""The host as /sys, /proc, /dev and /etc show it: one reading, and every failed read is a fact."""

from rocmrun.system.sysfs.paths import read_path
from rocmrun.system.sysfs.reading import read_host
from rocmrun.system.sysfs.tree import ReadBytes, Tree, read_file

__all__ = [
    "ReadBytes",
    "Tree",
    "read_file",
    "read_host",
    "read_path",
]
