"""A minimal side in other words: a profile, a compose file, a Kubernetes securityContext."""

import hashlib
import math
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from rocmrun.core.certificate import Certificate, PrivilegeVerdict
from rocmrun.core.create_request import tmpfs_options
from rocmrun.core.docker_run.line import image_name, seccomp_file
from rocmrun.core.plan import Plan
from rocmrun.core.privilege_sides import RECIPE_REASON, ROOT, TRIED_REASON, realised
from rocmrun.core.profile.model import Privilege, Profile
from rocmrun.core.profile.parameters import escaped_texts
from rocmrun.core.seccomp_tailored import TailoredSeccomp
from rocmrun.core.text import MIB, one_line, printable
from rocmrun.core.tmpfs_offer import LOST, TMPFS
from rocmrun.core.toml import KeyPath, dump_toml
from rocmrun.core.yaml import dump_yaml

COMMENT = 160
# The first words of every profile that is written here, by which one is told from a person's own.
WRITTEN = "# Found by rocmrun diff-privileges"
DEPTH = 2
SHM = "/dev/shm"  # noqa: S108  # the container's own, sized
# What a profile says of itself, or what was filled in already.
_LEFT_OUT = frozenset({"extends", "parameters", "description"})
_REASONS = {
    "required": "needed: without it the job failed (rocmrun diff-privileges)",
    "degraded": "needed: without it the job fell short (rocmrun diff-privileges)",
    "untested": "not shown to be needed: never left out by itself (rocmrun diff-privileges)",
}


def profile_form(profile: Profile, certificate: Certificate, *, directory: str = "") -> str:
    """Return the minimal profile as TOML, with the evidence beside each privilege that was kept.

    A seccomp profile in *directory*, where the text will be written, is named from there: the two can move together.
    """
    profile = _named_from(directory, _with_reasons(certificate, profile))
    data = {
        "description": f"{certificate.profile} with no more rights than it was seen to need",
        **{
            key: value
            # Parameters were filled in: what looks like one by now is a command's own ${…}.
            for key, value in escaped_texts(profile.as_data()).items()
            if key not in _LEFT_OUT and value not in ([], {})
        },
    }
    container = data.get("container", {})
    data["container"] = {key: value for key, value in container.items() if value != []}
    reasons = {entry.grant: _evidence(certificate, entry.grant) for entry in profile.privileges}

    def comment(path: KeyPath) -> str:
        if len(path) == DEPTH and path[0] == "privileges":
            return reasons.get(profile.privileges[int(path[1])].grant, "")
        if path in {("container", "network"), ("container", "shm_size")}:
            return _evidence(certificate, _item_of(certificate, str(path[1])))
        if path[:2] == ("container", "tmpfs"):
            return _evidence(certificate, f"{TMPFS}{path[-1]}")
        return ""

    return "".join(f"# {line}\n" for line in _head(certificate)) + dump_toml(data, comment)


def _with_reasons(certificate: Certificate, profile: Profile) -> Profile:
    """Return *profile* with what the search found as the reason of a privilege that nobody gave one for."""

    def reasoned(entry: Privilege) -> Privilege:
        verdict = _verdict_of(certificate, entry.grant)
        if verdict is None or entry.reason not in {RECIPE_REASON, TRIED_REASON}:
            return entry
        return entry.model_copy(update={"reason": _REASONS[verdict.verdict]})

    privileges = tuple(reasoned(entry) for entry in profile.privileges)
    return profile.model_copy(update={"privileges": privileges})


def _named_from(directory: str, profile: Profile) -> Profile:
    own = f"seccomp:{directory}/"
    privileges = tuple(
        entry.model_copy(update={"grant": f"seccomp:./{entry.grant.removeprefix(own)}"})
        if directory and entry.grant.startswith(own)
        else entry
        for entry in profile.privileges
    )
    return profile.model_copy(update={"privileges": privileges})


def _head(certificate: Certificate) -> Iterator[str]:
    tailored = certificate.seccomp and certificate.seccomp.verification
    seen = tailored or certificate.verification
    yield f"{WRITTEN.removeprefix('# ')} on {certificate.ended_at}, kernel {certificate.host.kernel},"
    yield f"{certificate.engine.kind} {certificate.engine.version}, image {certificate.image_digest or certificate.image_id}:"
    yield f"passed {seen.passes} of {seen.runs} runs with these rights. It holds for this command, image, engine and"
    yield "kernel; it is no proof for other inputs."
    for item in certificate.minimal:
        if item.startswith(TMPFS):
            yield f"{item.removeprefix(TMPFS)} is in memory: {LOST}."
    if not certificate.one_minimal:
        yield "The search ended early: some of these rights may not be needed."


