"""Decide what a profile needs on this host. Pure: same inputs, same plan. Every decision lives here and beside."""

import ipaddress

from rocmrun import __version__
from rocmrun.core import baseline
from rocmrun.core.host import Gpu
from rocmrun.core.identity import Identity
from rocmrun.core.image_user import numeric_ids
from rocmrun.core.plan import Plan, PlannedPort, ProbeSettings
from rocmrun.core.planning.checks import planned_check
from rocmrun.core.planning.devices import (
    choose_gpus,
    isolation_grade,
    plan_devices,
    plan_groups,
    planned_gpus,
)
from rocmrun.core.planning.draft import Draft, PlanRequest
from rocmrun.core.planning.environment import note_image, plan_environment
from rocmrun.core.planning.health import plan_health
from rocmrun.core.planning.podman import cgroup_namespace
from rocmrun.core.planning.secrets import plan_secrets
from rocmrun.core.planning.security import plan_security
from rocmrun.core.planning.storage import plan_cache, plan_mounts, plan_tmpfs
from rocmrun.core.policy import check_policy
from rocmrun.core.probing.image import WHOSE, named
from rocmrun.core.recipe import left_out
from rocmrun.core.text import MIB, human_size
from rocmrun.errors import PlanRefused, ProfileInvalid

LEAST_MEMORY = 6 * MIB  # github.com/moby/moby, daemon_unix.go: linuxMinMemory


def make_plan(request: PlanRequest) -> Plan:
    """Return the container that *request* asks for, with a reason for every right.

    Raises:
        RocmrunError: the host, the profile or the policy does not allow it.
    """
    draft = Draft(request=request)
    uid, gid = _user(draft)
    gpus = choose_gpus(draft)
    devices, nodes = plan_devices(draft, gpus)
    groups = plan_groups(draft, nodes, uid)
    security = plan_security(draft, uid)
    memory = _memory(draft)
    mounts = plan_mounts(draft)
    cache = plan_cache(draft, gpus, uid)
    mounts = tuple(sorted((*mounts, cache))) if cache else mounts
    tmpfs = plan_tmpfs(draft, mounts, memory)
    network, ports = _network(draft)
    who = Identity(uid=uid, groups=frozenset({gid, *groups, *security.groups}))
    environment = plan_environment(draft, gpus, devices, who, network)
    note_image(draft, gpus, environment)
    container = request.profile.container
    plan = Plan(
        profile=request.name,
        image=request.image,
        entrypoint=container.entrypoint,
        command=container.command or (),
        workdir=container.workdir or "",
        uid=uid,
        gid=gid,
        groups=tuple(sorted({*groups, *security.groups})),
        gpus=planned_gpus(gpus),
        devices=devices,
        mounts=mounts,
        tmpfs=tmpfs,
        env=environment,
        env_from=_env_from(draft),
        secrets=plan_secrets(draft),
        network=network,
        ports=ports,
        hostname=baseline.HOSTNAME if network == "none" else None,
        # Both are needed with no network: without the entry the host name does not resolve and torchrun hangs.
        extra_hosts=(f"{baseline.HOSTNAME}:127.0.0.1",) if network == "none" else (),
        ipc=security.ipc,
        pid=security.pid,
        shm_size_bytes=_shm(draft, gpus, memory, security.ipc),
        memory_bytes=memory,
        pids=container.pids,
        cpus=container.cpus,
        cpuset_cpus=_cpuset(draft, gpus)[0],
        cpuset_mems=_cpuset(draft, gpus)[1],
        ulimits=security.ulimits,
        sysctls=security.sysctls,
        cap_add=security.cap_add,
        no_new_privileges=security.no_new_privileges,
        seccomp=security.seccomp,
        apparmor=security.apparmor,
        selinux_label=security.selinux_label,
        read_only_root=security.read_only_root,
        masks=security.masks,
        stop_timeout_seconds=container.stop_timeout,
        log_size_bytes=container.log_size.bytes,
        restart=_restart(draft),
        grants=(),
        left_out=(),
        notes=(),
        isolation=isolation_grade(draft, gpus, devices, environment),
        probe=_probe(draft),
        interactive=request.interactive,
        tty=request.tty,
        health=plan_health(draft),
        labels=_labels(request),
        engine="podman" if request.engine and request.engine.podman else "docker",
        cgroup_namespace=cgroup_namespace(draft),
    )
    image_workdir = request.image_facts.workdir if request.image_facts else ""
    check_policy(
        plan,
        request.engine,
        request.paths,
        nodes,
        request.volumes,
        workdir=plan.workdir or image_workdir,
    )
    return plan.with_changes(
        grants=tuple(sorted(draft.grants)), left_out=left_out(plan), notes=tuple(draft.notes)
    )


def _user(draft: Draft) -> tuple[int, int]:
    """Return the numeric uid and gid inside; root only where it is granted."""
    request = draft.request
    asked = draft.asked("user")
    if asked:
        draft.record(asked[-1])
        return 0, 0
    wanted = request.profile.container.user
    if wanted == "caller":
        return request.caller.container_ids
    uid, gid = _image_user(request) if wanted == "image" else map(int, wanted.split(":"))
    if uid == 0:
        who = "the image's USER is root" if wanted == "image" else f'user = "{wanted}" is root'
        msg = f"{who}, which the profile does not grant"
        raise PlanRefused(
            msg,
            hint='leave out [container] user, or add [[privileges]] grant = "user:root" with a reason',
        )
    if gid == 0:
        draft.grant(
            "group:0", f'user = "{wanted}" has group root', request.asked_by("container.user")
        )
    return uid, gid


