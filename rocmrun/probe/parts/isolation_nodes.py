"""Device nodes that the plan does not pass: those that are there, and those that could be made."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path
from typing import Iterator

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.grants import CAP_MKNOD, Grants
from rocmrun.probe.parts.machine import errno_name, first_line
from rocmrun.probe.parts.mounts import mount_points

# Nodes that every container has, with the numbers that its device cgroup allows: null, zero, full,
# random, urandom, tty, console, ptmx, and terminals.
ENGINE_NODES = ((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 1), (5, 2))
PTS_MAJORS = range(136, 144)
DRM_MAJOR = 226
MEM_MAJOR = 1  # mem, kmem, port, kmsg: opening one does nothing
# Where nothing was listed by the kernel: the first card, the first render node, /dev/mem, /dev/kmsg.
USUAL_NUMBERS = ("c 226:0", "c 226:128", "c 1:1", "c 1:11")
MOST_NODES, MOST_NUMBERS, MOST_ENTRIES = 400, 12, 2000


class Node:
    """A device node, by its path and number."""

    def __init__(self, path: str, status: os.stat_result) -> None:
        self.path = path
        self.block = stat.S_ISBLK(status.st_mode)
        self.number = (os.major(status.st_rdev), os.minor(status.st_rdev))

    @property
    def is_gpu(self) -> bool:
        """Whether it stands for a GPU, by its number or by its name."""
        named = re.search(r"/dri/(card|renderD)\d+$|/kfd$|/nvidia[^/]*$", self.path) is not None
        return named or (not self.block and self.number[0] == DRM_MAJOR)

    @property
    def is_the_engines(self) -> bool:
        """Whether every container has it."""
        return not self.block and (self.number in ENGINE_NODES or self.number[0] in PTS_MAJORS)

    def __str__(self) -> str:
        kind = "b" if self.block else "c"
        return f"{self.path} ({kind} {self.number[0]}:{self.number[1]})"


def node_at(path: str) -> Node | None:
    """Return the device node at *path* itself, None where there is none."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
            return Node(path, status)
    return None


def nodes_here() -> list[Node]:
    """Return the device nodes under /dev, and at the top of every mount that allows any."""
    found: dict[str, Node] = {}
    for path in [*paths_under("/dev", depth=3), *paths_of_mounts()]:
        node = node_at(path)
        if node is not None:
            found[path] = node
        if len(found) >= MOST_NODES:
            break
    return list(found.values())


def paths_of_mounts() -> Iterator[str]:
    """Yield mount targets and what lies in them, where a device node would be one."""
    for mount in mount_points():
        kernel = any(mount.is_below(folder) for folder in ("/proc", "/sys", "/dev"))
        if kernel or "nodev" in mount.options:
            continue
        yield mount.target
        yield from paths_under(mount.target, depth=1)


