"""What of a host, an engine, a plan and an image goes into a support bundle. What is not named here does not."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts
from rocmrun.core.host_json import host_to_json
from rocmrun.core.image_report import Declared, ImageReport
from rocmrun.core.lock import LockedFacts
from rocmrun.core.plan import Plan
from rocmrun.core.profile.model import Profile
from rocmrun.core.redaction import Redactor
from rocmrun.core.secret_names import names_secret

# Parameters of the kernel that decide something about GPUs, memory, isolation.
_PARAMETERS = re.compile(
    r"(?:amdgpu|amdkfd|drm|amd_iommu|intel_iommu|iommu|pcie?|pcie_\w+|numa\w*|cgroup\w*|systemd\.unified_cgroup_hierarchy"
    r"|hugepages\w*|default_hugepagesz|transparent_hugepage|mem|maxcpus|isolcpus|nohz\w*|selinux|apparmor|security|lsm"
    r"|lockdown|mitigations|nomodeset|modprobe\.blacklist|rd\.driver\.blacklist|module_blacklist|swapaccount|kvm\w*"
    r"|processor\.max_cstate|quiet|ro|rw|nosmt)(?:\.[\w.]+)?(?:=\S*)?"
)
# Variables that libraries for GPUs, and the search for programs and caches, are steered by.
_VARIABLES = re.compile(
    r"(?:HSA|HIP|HCC|ROCR|ROCM|AMD|AMDGPU|GPU|CUDA|NVIDIA|NCCL|RCCL|GLOO|MIOPEN|ROCBLAS|HIPBLASLT|TENSILE|TORCH|TORCHINDUCTOR"
    r"|PYTORCH|TRITON|VLLM|SGLANG|FLASH_ATTENTION|OMP|MKL|NUMBA|XDG|PYTHON|HF_HUB|HF_HOME|TRANSFORMERS|LD)_?\w*"
    r"|MASTER_ADDR|MASTER_PORT|WORLD_SIZE|RANK|LOCAL_RANK|HOME|PATH|TMPDIR|MPLCONFIGDIR|USER|LOGNAME"
)
_PLAN = (
    "uid", "gid", "groups", "tmpfs", "env_from", "network", "ipc", "pid", "shm_size_bytes", "memory_bytes",
    "pids", "cpus", "cpuset_cpus", "cpuset_mems", "ulimits", "sysctls", "cap_add", "no_new_privileges", "apparmor",
    "selinux_label", "read_only_root", "masks", "stop_timeout_seconds", "log_size_bytes", "restart", "notes",
    "isolation", "interactive", "tty",
)  # fmt: skip
_ENGINE = (
    "kind", "version", "api_version", "address", "components", "kernel", "operating_system", "architecture",
    "security_options", "default_runtime", "runtimes", "cgroup_driver", "cgroup_version", "root_directory",
    "cdi_spec_dirs", "cdi_devices", "memory_limit", "pids_limit", "swap_limit",
)  # fmt: skip
_PROBE = ("level", "reuse", "runtime", "timeout_seconds", "accelerator")
_OPTION = re.compile(r"(-{1,2}[A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_NUMBER = re.compile(r"-?\d{1,7}(?:\.\d{1,7})?[kKmMgGtT]?(?:i?B)?")


def is_gpu_variable(name: str) -> bool:
    """Whether the value of a variable says something about GPUs, and not about who uses them."""
    return bool(_VARIABLES.fullmatch(name)) and not names_secret(name)


def host_facts(host: HostFacts, redactor: Redactor) -> dict[str, Any]:
    """Return a host as `rocmrun host --json` has it, without its name and its GPUs' ids."""
    values = host_to_json(replace(host, hostname=None, cmdline=_cmdline(host.cmdline)))
    values["root"] = "/" if host.root == "/" else "/<root>"
    for gpu in values["gpus"]:
        for name in ("unique_id", "hive_id"):
            gpu[name] = redactor.gpu(gpu[name]) if gpu[name] else gpu[name]
    shown: dict[str, Any] = redactor.value(values)
    return {name: _with_node_paths(value) for name, value in shown.items()}


def _cmdline(text: str | None) -> str | None:
    if text is None:
        return None
    return " ".join(word for word in text.split() if _PARAMETERS.fullmatch(word))


def _with_node_paths(value: Any) -> Any:
    """Take the directory that was read in place of "/" out of the nodes' places."""
    if isinstance(value, list):
        return [_with_node_paths(each) for each in value]
    if not isinstance(value, dict):
        return value
    shown = {key: _with_node_paths(each) for key, each in value.items()}
    return {**shown, "host_path": shown["path"]} if "host_path" in shown else shown


def engine_facts(engine: EngineFacts, redactor: Redactor) -> dict[str, Any]:
    """Return what the engine says of itself, without its name."""
    values: dict[str, Any] = redactor.value({name: getattr(engine, name) for name in _ENGINE})
    values["mirrors"] = [redactor.alias("registry", mirror) for mirror in engine.mirrors]
    return values


def kind_of_host(host: HostFacts | None, redactor: Redactor) -> str:
    """Return what kind of machine it was, in words."""
    if host is None:
        return "not looked at"
    targets = ", ".join(dict.fromkeys(gpu.gfx or "gfx unknown" for gpu in host.gpus))
    count = len(host.gpus)
    gpus = f"{count} GPU{'s' if count > 1 else ''} ({targets})" if count else "no AMD GPU"
    words = (host.os_name or "unknown system", host.architecture, f"kernel {host.kernel}", gpus)
    return redactor.text(", ".join(word for word in words if word))


