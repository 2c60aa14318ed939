"""What AMD asks of a host, for the GPUs that are there and no others.

Sources: AMD's system optimisation pages for MI100, MI200, MI300A and MI300X, and its page on the IOMMU
(ROCm/amdgpu-docs, docs/system-optimization and docs/conceptual/iommu.rst, 2025-09-17). For RDMA:
ROCm/cvs, whose cluster preflight wants 32 GiB of locked memory, and its pull requests 451 to 453, where
Docker's default of 8 MiB broke ibv_reg_mr.
"""

from collections.abc import Iterable, Iterator

from rocmrun.core.host import DeviceNode, Gpu, HostFacts
from rocmrun.core.text import GIB, MIB

Advice = tuple[str, str, str]
_RDMA_LEAST = 32 * GIB
_GRANT = '[[privileges]] grant = "ulimit:memlock=-1" with its reason, as in the profile rdma-train'
_REBOOT = "add {} to the kernel's command line, then restart the host"


def gpu_class(gpu: Gpu) -> str:
    """Return AMD's class of the GPU, "" where its pages have none."""
    gfx = gpu.gfx or ""
    if gfx == "gfx942":
        return "MI300A" if gpu.apu else "MI300X"
    if gfx in {"gfx908", "gfx90a"}:
        return "MI100/MI200"
    return "Radeon" if gfx.startswith(("gfx10", "gfx11", "gfx12")) and not gpu.apu else ""


def advice(host: HostFacts) -> Iterator[Advice]:
    """Yield (what was seen, what to do, the finding's kind), each only where it applies."""
    classes = {gpu_class(gpu) for gpu in host.gpus}
    words = set((host.cmdline or "").split())
    if host.numa_balancing and classes & {"MI300X", "MI300A"}:
        yield (
            "NUMA balancing is on, which AMD advises against for MI300",
            "sudo sysctl kernel.numa_balancing=0, and measure both",
            "numa-balancing",
        )
    if host.cmdline is not None:
        yield from _of_the_command_line(host, classes, words)
    for gpu in host.gpus:
        if gpu.link_width and gpu.link_width_max and gpu.link_width < gpu.link_width_max:
            yield (
                f"{gpu.label}: PCI Express runs on {gpu.link_width} of {gpu.link_width_max} lanes",
                f"sudo lspci -vv -s {gpu.pci_address}",
                "",
            )


def rdma_advice(devices: Iterable[DeviceNode], memlock: int | None) -> Iterator[Advice]:
    """Yield what the limit of locked memory means where RDMA adapters are passed, and nothing without these.

    Args:
        devices: Nodes that the profile asks for and that are here.
        memlock: The plan's limit in bytes; -1 is none, None where the plan leaves the engine's own.
    """
    adapters = [node.path for node in devices if node.path.startswith("/dev/infiniband/")]
    if not adapters or memlock == -1:
        return
    passed = f"{adapters[0]} is passed" + (
        f", and {len(adapters) - 1} more" if adapters[1:] else ""
    )
    if memlock is None:
        yield (
            f"{passed}: registering memory with it counts as locked, of which the engine's default is 8 MiB",
            _GRANT,
            "memlock",
        )
    elif memlock < _RDMA_LEAST:
        yield (
            f"{passed}, and the plan's limit of locked memory is {memlock // MIB} MiB: AMD's preflight for clusters wants 32 GiB",
            _GRANT,
            "memlock",
        )


def _of_the_command_line(host: HostFacts, classes: set[str], words: set[str]) -> Iterator[Advice]:
    passes = "iommu=pt" in words
    if not passes and classes & {"MI300X", "MI100/MI200"}:
        yield (
            "iommu=pt is not on the kernel's command line, which AMD asks for with these GPUs",
            _REBOOT.format("iommu=pt"),
            "iommu-p2p",
        )
    radeons = [gpu for gpu in host.gpus if gpu_class(gpu) == "Radeon"]
    # For several Radeons AMD's pages disagree: only having neither is worth a word.
    if (
        len(radeons) > 1
        and not passes
        and not any(word.startswith(("iommu=", "amd_iommu=", "intel_iommu=")) for word in words)
    ):
        yield (
            "several Radeon GPUs, and the kernel's command line says nothing of the IOMMU",
            "rocmrun explain iommu-p2p",
            "iommu-p2p",
        )
    if classes & {"MI300X", "MI300A"} and "pci=realloc=off" not in words:
        opposite = (
            "pci=realloc is on the kernel's command line: the opposite of what AMD asks for"
            if "pci=realloc" in words
            else "pci=realloc=off is not on the kernel's command line, which AMD asks for with MI300"
        )
        yield opposite, _REBOOT.format("pci=realloc=off"), ""
