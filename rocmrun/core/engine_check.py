"""What inspect cannot show, judged from what the engine says of itself: another kernel, another runtime, no seccomp.

Refused is what would make the plan untrue; what weakens or changes it in a way that a person can
accept is named in a note.
"""

from collections.abc import Iterator

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts
from rocmrun.core.plan import Plan
from rocmrun.core.stricter import KNOWN_RUNTIMES
from rocmrun.errors import EngineUnsuitable

OWN_SECCOMP = frozenset({"default", "builtin"})
UNCONFINED = "unconfined"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Why a runtime cannot do the job, by what its name begins with.
_RUNTIMES = {
    "runsc": "gVisor's own kernel has no /dev/kfd",
    "kata": "Kata's virtual machine has no GPU of this host",
    "sysbox": "Sysbox maps every id, so that nobody inside can open the GPU's nodes",
    "amd": "AMD's runtime adds card nodes, and GPUs that an image's AMD_VISIBLE_DEVICES asks for",
    "nvidia": "NVIDIA's runtime adds nodes, and GPUs that an image's NVIDIA_VISIBLE_DEVICES asks for",
}
_LOCAL_ENGINE = "point DOCKER_HOST at an engine of this host: unix:///var/run/docker.sock"


def check_engine(engine: EngineFacts, host: HostFacts, plan: Plan) -> tuple[str, ...]:
    """Return what to say about *engine* under *plan*, one sentence each.

    Raises:
        EngineUnsuitable: containers of this engine would not be what *plan* says.
    """
    _refuse_another_machine(engine, host, plan)
    _refuse_another_runtime(engine)
    _refuse_without_seccomp(engine, plan)
    _refuse_without_limits(engine)
    return tuple(_notes(engine, host, plan))


def _refuse_another_machine(engine: EngineFacts, host: HostFacts, plan: Plan) -> None:
    """Node owners, group numbers and mount sources are this host's: they mean nothing on another."""
    if engine.desktop:
        msg = "the engine is Docker Desktop: its containers run in a virtual machine, which has no AMD GPU of this host"
        raise EngineUnsuitable(msg, hint="install Docker Engine on this host, and use its context")
    if engine.snap:
        msg = "the engine is a snap package: its confinement hides this host's device nodes and directories"
        raise EngineUnsuitable(msg, hint="sudo snap remove docker, then install Docker Engine")
    if not _needs_this_host(plan):
        return
    if not _is_local(engine.address):
        msg = f"the engine at {engine.address} is on another machine: device owners, groups and mount sources were read on this one"
        raise EngineUnsuitable(msg, hint=f"run rocmrun there, or {_LOCAL_ENGINE}")
    if engine.same_kernel(host) is False:
        msg = f"the engine runs on kernel {engine.kernel}, this host on {host.kernel}: device owners and groups would be wrong"
        raise EngineUnsuitable(msg, hint=_LOCAL_ENGINE)


def _needs_this_host(plan: Plan) -> bool:
    return bool(plan.devices) or any(mount.kind == "bind" for mount in plan.mounts)


def _is_local(address: str) -> bool:
    scheme, separator, rest = address.partition("://")
    if not separator or scheme == "unix":
        return True
    place = rest.partition("/")[0].rpartition("@")[2]
    if place.startswith("["):
        return place[1:].partition("]")[0] in LOOPBACK
    return place.partition(":")[0] in LOOPBACK


def _refuse_another_runtime(engine: EngineFacts) -> None:
    runtime = engine.default_runtime or ""
    if runtime not in KNOWN_RUNTIMES:
        why = next(
            (why for name, why in _RUNTIMES.items() if runtime.startswith(name)),
            "what it adds or takes away is not known",
        )
        msg = f"the engine's default runtime is {runtime}: {why}; runc or crun is needed"
        raise EngineUnsuitable(
            msg, hint='set "default-runtime": "runc" in /etc/docker/daemon.json, restart the engine'
        )


def _refuse_without_seccomp(engine: EngineFacts, plan: Plan) -> None:
    profile = engine.seccomp_profile
    own_filter = plan.seccomp is not None and profile is not None
    if plan.seccomp == UNCONFINED or own_filter or profile not in {None, UNCONFINED}:
        return
    what = (
        "has no seccomp" if profile is None else "has an unconfined seccomp profile as its default"
    )
    msg = f"the engine {what}: containers would have every system call"
    raise EngineUnsuitable(
        msg,
        hint="use an engine with its own default profile, or write the right down: "
        '[[privileges]] grant = "seccomp:unconfined" with a reason',
    )


def _refuse_without_limits(engine: EngineFacts) -> None:
    """Podman drops every limit there, ulimits too, and says in /info that it can limit (measured, 4.3.1)."""
    if engine.podman and engine.rootless and engine.cgroup_version == 1:
        msg = "rootless Podman on cgroup v1 keeps no limit of memory, processes or open files"
        raise EngineUnsuitable(
            msg,
            hint="use the rootful socket (DOCKER_HOST=unix:///run/podman/podman.sock), or a host with cgroup v2",
        )


def _notes(engine: EngineFacts, host: HostFacts, plan: Plan) -> Iterator[str]:
    profile = engine.seccomp_profile
    if plan.seccomp is None and profile is not None and profile not in OWN_SECCOMP:
        yield f"the engine's default seccomp profile is the site's own ({profile}): what it allows was not looked at"
    if engine.rootless:
        yield "the engine is rootless: device cgroups do not apply, only the nodes passed keep other GPUs away"
    if engine.userns_remap:
        yield "the engine maps container ids to others (userns-remap): files in mounts belong to other ids than inside"
    if host.apparmor and plan.apparmor is None and "apparmor" not in engine.security_modules:
        yield "the engine does not use AppArmor, which this host has"
    if (
        host.selinux == "enforcing"
        and plan.selinux_label is None
        and "selinux" not in engine.security_modules
    ):
        yield "the engine does not use SELinux, which this host enforces: containers are not confined by it"
    if engine.mirrors and plan.image.source == "registry":
        yield f"the engine pulls from Docker Hub through {', '.join(engine.mirrors)}: what arrives is compared with the locked digest"
    if engine.kernel is None and _needs_this_host(plan):
        yield "the engine does not say on which kernel it runs: that it is this host's was not checked"
