"""What AMD asks of a host, for the GPUs that are there and no others.

Sources: AMD's system optimisation pages for MI100, MI200, MI300A and MI300X, and its page on the IOMMU
(ROCm/amdgpu-docs, docs/system-optimization and docs/conceptual/iommu.rst, 2025-09-17).
"""

from collections.abc import Iterator

from rocmrun.core.host import Gpu, HostFacts

Advice = tuple[str, str, str]
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
