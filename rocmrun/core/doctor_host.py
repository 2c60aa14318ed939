"""The doctor's checks of the host and its engine: driver, nodes, permissions, engine."""

from collections.abc import Iterator
from typing import Any

from rocmrun.core.doctor import Check, Result, Seen
from rocmrun.core.host import DeviceNode, HostFacts
from rocmrun.core.stricter import KNOWN_RUNTIMES

_UDEV = 'add a udev rule: KERNEL=="kfd", GROUP="render", MODE="0660"'


def driver_checks(seen: Seen) -> Iterator[Check]:
    """Yield what stands between the PCI bus and a GPU that KFD shows."""
    host = seen.host
    looked = "amdgpu, /dev/kfd, /dev/dri, the KFD topology, the PCI bus"

    def found(result: Result, evidence: str, hint: str = "", kind: str = "") -> Check:
        return Check(
            id="driver", looked_at=looked, result=result, evidence=evidence, hint=hint, kind=kind
        )

    if host.wsl and host.kfd is None:
        yield found(
            "blocker",
            "this is WSL: GPUs are reached through /dev/dxg, not through KFD",
            "rocmrun explain wsl-dxg",
            "wsl-dxg",
        )
        return
    if not host.gpus and not host.pci_gpus and host.kfd is None:
        wanted = seen.wants_gpus
        yield found(
            "blocker" if wanted else "unknown",
            "no AMD GPU is on the PCI bus",
            "lspci -d 1002:",
            "kfd-missing-on-host" if wanted else "",
        )
        return
    if not host.driver_version and host.kfd is None:
        yield found(
            "blocker",
            f"{len(host.pci_gpus)} AMD devices on the PCI bus, and amdgpu is not loaded",
            "dkms status; sudo dmesg | grep -i amdgpu",
            "driver-not-loaded",
        )
    elif host.kfd is None:
        yield found(
            "blocker",
            "amdgpu is loaded, and /dev/kfd does not exist",
            "grep CONFIG_HSA_AMD /boot/config-$(uname -r)",
            "kfd-not-in-kernel",
        )
    elif not host.gpus:
        yield found(
            "blocker",
            "/dev/kfd exists, and KFD has no GPU",
            "sudo dmesg | grep -i kfd",
            "gpu-not-supported-by-kfd",
        )
    else:
        yield from _gpus(host, found)


def _gpus(host: HostFacts, found: Any) -> Iterator[Check]:
    bound = [gpu for gpu in host.pci_gpus if gpu.driver == "amdgpu"]
    addresses = {gpu.pci_address for gpu in host.gpus}
    skipped = [gpu.address for gpu in bound if gpu.address not in addresses]
    if skipped and all(gpu.permitted for gpu in host.gpus):
        yield found(
            "warn",
            f"amdgpu drives {', '.join(skipped)}, and KFD has no node for it",
            "sudo dmesg | grep -iE 'kfd|atomics'",
            "pcie-atomics",
        )
    for gpu in host.gpus:
        if gpu.permitted and gpu.render_minor is not None and gpu.render_node is None:
            yield found(
                "blocker",
                f"{gpu.label}: /dev/dri/renderD{gpu.render_minor} does not exist",
                "ls -l /dev/dri",
                "render-node-renumbered",
            )
    apus = [gpu for gpu in host.gpus if gpu.apu]
    if apus and len(apus) < len(host.gpus):
        yield found(
            "warn",
            f"{apus[0].label} is a processor's own GPU beside others",
            'select = ["discrete"] in the profile',
            "igpu-interference",
        )
    hidden = [gpu for gpu in host.gpus if not gpu.permitted]
    if hidden:
        yield found(
            "warn",
            f"{len(hidden)} GPUs are hidden from this process by the device cgroup",
            "run rocmrun on the host",
            "cgroup-device-denied",
        )
    yield found(
        "ok",
        f"amdgpu {host.driver_version or 'of unknown version'}, {len(host.gpus)} GPU nodes, /dev/kfd is there",
    )


def permission_checks(seen: Seen) -> Iterator[Check]:
    """Yield who may open the nodes, by number."""
    host = seen.host
    nodes = [node for node in (host.kfd, *host.render_nodes) if node is not None]
    looked = "owner, group and mode of the nodes, by number"
    if not nodes:
        yield Check(
            id="permissions", looked_at=looked, result="unknown", evidence="there are no nodes"
        )
        return
    closed = [node for node in nodes if not node.group_writable and not node.world_writable]
    for node in closed:
        yield Check(
            id="permissions",
            looked_at=looked,
            result="blocker",
            evidence=f"{_node(node)}: only its owner may open it",
            hint=_UDEV,
            kind="host-udev-perms",
        )
    for node in nodes:
        if node.gid == 0 and not node.world_writable and node not in closed:
            yield Check(
                id="permissions",
                looked_at=looked,
                result="blocker",
                evidence=f"{_node(node)}: it belongs to group 0, which owns much else",
                hint=_UDEV,
                kind="host-udev-perms",
            )
    for path in seen.denied:
        yield Check(
            id="permissions",
            looked_at="what the container's user may open",
            result="blocker",
            evidence=path,
            hint="rocmrun plan PROFILE",
            kind="render-gid-mismatch",
        )
    if not closed:
        groups = sorted({node.gid for node in nodes if not node.world_writable})
        names = ", ".join(map(str, groups)) or "none: everybody may open them"
        yield Check(
            id="permissions",
            looked_at=looked,
            result="ok",
            evidence=f"groups that open them here: {names}",
        )


def _node(node: DeviceNode) -> str:
    return f"{node.path} is {node.mode:04o} {node.uid}:{node.gid}"


def engine_checks(seen: Seen) -> Iterator[Check]:
    """Yield what keeps containers of this engine from the GPUs of this host."""
    engine, looked = seen.engine, "what the engine says of itself"

    def found(result: Result, evidence: str, hint: str = "", kind: str = "") -> Check:
        return Check(
            id="engine", looked_at=looked, result=result, evidence=evidence, hint=hint, kind=kind
        )

    if engine is None:
        # Without a profile nothing is to be started.
        yield found(
            "blocker" if seen.wants_gpus is not None and seen.engine_problem else "unknown",
            seen.engine_problem or "not asked",
            "systemctl status docker" if seen.engine_problem else "",
        )
        return
    if engine.desktop or engine.same_kernel(seen.host) is False:
        yield found(
            "blocker",
            f"the engine runs on kernel {engine.kernel}, this host on {seen.host.kernel}",
            "docker context use default",
            "docker-desktop-context",
        )
    if engine.snap:
        yield found(
            "blocker",
            "the engine is a snap package, which has its own /dev",
            "snap list docker",
            "snap-docker",
        )
    if (engine.default_runtime or "") not in KNOWN_RUNTIMES:
        yield found(
            "blocker",
            f"the default runtime is {engine.default_runtime}",
            "docker info | grep -i runtime",
            "sandbox-runtime",
        )
    if engine.rootless or engine.userns_remap:
        yield found(
            "warn",
            "the engine maps ids: groups of this host do not exist inside",
            "cat /proc/self/uid_map",
            "rootless-groups",
        )
    yield found(
        "ok",
        f"{engine.kind} {engine.version}, API {engine.api_version}, runtime {engine.default_runtime or 'unknown'}",
    )
