"""The same container as a `docker run` line that works without rocmrun."""

import shlex

from rocmrun.core.create_request import tmpfs_options
from rocmrun.core.plan import Plan, PlannedMount, PlannedSecret
from rocmrun.core.text import before_port


def docker_run_arguments(plan: Plan, *, detach: bool = False) -> tuple[str, ...]:
    """Return the argument vector of a `docker run` with *plan*'s rights.

    Not sayable on that command line: an entrypoint of several words (the rest moves in front of the
    command: the process started is the same), a seccomp profile by value (`docker_run_line` names
    its file) and a health check without a shell.
    """
    entrypoint = plan.entrypoint or ()
    return (
        plan.engine, "run",
        *_life(plan, detach=detach),
        *_streams(plan),
        *_health(plan),
        "--pull", "never", "--platform", plan.image.platform,
        "--user", plan.user,
        *(f"--group-add={group}" for group in plan.groups),
        "--cap-drop", "ALL",
        *(f"--cap-add={capability}" for capability in plan.cap_add),
        *_security(plan),
        *(("--read-only",) if plan.read_only_root else ()),
        "--init",
        *_namespaces(plan),
        *(f"--device={d.host_path}:{d.path}:{d.permissions}" for d in plan.devices if not d.cdi),
        *(f"--device={name}" for name in plan.cdi_devices),
        *(word for mount in plan.mounts for word in _mount(mount)),
        *(word for secret in plan.secrets for word in _secret(secret)),
        *(f"--tmpfs={tmpfs.target}:{tmpfs_options(tmpfs, plan)}" for tmpfs in plan.tmpfs),
        *_limits(plan),
        *(f"--publish={before_port(p.address)}:{p.host_port}:{p.container_port}/{p.protocol}" for p in plan.ports),
        *(f"--env={name}={value}" for name, value in plan.env if name not in plan.env_from),
        *(f"--env={name}" for name in plan.env_from),
        *(("--workdir", plan.workdir) if plan.workdir else ()),
        "--stop-timeout", str(plan.stop_timeout_seconds),
        *_log(plan, detach=detach),
        *_entrypoint(plan),
        image_name(plan),
        *entrypoint[1:],
        *plan.command,
    )  # fmt: skip


def docker_run_line(plan: Plan) -> str:
    """Return `docker_run_arguments` as one line to paste into bash."""
    words = []
    for word in docker_run_arguments(plan):
        if word.startswith("--security-opt=seccomp={"):
            # The CLI wants a file where the API takes the text.
            words.append(_quote(f"--security-opt=seccomp={seccomp_file(plan)}"))
        else:
            words.append(_quote(word))
    return " ".join(words)


def seccomp_file(plan: Plan) -> str:
    """Return the file of the seccomp profile that a grant names; "" where none does."""
    named = (g.what.removeprefix("seccomp:") for g in plan.grants if g.what.startswith("seccomp:"))
    return next((file for file in named if "/" in file), "")


