"""One reading of a host."""

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path

from rocmrun.core.host import DeviceNode, HostFacts
from rocmrun.system.sysfs.gpus import NODES, read_gpus, read_pci_gpus
from rocmrun.system.sysfs.machine import read_machine, read_numa_nodes
from rocmrun.system.sysfs.tree import ReadBytes, Tree, read_file


def read_host(
    root: Path = Path("/"), *, device_globs: Sequence[str] = (), read: ReadBytes = read_file
) -> HostFacts:
    """Return what the host below *root* shows; nothing that fails to read is an error.

    Args:
        root: "/", or a directory that holds copies of /sys, /proc, /dev and /etc.
        device_globs: Further nodes to look at, such as "/dev/infiniband/uverbs*".
        read: Returns the bytes of a file or raises OSError.
    """
    tree = Tree(root, read)
    numa_nodes = read_numa_nodes(tree)
    gpus = read_gpus(tree, numa_nodes)
    return HostFacts(
        root=tree.root,
        numa_nodes=numa_nodes,
        kfd=tree.device("/dev/kfd"),
        kfd_topology=tree.has(NODES),
        gpus=gpus,
        pci_gpus=read_pci_gpus(tree),
        card_nodes=_numbered_nodes(tree, "/dev/dri", "card"),
        render_nodes=_numbered_nodes(tree, "/dev/dri", "renderD"),
        devices=_matching_nodes(tree, device_globs),
        **read_machine(tree),
        problems=tree.problems,  # last: complete only when everything else was read
    )


def _numbered_nodes(tree: Tree, directory: str, prefix: str) -> tuple[DeviceNode, ...]:
    return _nodes(tree, (f"{directory}/{prefix}{n}" for n in tree.numbers(directory, prefix)))


def _matching_nodes(tree: Tree, patterns: Sequence[str]) -> tuple[DeviceNode, ...]:
    root = tree.real("")
    found = {
        path.removeprefix(root)
        for pattern in patterns
        for path in glob.glob(glob.escape(root) + pattern)  # noqa: PTH207  # Path.glob has no escape
        if not Path(path).is_dir()
    }
    return _nodes(tree, sorted(found))


def _nodes(tree: Tree, paths: Iterable[str]) -> tuple[DeviceNode, ...]:
    return tuple(node for path in paths if (node := tree.device(path)))
