"""The doctor's checks in the order in which a fault must be mended. Pure: facts in, results out."""

from collections.abc import Iterator

from rocmrun.core.doctor import Check, Result, Seen
from rocmrun.core.doctor_host import driver_checks, engine_checks, permission_checks
from rocmrun.core.host_advice import advice, rdma_advice

_PROBE = "rocmrun probe PROFILE"


def host_checks(seen: Seen) -> tuple[Check, ...]:
    """Return every check's results, in order."""
    steps = (
        _matrix,
        driver_checks,
        _plan,
        permission_checks,
        engine_checks,
        _image,
        _architecture,
        _operators,
        _speed,
    )
    return tuple(check for step in steps for check in step(seen))


def _matrix(seen: Seen) -> Iterator[Check]:
    looked = "AMD's support matrix"
    if seen.support is None:
        yield Check(id="matrix", looked_at=looked, result="unknown", evidence=_no_support(seen), hint="rocmrun matrix")  # fmt: skip
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


def _no_support(seen: Seen) -> str:
    if seen.wants_gpus is False:
        return "the profile passes no AMD GPU"
    if seen.refusal:
        return "no plan could be made of the profile"
    return "it judges GPUs together with an image: name a profile that passes AMD GPUs"


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
    if seen.wants_gpus is False:
        yield Check(id="architecture", looked_at=looked, result="unknown", evidence="the profile passes no AMD GPU")  # fmt: skip
        return
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
    looked = "kernel command line, sysctls, PCI links and limits"
    slow = (*advice(seen.host), *rdma_advice(seen.host.devices, seen.memlock))
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
