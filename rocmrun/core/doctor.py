"""The host checks of the doctor, in the order in which a fault must be mended. Pure: facts in, results out."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from rocmrun.core.diagnosis.finding import Finding, Kind
from rocmrun.core.host import DeviceNode, EngineFacts, HostFacts
from rocmrun.core.host_advice import advice
from rocmrun.core.image_report import ImageReport
from rocmrun.core.report import ProbeReport
from rocmrun.core.stricter import KNOWN_RUNTIMES
from rocmrun.core.support import Policy, SupportReport

Result = Literal["ok", "warn", "blocker", "unknown"]
CHECKS = (
    "matrix", "driver", "permissions", "engine", "image-build", "architecture", "operators", "speed",
)  # fmt: skip
# A blocker is a cause that is likely at least.
SURE = frozenset({"high", "medium"})
UDEV = 'add a udev rule: KERNEL=="kfd", GROUP="render", MODE="0660"'
_PROBE = "rocmrun probe PROFILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes:
        id: One of CHECKS.
        looked_at: What was read.
        evidence: What was seen, one sentence.
        hint: What to do, a command where one exists.
        kind: The finding that explains it.
    """

    id: str
    looked_at: str
    result: Result
    evidence: str
    hint: str = ""
    kind: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that the checks judge; what is None was not looked at or could not be.

    Attributes:
        wants_gpus: Whether the profile needs AMD GPUs; None without a profile.
        engine_problem: Why no engine answered.
        refusal: Why no plan could be made: (slug, message, hint).
        denied: Nodes that the container's user may not open, a sentence each.
        unreadable: Mounts that it may not use, a sentence each.
    """

    host: HostFacts
    wants_gpus: bool | None = None
    engine: EngineFacts | None = None
    engine_problem: str = ""
    support: SupportReport | None = None
    policy: Policy = "warn"
    image: ImageReport | None = None
    lints: tuple[str, ...] = ()
    torch: str | None = None
    denied: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    refusal: tuple[str, str, str] | None = None
    report: ProbeReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the doctor found.

    Attributes:
        checks: Of the host, in order; none where a log alone was read.
        findings: In the order in which they must be mended.
        kinds: What is known of every kind.
    """

    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def blocked(self) -> bool:
        """Whether something was found that must be mended."""
        sure = any(f.confidence in SURE and f.kind.step != "noise" for f in self.findings)
        return sure or any(check.result == "blocker" for check in self.checks)


def host_checks(seen: Seen) -> tuple[Check, ...]:
    """Return every check's results, in order."""
    steps = (
        _matrix,
        _driver,
        _plan,
        _permissions,
        _engine,
        _image,
        _architecture,
        _operators,
        _speed,
    )
    return tuple(check for step in steps for check in step(seen))


def _matrix(seen: Seen) -> Iterator[Check]:
    looked = "AMD's support matrix"
    if seen.support is None:
        yield Check(id="matrix", looked_at=looked, result="unknown",
            evidence="it judges GPUs together with an image: name a profile that passes AMD GPUs",
            hint="rocmrun matrix")  # fmt: skip
        return
    decided = seen.support.decided(seen.policy)
    told = [("blocker", f) for f in decided["block"]] + [("warn", f) for f in decided["warn"]]
    for result, finding in told:
        yield Check(id="matrix", looked_at=f"{looked}, {finding.subject}", result="blocker" if result == "blocker" else "warn",
            evidence=finding.sentence, hint="rocmrun matrix",
            kind="arch-not-in-image" if finding.subject == "code" else "driver-too-old" if finding.subject == "driver" else "")  # fmt: skip
    if not told:
        known = seen.support.verdict != "unknown"
        yield Check(id="matrix", looked_at=looked, result="ok" if known else "unknown",
            evidence=f"{seen.support.verdict} (data of {seen.support.data_of})")  # fmt: skip


def _driver(seen: Seen) -> Iterator[Check]:
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


def _plan(seen: Seen) -> Iterator[Check]:
    if seen.refusal:
        slug, message, hint = seen.refusal
        yield Check(
            id="permissions" if slug in {"device-permission", "mount-unreadable"} else "driver",
            looked_at="the profile's plan",
            result="blocker",
            evidence=f"{slug}: {message}",
            hint=hint,
        )
    for sentence in seen.unreadable:
        yield Check(
            id="permissions",
            looked_at="what the container's user may read",
            result="blocker",
            evidence=sentence,
            hint="rocmrun plan PROFILE",
            kind="mount-unreadable",
        )