def _item_of(certificate: Certificate, key: str) -> str:
    start = {"network": "network:", "shm_size": "shm:"}[key]
    return next((item for item in certificate.minimal if item.startswith(start)), "")


def _evidence(certificate: Certificate, item: str) -> str:
    """Return what happened without *item*; for root a rule was tried as its capability."""
    if certificate.seccomp is not None and item.startswith("seccomp:"):
        return _filter_evidence(certificate.seccomp)
    verdict = _verdict_of(certificate, item)
    if verdict is None:
        return ""
    text = f"{verdict.verdict}: {verdict.evidence}"
    return " ".join(printable(text, COMMENT).split())


def _verdict_of(certificate: Certificate, item: str) -> PrivilegeVerdict | None:
    """Return the verdict that kept *item*; None for what nobody searched."""
    kept = (v for v in certificate.verdicts if v.verdict != "removable")
    return next((verdict for verdict in kept if _comes_to(verdict, item)), None)


def _filter_evidence(found: TailoredSeccomp) -> str:
    before = f"{found.calls_after} of {found.calls_before} calls"
    return f"{before}; kept of the groups: {', '.join(found.kept) or 'none'}"


def _comes_to(verdict: PrivilegeVerdict, item: str) -> bool:
    """Whether *item* of a profile is what was tried: for root, a rule is tried as its capability."""
    rule = item.startswith("cap:") and item in realised([verdict.privilege, ROOT])
    return item == verdict.privilege or rule


def compose_form(plan: Plan) -> str:
    """Return *plan* as a compose file; device groups and nodes are this host's."""
    options = [
        *(["no-new-privileges:true"] if plan.no_new_privileges else []),
        *([f"seccomp:{seccomp_file(plan) or plan.seccomp}"] if plan.seccomp else []),
        *([f"apparmor:{plan.apparmor}"] if plan.apparmor else []),
        *([f"label:{plan.selinux_label}"] if plan.selinux_label else []),
    ]
    service: dict[str, Any] = {
        "image": image_name(plan),
        "entrypoint": list(plan.entrypoint or ()),
        "command": list(plan.command),
        "working_dir": plan.workdir,
        "user": plan.user,
        "group_add": [str(group) for group in plan.groups],
        "cap_drop": ["ALL"],
        "cap_add": list(plan.cap_add),
        "security_opt": options,
        "read_only": plan.read_only_root,
        "init": True,
        "network_mode": plan.network,
        "hostname": plan.hostname or "",
        "extra_hosts": list(plan.extra_hosts),
        "ipc": plan.ipc,
        "pid": "" if plan.pid == "private" else plan.pid,
        "shm_size": plan.shm_size_bytes,
        "mem_limit": plan.memory_bytes or 0,
        "pids_limit": plan.pids,
        "devices": [f"{d.host_path}:{d.path}:{d.permissions}" for d in plan.devices if not d.cdi],
        "tmpfs": [f"{tmpfs.target}:{tmpfs_options(tmpfs, plan)}" for tmpfs in plan.tmpfs],
        "volumes": [
            {"type": m.kind, "source": m.source, "target": m.target, "read_only": m.read_only}
            for m in plan.mounts
        ],
        "ulimits": {u.name: {"soft": u.soft, "hard": u.hard} for u in plan.ulimits},
        "sysctls": dict(plan.sysctls),
        "ports": [f"{p.address}:{p.host_port}:{p.container_port}/{p.protocol}" for p in plan.ports],
        # Null has compose hand over the caller's.
        "environment": dict(plan.env) | dict.fromkeys(plan.env_from),
    }
    kept = {key: value for key, value in service.items() if value not in ("", [], {}, 0)}
    notes = _unsaid(plan, compose=True)
    return "".join(f"# {note}\n" for note in notes) + dump_yaml(
        {"services": {"job": _uninterpolated(kept)}}
    )