def profile_facts(name: str, profile: Profile, redactor: Redactor) -> dict[str, Any]:
    """Return what a profile asks for, whether or not a plan can be made of it."""
    return {
        "name": redactor.text(name),
        "accelerator": profile.accelerator,
        "image": redactor.image(profile.image.ref or ""),
        "select": redactor.value(list(profile.gpus.select)),
        "inject": profile.gpus.inject,
        "user": redactor.text(profile.container.user),
        "network": profile.container.network,
        "devices": [redactor.text(device.path) for device in profile.devices],
        "privileges": [redactor.text(entry.grant) for entry in profile.privileges],
        "probe": profile.probe.level,
    }


def plan_facts(plan: Plan, redactor: Redactor) -> dict[str, Any]:
    """Return what people need of a plan: its rights and limits, the shape of its command, names of variables."""
    values = asdict(plan)
    shown: dict[str, Any] = redactor.value({name: values[name] for name in _PLAN})
    return {
        "image": image_name(plan.image.ref, plan.image.digest, redactor),
        "platform": plan.image.platform,
        "entrypoint": None if plan.entrypoint is None else command(plan.entrypoint, redactor),
        "command": command(plan.command, redactor),
        "workdir": redactor.path(plan.workdir),
        **shown,
        "devices": [
            {"path": device.path, "permissions": device.permissions, "cdi": device.cdi}
            for device in plan.devices
        ],
        "gpus": [
            {**redactor.value({key: held for key, held in gpu.items() if key != "unique_id"})}
            for gpu in values["gpus"]
        ],
        "mounts": [
            {**mount, "source": _source(mount, redactor), "target": redactor.path(mount["target"])}
            for mount in values["mounts"]
        ],
        "ports": [
            f"{redactor.text(port.address)}:{port.host_port}:{port.container_port}/{port.protocol}"
            for port in plan.ports
        ],
        "env": variables(dict(plan.env), redactor),
        "secrets": len(plan.secrets),
        "seccomp": plan.seccomp if plan.seccomp in {None, "unconfined"} else "a profile of its own",
        "grants": [
            {"what": redactor.text(grant.what), "asked_by": redactor.text(grant.asked_by)}
            for grant in plan.grants
        ],
        "probe": {name: values["probe"][name] for name in _PROBE},
    }


def _source(mount: Mapping[str, Any], redactor: Redactor) -> str:
    source = str(mount["source"])
    return redactor.path(source) if mount["kind"] == "bind" else redactor.alias("volume", source)


def image_name(ref: str, digest: str | None, redactor: Redactor) -> str:
    """Return an image's reference with its digest, as far as both are public."""
    return redactor.image(f"{ref}@{digest}" if digest else ref)


def image_facts(image: ImageReport, redactor: Redactor) -> ImageReport:
    """Return what an image says of itself."""
    return replace(
        image,
        user=image.user if _is_number(image.user) else "<user>",
        entrypoint=tuple(command(image.entrypoint, redactor)),
        command=tuple(command(image.command, redactor)),
        volumes=tuple(map(redactor.path, image.volumes)),
        declared=tuple(_declared(image.declared, redactor)),
    )


def _declared(declared: Iterable[Declared], redactor: Redactor) -> Iterable[Declared]:
    for each in declared:
        if each.fact == "user" and not _is_number(each.value):
            continue
        yield replace(each, value=redactor.text(each.value), source=redactor.text(each.source))


def _is_number(user: str) -> bool:
    return not user.strip("0123456789:") or user in {"root", "nobody"}


def claims_facts(claimed: LockedFacts | None, redactor: Redactor) -> LockedFacts | None:
    """Return an image's claims; one that would have to be masked is left out."""
    if claimed is None:
        return None
    values = claimed.model_dump(exclude_defaults=True, exclude={"user", "sources"})
    kept = {name: value for name, value in values.items() if _same(value, redactor)}
    sources = {
        name: source
        for name, source in claimed.sources.items()
        if name in kept and _same(source, redactor)
    }
    return LockedFacts.model_validate({**kept, "sources": sources})


def _same(value: Any, redactor: Redactor) -> bool:
    return bool(redactor.value(value) == (list(value) if isinstance(value, tuple) else value))


def variables(environment: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """Return variables by name; values only of those that steer GPU libraries, programs and caches."""
    return {
        redactor.text(name): redactor.text(value) if is_gpu_variable(name) else "<value>"
        for name, value in environment.items()
    }


def command(words: Iterable[str], redactor: Redactor) -> list[str]:
    """Return a command's shape: options, numbers, paths and public words; whatever else was said is left out."""
    return [_word(word, redactor) for word in words]


def _word(word: str, redactor: Redactor) -> str:
    option = _OPTION.fullmatch(word)
    if option:
        name, value = option.groups()
        shown = redactor.text(name)
        return shown if value is None else f"{shown}={_word(value, redactor)}"
    if _NUMBER.fullmatch(word) or redactor.is_public(word):
        return word
    return redactor.path(word) if word.startswith("/") else "<word>"