def paths_under(folder: str, *, depth: int) -> Iterator[str]:
    """Yield the paths in *folder*, the nearest first; a large folder is cut off."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        folders = []
        for count, entry in enumerate(entries):
            if count >= MOST_ENTRIES:
                break
            yield entry.path
            if depth > 1 and entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
        for path in folders:
            yield from paths_under(path, depth=depth - 1)


def reach(node: Node) -> tuple[str, str]:
    """Return which of "rw" the kernel allows on *node*, and how that was found out.

    access(2) asks the node's mode and the device cgroup without opening: to open some devices is
    to use them (a watchdog starts, a tape rewinds). GPU nodes and memory are opened all the same.
    """
    if os.statvfs(node.path).f_flag & os.ST_NODEV:
        return "", "nodev"
    allowed = "".join(
        letter for letter, mode in (("r", os.R_OK), ("w", os.W_OK)) if os.access(node.path, mode)
    )
    if allowed and not (node.is_gpu or (node.number[0] == MEM_MAJOR and not node.block)):
        return allowed, f"{allowed} allowed, not opened"
    flags = os.O_RDWR if allowed == "rw" else os.O_WRONLY if allowed == "w" else os.O_RDONLY
    try:
        os.close(os.open(node.path, flags | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        # No driver behind a node that may be opened is no protection: another day there is one.
        return allowed, errno_name(error)
    return allowed, "opened"


def granted_numbers(grants: Grants) -> dict[tuple[int, int], str]:
    """Return the numbers of the nodes that the plan passes, and the access to each."""
    found = {}
    for path, permissions in grants.devices.items():
        with contextlib.suppress(OSError):
            number = os.stat(path).st_rdev  # noqa: PTH116
            found[os.major(number), os.minor(number)] = permissions
    return found


def check_nodes(check: Check, grants: Grants, nodes: list[Node]) -> None:
    """Judge every node by what the plan passes of it: nothing, or less than what is reached."""
    granted = granted_numbers(grants)
    reached = []
    for node in nodes:
        allowed, how = reach(node)
        given = granted.get(node.number, "")
        check.evidence[str(node)] = f"{how}, granted {given}" if given else how
        beyond = "".join(letter for letter in allowed if letter not in given)
        if beyond:
            reached.append(
                f"{node} can be opened ({allowed}{', planned ' + given if given else ''})"
            )
    grants.judge(check, reached)


def check_gpu_nodes(check: Check, grants: Grants) -> None:
    """Open every GPU node that is here: the device cgroup must refuse the others."""
    check_nodes(check, grants, [node for node in nodes_here() if node.is_gpu])


def check_host_devices(check: Check, grants: Grants) -> None:
    """Ask for every other device of the host: memory, disks, /dev/kvm, /dev/fuse."""
    nodes = nodes_here()
    check_nodes(check, grants, [n for n in nodes if not n.is_gpu and not n.is_the_engines])
    check.evidence["engine_nodes"] = sum(node.is_the_engines for node in nodes)


def check_new_nodes(check: Check, grants: Grants) -> None:
    """Try to make nodes for other GPUs, memory and disks, and to open what could be made."""
    given = granted_numbers(grants)
    made, opened = [], []
    for text in host_numbers():
        kind, _, number = text.partition(" ")
        major, _, minor = number.partition(":")
        if (int(major), int(minor)) in given:
            continue
        result, allowed = make_node(kind, int(major), int(minor))
        check.evidence[text] = result
        if result.startswith("made"):
            made.append(f"a node for {text} can be made")
        if allowed:
            opened.append(f"a node for {text} can be made and opened ({allowed})")
    # A grant of MKNOD is a grant of nodes; what may be opened is the device cgroup's to say.
    grants.judge(check, opened or made, granted=not opened and grants.capability(CAP_MKNOD))


def host_numbers() -> list[str]:
    """Return numbers of devices that this host has: GPUs, KFD, disks, memory."""
    found = list(USUAL_NUMBERS)
    for pattern, kind in (
        ("/sys/class/drm/*/dev", "c"),
        ("/sys/class/kfd/kfd/dev", "c"),
        ("/sys/class/block/*/dev", "b"),
    ):
        for path in sorted(Path("/").glob(pattern.lstrip("/")))[:MOST_NUMBERS]:
            number = first_line(str(path))
            if number and number.replace(":", "").isdigit():
                found.append(f"{kind} {number}")
    return list(dict.fromkeys(found))[: 2 * MOST_NUMBERS]


def make_node(kind: str, major: int, minor: int) -> tuple[str, str]:
    """Make a node where one can be written, and return what came of it and the access to it."""
    mode = 0o600 | (stat.S_IFBLK if kind == "b" else stat.S_IFCHR)
    refused: list[str] = []
    for folder in ("/dev", os.environ.get("TMPDIR") or "/tmp", os.environ.get("HOME") or "/"):
        path = f"{folder.rstrip('/')}/.probe-node-{os.getpid()}"
        try:
            os.mknod(path, mode, os.makedev(major, minor))
        except OSError as error:
            refused.append(errno_name(error))
            continue
        try:
            node = node_at(path)
            allowed, how = reach(node) if node is not None else ("", "gone")
        finally:
            os.unlink(path)  # noqa: PTH108
        if how != "nodev":
            return f"made, {how}", allowed
        refused.append("made, nodev")
    # EPERM is the kernel's word on nodes; a folder that cannot be written says nothing of them.
    best = [word for word in refused if word == "EPERM" or word.startswith("made")]
    return (best or refused)[0], ""
