"""Paths of a host that are the host: sockets of engines, configuration, kernel file systems. Text only."""

import re
from pathlib import PurePosixPath

SOCKETS = (
    "/run/docker.sock", "/var/run/docker.sock", "/run/docker", "/var/run/docker", "/run/podman", "/var/run/podman", "/run/containerd",
    "/var/run/containerd", "/run/crio", "/var/run/crio", "/run/dockershim.sock",
    "/var/run/dockershim.sock", "/run/systemd/private",
)  # fmt: skip
# The sockets themselves, where engines and containerd put them.
SOCKET_FILES = (
    "/run/docker.sock", "/run/docker/containerd/containerd.sock", "/run/podman/podman.sock",
    "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/dockershim.sock",
    "/run/systemd/private",
)  # fmt: skip
# Images and containers, from where whoever writes becomes root in the next one.
ENGINE_FILES = ("/var/lib/containerd", "/var/lib/containers")
KERNEL_TREES = ("/proc", "/sys", "/dev")
# What CIS Docker Benchmark 1.6.0, 5.6, calls sensitive, and where root's own things and engines are.
_SENSITIVE = (
    "/boot", "/dev", "/etc", "/lib", "/proc", "/sys", "/usr", "/root", "/run", "/var/run",
    "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers",
)  # fmt: skip
_RAW_DEVICES = re.compile(
    r"/dev/((mem|kmem|port)$|[shv]d[a-z]|xvd[a-z]|nvme\d|ng\d|mmcblk\d|pmem\d|nbd\d|rbd\d|zram\d|dm-|loop|md\d"
    r"|mapper/|disk/|block/|bsg/|sg\d|sr\d|mtd)"
)
_SOCKET_NAME = re.compile(r"(docker|containerd|podman|crio|buildkitd)[^/]*\.sock$")


def is_inside(path: str, top: str) -> bool:
    """Whether *path* is *top* or below it."""
    return PurePosixPath(path) == PurePosixPath(top) or PurePosixPath(top) in PurePosixPath(path).parents  # fmt: skip


def touches(source: str, path: str) -> bool:
    """Whether *source* is *path*, holds it, or is inside it."""
    return is_inside(source, path) or is_inside(path, source)


def socket_reached(source: str, more: tuple[str, ...] = ()) -> str | None:
    """Return the socket of an engine that mounting *source* reaches; *more* are sockets known besides the usual."""
    for socket in (*SOCKETS, *more):
        if touches(source, socket):
            return socket
    return source if names_socket(source) else None


def names_socket(path: str) -> bool:
    """Whether *path* has the name that an engine gives its socket, wherever it is."""
    return _SOCKET_NAME.search(path) is not None


def is_sensitive(source: str) -> bool:
    """Whether mounting *source* shows the host's own configuration, programs or kernel, rather than data."""
    return any(touches(source, path) for path in _SENSITIVE)


def is_raw_device(path: str) -> bool:
    """Whether *path* is the host's memory or one of its disks."""
    return _RAW_DEVICES.match(path) is not None
