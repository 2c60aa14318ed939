"""What an engine's record says of a container: how it is, and which GPUs and limits it was given."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rocmrun.core import labels
from rocmrun.core.host import Gpu, HostFacts
from rocmrun.core.os_text import number

_RENDER = re.compile(r"/dev/dri/renderD(\d{1,6})$")
_ALL_GPUS = frozenset({"/dev", "/dev/dri"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRecord:
    """A container, by its record.

    Attributes:
        profile: Whose workload it is; "" for a container that rocmrun did not make.
        state: The engine's word: "running", "exited", ….
        error: What the engine says of a start that failed.
        health: "starting", "healthy" or "unhealthy"; "" where nothing is checked.
        health_output: What the last check printed.
        pid: Of its first process, in the engine's PID namespace; 0 where it does not run.
        minors: Render nodes that it was given by number.
        every_gpu: Whether it was given all of them: privileged, or the directory of nodes as a whole.
        kfd: Whether it was given /dev/kfd.
        environment: Its variables.
        log_driver: Where its output goes.
    """

    container_id: str
    name: str
    profile: str = ""
    run: str = ""
    plan: str = ""
    state: str = ""
    exit_code: int | None = None
    oom_killed: bool = False
    error: str = ""
    health: str = ""
    health_output: str = ""
    restarts: int = 0
    pid: int = 0
    minors: frozenset[int] = frozenset()
    every_gpu: bool = False
    kfd: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    log_driver: str = ""

    @property
    def runs(self) -> bool:
        """Whether there are processes to look at."""
        return self.pid > 0 and self.state in {"running", "paused"}

    def gpus(self, host: HostFacts) -> tuple[Gpu, ...]:
        """Return the GPUs of *host* that it was given."""
        return tuple(
            gpu
            for gpu in host.gpus
            if gpu.render_minor is not None and (self.every_gpu or gpu.render_minor in self.minors)
        )


def container_record(record: Mapping[str, Any], *, ours: bool) -> ContainerRecord:
    """Return what matters of an engine's record; *ours* is whether rocmrun made the container."""
    state, host, config = record.get("State") or {}, record["HostConfig"], record["Config"]
    found = config.get("Labels") or {} if ours else {}
    health = state.get("Health") or {}
    log = health.get("Log") or [{}]
    devices = [device.get("PathInContainer", "") for device in host.get("Devices") or ()]
    privileged = bool(host.get("Privileged"))
    words = found.get(labels.MINORS, "").split(",")
    labelled = (minor for word in words if (minor := number(word)) is not None)
    given = (match for path in devices if (match := _RENDER.search(path)))
    return ContainerRecord(
        container_id=record["Id"],
        name=record.get("Name", "").lstrip("/") or record["Id"][:12],
        profile=found.get(labels.PROFILE, ""),
        run=found.get(labels.RUN, ""),
        plan=found.get(labels.PLAN, ""),
        state=state.get("Status") or "",
        exit_code=state.get("ExitCode"),
        oom_killed=bool(state.get("OOMKilled")),
        error=state.get("Error") or "",
        health=(health.get("Status") or "").replace("none", ""),
        health_output=(log[-1].get("Output") or "").strip(),
        restarts=record.get("RestartCount") or 0,
        pid=state.get("Pid") or 0,
        minors=frozenset({*labelled, *(int(match[1]) for match in given)}),
        every_gpu=privileged or not _ALL_GPUS.isdisjoint(devices),
        kfd=privileged or "/dev" in devices or "/dev/kfd" in devices,
        environment=dict(entry.partition("=")[::2] for entry in config.get("Env") or ()),
        log_driver=(host.get("LogConfig") or {}).get("Type") or "",
    )