def _permissions(seen: Seen) -> Iterator[Check]:
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
            hint=UDEV,
            kind="host-udev-perms",
        )
    for node in nodes:
        if node.gid == 0 and not node.world_writable and node not in closed:
            yield Check(
                id="permissions",
                looked_at=looked,
                result="blocker",
                evidence=f"{_node(node)}: it belongs to group 0, which owns much else",
                hint=UDEV,
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


def _engine(seen: Seen) -> Iterator[Check]:
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
            "systemctl status docker",
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


def _image(seen: Seen) -> Iterator[Check]:
    looked = "what the image says of itself"
    if seen.image is None or not (seen.image.known or seen.image.declared):
        yield Check(
            id="image-build",
            looked_at=looked,
            result="unknown",
            evidence="no profile, or the image is not here",
            hint="rocmrun pull PROFILE",
        )
        return
    torch = seen.torch or ""
    if "+cu" in torch or torch.endswith("+cpu"):
        wrong: Result = "blocker" if seen.wants_gpus else "warn"
        yield Check(
            id="image-build",
            looked_at=looked,
            result=wrong,
            evidence=f"torch {torch} is no ROCm build",
            hint="rocmrun explain not-rocm-build",
            kind="not-rocm-build",
        )
    for lint in seen.lints:
        yield Check(id="image-build", looked_at="the image's environment", result="warn", evidence=lint, hint="rocmrun plan PROFILE",
            kind="hsa-override-wrong" if "HSA_OVERRIDE" in lint else "rccl-p2p-ipc" if "IPC_MODE" in lint else "")  # fmt: skip
    declared = ", ".join(str(one) for one in seen.image.declared) or "nothing"
    yield Check(
        id="image-build",
        looked_at=looked,
        result="ok" if seen.image.declared else "unknown",
        evidence=f"it declares {declared}",
    )


def _architecture(seen: Seen) -> Iterator[Check]:
    looked = "the GPUs' targets against the image's"
    code = [f for f in seen.support.findings if f.subject == "code"] if seen.support else []
    if not code:
        targets = ", ".join(dict.fromkeys(gpu.gfx for gpu in seen.host.gpus if gpu.gfx)) or "none"
        yield Check(
            id="architecture",
            looked_at=looked,
            result="unknown",
            evidence=f"targets here: {targets}; what the image holds is not known",
            hint=_PROBE,
        )
        return
    results: dict[str, Result] = {
        "supported": "ok",
        "incompatible": "blocker",
        "unsupported": "blocker",
        "outside": "warn",
        "deprecated": "warn",
    }
    for finding in code:
        result = results.get(finding.verdict, "unknown")
        yield Check(id="architecture", looked_at=looked, result=result, evidence=finding.sentence,
            hint="" if result == "ok" else _PROBE, kind="arch-not-in-image" if result in {"blocker", "warn"} else "")  # fmt: skip


def _operators(seen: Seen) -> Iterator[Check]:
    looked = "the probe's report"
    if seen.report is None:
        yield Check(
            id="operators",
            looked_at=looked,
            result="unknown",
            evidence="only a probe finds that out",
            hint=f"{_PROBE} --level standard --report FILE",
        )
        return
    tried = [check for check in seen.report.checks if check.group == "operators"]
    wrong = [check for check in tried if check.status in {"fail", "degraded"}]
    for check in wrong:
        yield Check(
            id="operators",
            looked_at=looked,
            result="blocker" if check.status == "fail" else "warn",
            evidence=f"{check.label}: {check.reason}",
            hint="rocmrun explain flash-attn-missing",
        )
    if not wrong:
        yield Check(
            id="operators",
            looked_at=looked,
            result="ok" if tried else "unknown",
            evidence=f"{len(tried)} operators tried",
        )


def _speed(seen: Seen) -> Iterator[Check]:
    looked = "kernel command line, sysctls and PCI links"
    slow = tuple(advice(seen.host))
    for evidence, hint, kind in slow:
        yield Check(
            id="speed", looked_at=looked, result="warn", evidence=evidence, hint=hint, kind=kind
        )
    if seen.report:
        for check in seen.report.checks:
            if check.status == "degraded" and check.threshold is not None:
                yield Check(
                    id="speed",
                    looked_at="the probe's report",
                    result="warn",
                    evidence=f"{check.label}: {check.reason}",
                )
    if not slow:
        yield Check(id="speed", looked_at=looked, result="ok" if seen.host.gpus else "unknown",
            evidence="nothing that AMD advises against for these GPUs" if seen.host.gpus else "no GPU to judge it for")  # fmt: skip