def _quote(word: str) -> str:
    """Return *word* for bash; what a terminal would obey or hide is written in $'…', byte by byte."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def image_name(plan: Plan) -> str:
    """Return the image by digest where one is locked: what `docker run` can start without rocmrun."""
    name = plan.image.ref.partition("@")[0]
    repository = name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name
    if plan.image.source == "local" or not plan.image.digest:
        return plan.image.image_id or plan.image.ref
    return f"{repository}@{plan.image.digest}"


def _life(plan: Plan, *, detach: bool) -> tuple[str, ...]:
    """A container that the engine starts again cannot be removed when it ends."""
    if plan.restart != "no":
        return (*(("--detach",) if detach else ()), "--restart", plan.restart)
    return ("--detach",) if detach else ("--rm",)


def _streams(plan: Plan) -> tuple[str, ...]:
    return (*(("--interactive",) if plan.interactive else ()), *(("--tty",) if plan.tty else ()))


def _health(plan: Plan) -> tuple[str, ...]:
    health = plan.health
    if health is None:
        return ("--no-healthcheck",)
    return (
        *((f"--health-cmd={shlex.join(health.command)}",) if health.command else ()),
        f"--health-interval={health.interval_seconds}s",
        f"--health-timeout={health.timeout_seconds}s",
        f"--health-retries={health.retries}",
        f"--health-start-period={health.start_period_seconds}s",
    )


def _security(plan: Plan) -> tuple[str, ...]:
    options = []
    if plan.no_new_privileges:
        options.append("--security-opt=no-new-privileges:true")
    if plan.seccomp:
        options.append(f"--security-opt=seccomp={plan.seccomp}")
    if plan.apparmor:
        options.append(f"--security-opt=apparmor={plan.apparmor}")
    if plan.selinux_label:
        options.append(f"--security-opt=label={plan.selinux_label}")
    if not plan.masks:
        options.append("--security-opt=systempaths=unconfined")
    return tuple(options)


def _namespaces(plan: Plan) -> tuple[str, ...]:
    return (
        "--network", plan.network,
        "--ipc", plan.ipc,
        "--cgroupns", plan.cgroup_namespace,
        *(("--pid", plan.pid) if plan.pid != "private" else ()),
        *(("--hostname", plan.hostname) if plan.hostname else ()),
        *(f"--add-host={entry}" for entry in plan.extra_hosts),
        *(f"--sysctl={key}={value}" for key, value in plan.sysctls),
    )  # fmt: skip


def _secret(secret: PlannedSecret) -> tuple[str, ...]:
    """Return the mount of a secret that is a file; of a variable's value the plan's note says what to do."""
    kind, _, path = secret.source.partition(":")
    return _mount(PlannedMount(target=secret.target, source=path)) if kind == "file" else ()


def _mount(mount: PlannedMount) -> tuple[str, ...]:
    access = "ro" if mount.read_only else "rw"
    if mount.kind == "bind" and mount.selinux != "none":
        label = "z" if mount.selinux == "shared" else "Z"
        return (f"--volume={mount.source}:{mount.target}:{access},{label},rprivate",)
    words = [f"type={mount.kind}", f"source={mount.source}", f"target={mount.target}"]
    if mount.read_only:
        words.append("readonly")
    if mount.kind == "bind":
        words.append("bind-propagation=rprivate")
    return (f"--mount={','.join(_csv(word) for word in words)}",)


def _csv(word: str) -> str:
    return '"' + word.replace('"', '""') + '"' if "," in word or '"' in word else word


def _limits(plan: Plan) -> tuple[str, ...]:
    memory = (f"--memory={plan.memory_bytes}", f"--memory-swap={plan.memory_bytes}")
    return (
        *((f"--shm-size={plan.shm_size_bytes}",) if plan.ipc != "host" else ()),
        *(memory if plan.memory_bytes else ()),
        f"--pids-limit={plan.pids}",
        *((f"--cpus={plan.cpus:.9f}".rstrip("0").rstrip("."),) if plan.cpus else ()),
        *((f"--cpuset-cpus={plan.cpuset_cpus}",) if plan.cpuset_cpus else ()),
        *((f"--cpuset-mems={plan.cpuset_mems}",) if plan.cpuset_mems else ()),
        *(f"--ulimit={limit.name}={limit.soft}:{limit.hard}" for limit in plan.ulimits),
    )


def _log(plan: Plan, *, detach: bool) -> tuple[str, ...]:
    if not detach:
        return ("--log-driver=none",)
    return (
        "--log-driver=json-file",
        "--log-opt=max-file=1",
        f"--log-opt=max-size={plan.log_size_bytes}",
    )


def _entrypoint(plan: Plan) -> tuple[str, ...]:
    if plan.entrypoint is None:
        return ()
    return ("--entrypoint", plan.entrypoint[0] if plan.entrypoint else "")