def _image_user(request: PlanRequest) -> tuple[int, int]:
    if request.image_ids is not None:
        return request.image_ids
    text = request.image_facts.user if request.image_facts else ""
    if not text:
        return 0, 0
    # A name is looked up by the use case, which can read the image; offline it stays unknown.
    return numeric_ids(text) or request.caller.container_ids


def _memory(draft: Draft) -> int | None:
    total = draft.request.host.memory_bytes
    limit = draft.request.profile.container.memory
    if total is None and limit.bytes is None:
        draft.note("the host's memory is unknown: no memory limit")
        return None
    wanted = limit.of(total or 0)
    # Limits are kept in whole pages by the kernel; a round number is what inspect shows again.
    wanted -= wanted % 4096
    if wanted < LEAST_MEMORY:
        msg = f"{draft.request.asked_by('container.memory')}: {human_size(limit.of(total or 0))} is less than a container can have"
        raise ProfileInvalid(
            msg, hint=f"{human_size(LEAST_MEMORY)} is the least that engines accept"
        )
    engine = draft.request.engine
    if engine is not None and not engine.memory_limit:
        draft.note("this engine cannot limit memory: the kernel's memory cgroup is off")
        return None
    return wanted


def _shm(draft: Draft, gpus: tuple[Gpu, ...], memory: int | None, ipc: str) -> int:
    if ipc == "host":
        return 0
    asked = draft.request.profile.container.shm_size
    size = asked.bytes if asked else baseline.shm_size(len(gpus), memory)
    reason = "RCCL and data loaders share memory here"
    draft.grant(
        f"shm:{size}",
        f"{reason}, {human_size(size)}",
        draft.request.asked_by("container.shm_size") if asked else "baseline",
    )
    return size


def _network(draft: Draft) -> tuple[str, tuple[PlannedPort, ...]]:
    request = draft.request
    container = request.profile.container
    if container.network == "bridge":
        draft.grant(
            "network:bridge",
            "the container reaches the network through the engine's bridge",
            request.asked_by("container.network"),
        )
    if container.network == "host":
        for asked in draft.asked("network")[-1:]:
            draft.record(asked)
    ports = []
    for index, port in enumerate(container.ports):
        local = ipaddress.ip_address(port.address).is_loopback
        draft.grant(
            f"port:{port.address}:{port.host_port}:{port.container_port}/{port.protocol}",
            "reachable from this host alone" if local else "reachable from the network",
            request.asked_by(f"container.ports[{index}]"),
        )
        ports.append(
            PlannedPort(
                address=port.address,
                host_port=port.host_port,
                container_port=port.container_port,
                protocol=port.protocol,
            )
        )
    return container.network, tuple(sorted(ports))


def _env_from(draft: Draft) -> tuple[str, ...]:
    names = draft.request.profile.container.env_from
    for index, name in enumerate(names):
        if name in names[:index]:
            continue
        draft.grant(
            f"env-from:{name}",
            "the caller's value, never shown or recorded",
            draft.request.asked_by(f"container.env_from[{index}]"),
        )
    return tuple(sorted(set(names)))


def _restart(draft: Draft) -> str:
    restart = draft.request.profile.container.restart
    if restart != "no":
        draft.grant(
            f"restart:{restart}",
            "the engine starts it again when it fails",
            draft.request.asked_by("container.restart"),
        )
    return restart


def _cpuset(draft: Draft, gpus: tuple[Gpu, ...]) -> tuple[str, str]:
    """Return processors and memory nodes next to the GPUs, in the kernel's list form; "" is all."""
    if draft.request.profile.container.numa != "gpu":
        return "", ""
    wanted = {gpu.numa_node for gpu in gpus}
    nodes = [node for node in draft.request.host.numa_nodes if node.node in wanted]
    if not nodes or len(wanted) != len(nodes):
        draft.note('numa = "gpu" has no effect: the NUMA node of the GPUs is unknown')
        return "", ""
    return ",".join(node.cpus for node in nodes if node.cpus), ",".join(
        str(node.node) for node in nodes
    )


def _probe(draft: Draft) -> ProbeSettings:
    probe, image = draft.request.profile.probe, draft.request.probe_image
    if image is not None:
        draft.note(f"the probe runs in {named(image)} with this plan's rights: {WHOSE}")
    if probe.operators and probe.level == "quick":
        draft.note('launch does not try probe.operators: its probe.level is "quick"')
    return ProbeSettings(
        level=probe.level,
        reuse=probe.reuse,
        python=probe.python,
        runtime=probe.runtime,
        image=image,
        timeout_seconds=probe.timeout_seconds,
        accelerator=draft.request.profile.accelerator,
        operators=tuple(dict.fromkeys(probe.operators)),
        checks=tuple(planned_check(check, draft.request.check_files) for check in probe.checks),
    )


def _labels(request: PlanRequest) -> tuple[tuple[str, str], ...]:
    labels = {
        "io.rocmrun.profile": request.name,
        "io.rocmrun.ref": request.image.ref,
        "io.rocmrun.digest": request.image.digest or "",
        "io.rocmrun.version": __version__,
    }
    return tuple(sorted(labels.items()))
