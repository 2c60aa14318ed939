"""A Docker engine: the one that already answers, never touched, or one that we start as root."""

import os
import time
from pathlib import Path

from scripts import background
from scripts.commands import SetupError, find, last_lines, output, run, say

START_SECONDS = 60.0
STOP_SECONDS = 60.0

# Tried in this order. The first is what any machine should take; the others are for kernels and
# containers without netfilter or bridges. `--bridge=none` deletes the docker0 of an engine that
# runs beside it, which is why _refuse_a_second comes first.
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
        return output(["docker", "version", "--format", "{{.Server.Version}}"])
    except SetupError as error:
        if "permission denied" in str(error).lower():
            msg = "the Docker engine refuses this user"
            raise SetupError(msg, hint="run as root, or: sudo usermod -aG docker $USER") from error
        return None


def ensure(*, state: Path, logs: Path) -> None:
    """Leave with an engine that answers.

    Raises:
        SetupError: none answers and none may or can be started.
    """
    answered = version()
    if answered is not None:
        say(f"engine: Docker {answered} answers, left as it is")
        return
    _refuse_where_it_is_not_ours_to_start()
    if Path("/run/systemd/system").is_dir():
        run(["systemctl", "start", "docker.service"], log=logs / "engine.log")
        (state / "docker.service").write_text("started by the set-up\n", encoding="utf-8")
        say(f"engine: Docker {_wait_for_answer()} started with systemctl")
        return
    reasons = []
    for options in WAYS:
        reason = _start(options, state=state, log=logs / "dockerd.log")
        if reason is None:
            how = " ".join(("dockerd", *options))
            say(f"engine: Docker {version()} started as `{how}`")
            return
        say(f"engine: dockerd {' '.join(options)} did not start: {reason.strip()}")
        reasons.append(reason)
    msg = f"dockerd did not start; its last words:\n{reasons[-1]}\n(all of it: {logs}/dockerd.log)"
    hint = "apt-get install cgroupfs-mount && cgroupfs-mount" if "cgroup" in reasons[-1] else None
    raise SetupError(msg, hint=hint)


def stop(*, state: Path, logs: Path) -> None:
    """Stop the engine if it is the one that we started."""
    if (state / "docker.service").exists():
        run(["systemctl", "stop", "docker.socket", "docker.service"], log=logs / "engine.log")
        (state / "docker.service").unlink()
        say("engine: docker.service stopped")
        return
    stopped = background.stop(state / "dockerd.json", timeout_seconds=STOP_SECONDS)
    if stopped is None:
        say("engine: none was started here, nothing to stop")
    else:
        say(f"engine: dockerd stopped (pid {stopped.pid})")


def _refuse_where_it_is_not_ours_to_start() -> None:
    host = os.environ.get("DOCKER_HOST")
    if host:
        msg = f"no engine answers at DOCKER_HOST={host}"
        raise SetupError(msg, hint="unset DOCKER_HOST")
    context = output(["docker", "context", "inspect", "--format", "{{.Name}}"])
    if context != "default":
        msg = f"no engine answers in the docker context {context}"
        raise SetupError(msg, hint="docker context use default")
    if os.geteuid() != 0:
        msg = "no Docker engine answers, and only root can start one"
        raise SetupError(msg, hint="sudo make demo")
    _refuse_a_second()


def _refuse_a_second() -> None:
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            name = comm.read_text(encoding="utf-8").strip()
        except OSError:  # it ended in between
            continue
        if name == "dockerd":
            msg = f"dockerd already runs (pid {comm.parent.name}) but does not answer here"
            raise SetupError(
                msg, hint="export DOCKER_HOST=unix://… with the socket that it listens on"
            )


def _start(options: tuple[str, ...], *, state: Path, log: Path) -> str | None:
    """Start dockerd and return None once it answers, or why it did not."""
    _drop_stale_pid_files()
    dockerd = find("dockerd")
    if dockerd is None:
        msg = "dockerd is not installed"
        raise SetupError(msg, hint="apt-get install docker.io")
    record = state / "dockerd.json"
    background.start([dockerd, *options], log=log, record=record)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and background.running(record):
        if version() is not None:
            return None
        time.sleep(0.2)
    background.stop(record, timeout_seconds=STOP_SECONDS)
    words = [line for line in last_lines(log).splitlines() if "failed to start" in line]
    return words[-1] if words else last_lines(log)


def _drop_stale_pid_files() -> None:
    """Remove pid files of a killed dockerd: it does not start while that number is in use again."""
    for path, name in (
        (Path("/var/run/docker.pid"), "dockerd"),
        (Path("/var/run/docker/containerd/containerd.pid"), "containerd"),
    ):
        try:
            comm = Path(f"/proc/{int(path.read_text(encoding='utf-8'))}/comm")
            if comm.read_text(encoding="utf-8").strip() != name:
                path.unlink()
        except (OSError, ValueError):
            continue


def _wait_for_answer() -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        answered = version()
        if answered is not None:
            return answered
        time.sleep(0.2)
    msg = f"docker.service was started but does not answer within {START_SECONDS:.0f} s"
    raise SetupError(msg, hint="journalctl -u docker.service")
