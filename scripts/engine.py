"""A Docker engine: the one that already answers, never touched, or one that we start as root."""

import os
import time
from pathlib import Path

from scripts import background, packages
from scripts.commands import SetupError, find, last_lines, output, run, say

RECORD = "dockerd.json"
SERVICE = "docker.service"
ANSWER_SECONDS = 20.0
START_SECONDS = 60.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.2

# Tried in this order. The first is what any machine should take; the others are for kernels and
# containers without netfilter or bridges. `--bridge=none` deletes the docker0 of an engine that
# runs beside it, which is one reason never to start a second.
WAYS: tuple[tuple[str, ...], ...] = (
    (),
    ("--iptables=false", "--ip6tables=false", "--ip-masq=false"),
    ("--iptables=false", "--ip6tables=false", "--ip-masq=false", "--bridge=none"),
)


def version() -> str | None:
    """Return the version of the engine that answers, at DOCKER_HOST, the context or the socket."""
    if find("docker") is None:
        return None
    try:
        ask = ["docker", "version", "--format", "{{.Server.Version}}"]
        return output(ask, timeout_seconds=ANSWER_SECONDS)
    except SetupError as error:
        if "permission denied" in str(error).lower():
            msg = "the Docker engine refuses this user"
            raise SetupError(msg, hint="run as root, or: sudo usermod -aG docker $USER") from error
        return None


def ensure(
    *,
    state: Path,
    logs: Path,
    is_root: bool,
    root: Path = Path("/"),
    settle_seconds: float = 10.0,
) -> None:
    """Leave with an engine that answers.

    Raises:
        SetupError: none answers and none may or can be started.
    """
    running = _dockerd_pid(root)
    # The installation of the package may have started it a moment ago.
    answered = version() if running is None else _wait_for_answer(settle_seconds)
    if answered is not None:
        say(f"engine: Docker {answered} answers, left as it is")
        return
    _refuse_where_it_is_not_ours_to_start(running, is_root=is_root)
    state.mkdir(parents=True, exist_ok=True)
    if (root / "run/systemd/system").is_dir():
        _start_service(state=state, log=logs / "engine.log")
        return
    _mount_cgroups(root, log=logs / "engine.log")
    _drop_stale_pid_files(root)
    for options in WAYS:
        how = " ".join(("dockerd", *options))
        failed = _start(options, state=state, log=logs / "dockerd.log")
        if failed is None:
            say(f"engine: Docker {version()} started as `{how}`")
            return
        say(f"engine: `{how}` did not start: {failed.strip()}")
    msg = "dockerd does not start on this machine"
    raise SetupError(msg, hint=f"less {logs}/dockerd.log")


def stop(*, state: Path, logs: Path) -> None:
    """Stop the engine if it is the one that we started."""
    service = state / SERVICE
    started_at = service.read_text(encoding="utf-8") if service.exists() else None
    service.unlink(missing_ok=True)
    if started_at == background.boot_id():
        run(["systemctl", "stop", "docker.socket", "docker.service"], log=logs / "engine.log")
        say("engine: docker.service stopped")
        return
    stopped = background.stop(state / RECORD, timeout_seconds=STOP_SECONDS)
    if stopped is None:
        say("engine: none was started here, nothing to stop")
    else:
        say(f"engine: dockerd stopped (pid {stopped.pid})")


def _refuse_where_it_is_not_ours_to_start(running: str | None, *, is_root: bool) -> None:
    host = os.environ.get("DOCKER_HOST")
    if host:
        msg = f"no engine answers at DOCKER_HOST={host}"
        raise SetupError(msg, hint="unset DOCKER_HOST")
    context = output(["docker", "context", "inspect", "--format", "{{.Name}}"])
    if context != "default":
        msg = f"no engine answers in the docker context {context}"
        raise SetupError(msg, hint="docker context use default")
    if running is not None:
        msg = (
            f"dockerd runs (pid {running}) but does not answer here, and a second is never started"
        )
        raise SetupError(msg, hint="export DOCKER_HOST=unix:///the/socket/that/it/listens/on")
    if not is_root:
        msg = "no Docker engine answers, and only root can start one"
        raise SetupError(msg, hint="sudo make demo")


def _dockerd_pid(root: Path) -> str | None:
    for process in (root / "proc").glob("[0-9]*"):
        if _program(process) == "dockerd":
            return process.name
    return None


def _start_service(*, state: Path, log: Path) -> None:
    run(["systemctl", "start", "docker.service"], log=log)
    (state / SERVICE).write_text(background.boot_id(), encoding="utf-8")
    answered = _wait_for_answer(START_SECONDS)
    if answered is None:
        msg = f"docker.service was started but does not answer within {START_SECONDS:.0f} s"
        raise SetupError(msg, hint="journalctl -u docker.service")
    say(f"engine: Docker {answered} started with systemctl")


def _mount_cgroups(root: Path, *, log: Path) -> None:
    """Mount control groups where no service manager did; dockerd does not start without."""
    mounted = root / "sys/fs/cgroup"
    if not any((mounted / name).exists() for name in ("cgroup.controllers", "devices")):
        packages.require("cgroupfs-mount", log=log)
        say("engine: no control groups are mounted, running cgroupfs-mount")
        run(["cgroupfs-mount"], log=log)


def _start(options: tuple[str, ...], *, state: Path, log: Path) -> str | None:
    """Start dockerd and return None once it answers, or why it did not."""
    record = state / RECORD
    background.start(["dockerd", *options], log=log, record=record)
    if _wait_for_answer(START_SECONDS, record) is not None:
        return None
    background.stop(record, timeout_seconds=STOP_SECONDS)
    said = last_lines(log)
    return next((line for line in said.splitlines() if "failed to start" in line), said)


def _wait_for_answer(seconds: float, record: Path | None = None) -> str | None:
    """Return the engine's version once it answers; None when time is up or *record*'s process ends."""
    deadline = time.monotonic() + seconds
    while True:
        answered = version()
        if answered is not None:
            return answered
        if time.monotonic() > deadline or (record and background.running(record) is None):
            return None
        time.sleep(POLL_SECONDS)


def _drop_stale_pid_files(root: Path) -> None:
    """Remove what a killed dockerd left: it does not start while another process has that number."""
    for path, name in (
        (root / "var/run/docker.pid", "dockerd"),
        (root / "var/run/docker/containerd/containerd.pid", "containerd"),
    ):
        pid = _read(path)
        if pid is not None and _program(root / "proc" / pid) != name:
            path.unlink()


def _program(process: Path) -> str | None:
    """Return the name of the program that a process runs; one that ended has no command line."""
    return Path((_read(process / "cmdline") or "").partition("\0")[0]).name or None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:  # a process can end in between
        return None