def _uninterpolated(value: Any) -> Any:
    """Return *value* with every dollar doubled: compose fills in variables in all values, and in no key."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, list):
        return [_uninterpolated(item) for item in value]
    if isinstance(value, dict):
        return {key: _uninterpolated(item) for key, item in value.items()}
    return value


def kubernetes_form(plan: Plan) -> str:
    """Return the rights of *plan* as the fields of a Pod that carry them; nodes come from a device plugin there."""
    container: dict[str, Any] = {
        "name": "job",
        "image": image_name(plan),
        "securityContext": {
            "privileged": False,
            "allowPrivilegeEscalation": not plan.no_new_privileges,
            "readOnlyRootFilesystem": plan.read_only_root,
            "procMount": "Default" if plan.masks else "Unmasked",
            "capabilities": {"drop": ["ALL"], "add": list(plan.cap_add)},
        },
    }
    pod: dict[str, Any] = {
        "hostIPC": plan.ipc == "host",
        "hostNetwork": plan.network == "host",
        "hostPID": plan.pid == "host",
        "securityContext": {
            "runAsUser": plan.uid,
            "runAsGroup": plan.gid,
            "runAsNonRoot": plan.uid != 0,
            "supplementalGroups": list(plan.groups),
            "seccompProfile": _seccomp_of_pod(plan),
            "sysctls": [{"name": name, "value": value} for name, value in plan.sysctls],
        },
        "containers": [container],
    }
    if plan.gpus:
        container["resources"] = {"limits": {"amd.com/gpu": len(plan.gpus)}}
    in_memory = {tmpfs.target: tmpfs.size_bytes for tmpfs in plan.tmpfs}
    if plan.ipc != "host":
        in_memory = {SHM: plan.shm_size_bytes} | in_memory
    if in_memory:
        names = {target: _volume_name(target) for target in in_memory}
        container["volumeMounts"] = [
            {"name": names[target], "mountPath": target} for target in in_memory
        ]
        pod["volumes"] = [
            {"name": names[target], "emptyDir": {"medium": "Memory", "sizeLimit": _mebibytes(size)}}
            for target, size in in_memory.items()
        ]
    notes = _unsaid(plan, compose=False)
    return "".join(f"# {note}\n" for note in notes) + dump_yaml({"spec": pod})


def _volume_name(target: str) -> str:
    """Return a name for the volume at *target*: Kubernetes takes lower-case letters, digits and dashes, at most 63."""
    if target == SHM:
        return "shm"
    plain = re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-")
    return f"{plain[:40]}-{hashlib.sha256(target.encode()).hexdigest()[:8]}".lstrip("-")


def _mebibytes(size: int) -> str:
    return f"{math.ceil(size / MIB)}Mi"


def _seccomp_of_pod(plan: Plan) -> dict[str, str]:
    if plan.seccomp == "unconfined":
        return {"type": "Unconfined"}
    name = _filter_name(plan)
    return {"type": "Localhost", "localhostProfile": name} if name else {"type": "RuntimeDefault"}


def _filter_name(plan: Plan) -> str:
    """Return the name of the seccomp profile's file below a kubelet's directory; "" where the plan names none."""
    file = seccomp_file(plan)
    return f"profiles/{posixpath.basename(file)}" if file else ""


def _unsaid(plan: Plan, *, compose: bool) -> list[str]:
    """Return what the form cannot say."""
    notes = []
    if not compose and (file := seccomp_file(plan)):
        notes.append(f"{file} must be on each node as /var/lib/kubelet/seccomp/{_filter_name(plan)}.")  # fmt: skip
    if plan.cdi_devices or (plan.devices and not compose):
        notes.append("Device nodes come from the vendor's device plugin or CDI, not from here.")
    if plan.secrets:
        paths = ", ".join(secret.target for secret in plan.secrets)
        notes.append(f"The job reads secrets that rocmrun hands over, at {one_line(paths)}: not from here.")  # fmt: skip
    if compose:
        if not plan.masks:
            notes.append("systempaths=unconfined has no word here.")
        return notes
    if own := [u for u in plan.ulimits if u.name not in {"core", "nofile", "nproc"}]:
        names = ", ".join(u.name for u in own)
        notes.append(f"Kubernetes sets no ulimits ({names}): they are the runtime's.")
    if plan.network in {"none", "bridge"}:
        notes.append("A Pod has a network; a NetworkPolicy closes it.")
    if plan.tmpfs:
        notes.append("An emptyDir in memory is lost with the Pod, counts as the container's memory, and has no noexec.")  # fmt: skip
    notes.append("Mounts and environment are the job's.")
    return notes
