"""Workloads that are there: what an engine's list says of them, and which one a name means."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rocmrun.core import labels
from rocmrun.core.ids import is_id
from rocmrun.core.os_text import number
from rocmrun.core.text import before_port, printable
from rocmrun.errors import UsageError, WorkloadAmbiguous, WorkloadNotFound

# Between two tries of a restart policy a container is "restarting".
ALIVE = frozenset({"running", "paused", "restarting", "removing"})
# What engines write for people; nothing else in their list tells it (docker's container/state.go).
_EXIT_CODE = re.compile(r"Exited \((\d+)\)")
# What engines take as a container's name; it names a unit's file too.
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
_HEALTH = re.compile(r"\((?:health: )?(starting|healthy|unhealthy)\)")


def check_container_name(name: str) -> None:
    """Refuse a --name that no engine takes.

    Raises:
        UsageError: it has other characters, or one alone.
    """
    if not _NAME.fullmatch(name):
        msg = f'--name "{printable(name, 80)}" is no name for a container'
        raise UsageError(
            msg, hint='two or more letters, digits, ".", "_" and "-", the first a letter or a digit'
        )


def successor_name(name: str, run: str) -> str:
    """Return what the successor of the workload called *name* is called until that one is gone."""
    return f"{name}-{run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A container that runs, or ran, a profile's job.

    Attributes:
        profile_file: The file that the profile was read from; "" for containers of older versions.
        state: The engine's word: "created", "running", "exited", ….
        status: The same for people: "Up 3 minutes (healthy)".
        exit_code: Of one that has ended; None else.
        health: "starting", "healthy" or "unhealthy"; "" where nothing is checked.
        kept: Whether it was asked to stay when it has ended.
        successor_of: The name that it takes over; "" where it replaces nobody.
        controller: The process that started it, as `process_runs` takes it.
        uid: The user who did; None where nobody wrote that down.
        created_at: Seconds since the epoch.
        ports: Published ports, "127.0.0.1:8000->8000/tcp".
    """

    container_id: str
    name: str
    profile: str
    profile_file: str = ""
    run: str = ""
    plan: str = ""
    ref: str = ""
    digest: str = ""
    state: str = ""
    status: str = ""
    exit_code: int | None = None
    health: str = ""
    detached: bool = False
    kept: bool = False
    successor_of: str = ""
    controller: str = ""
    uid: int | None = None
    created_at: int = 0
    render_minors: tuple[int, ...] = ()
    ports: tuple[str, ...] = ()

    @property
    def alive(self) -> bool:
        """Whether it runs, or is about to again."""
        return self.state in ALIVE

    @property
    def handing_over(self) -> bool:
        """Whether it still has the name of a successor whose predecessor is there."""
        return bool(self.successor_of) and self.name == successor_name(self.successor_of, self.run)

    @property
    def final_name(self) -> str:
        """What it is called once its handover is finished."""
        return self.successor_of if self.handing_over else self.name

    def __str__(self) -> str:
        return f"{self.name} (profile {self.profile}, {self.status or self.state})"


def workload_of(summary: Mapping[str, Any]) -> Workload:
    """Return the workload that an entry of the engine's list describes."""
    found = summary["Labels"]
    status = summary.get("Status") or ""
    code, health = _EXIT_CODE.match(status), _HEALTH.search(status)
    return Workload(
        container_id=summary["Id"],
        name=name_of(summary),
        profile=found.get(labels.PROFILE, ""),
        profile_file=found.get(labels.PROFILE_FILE, ""),
        run=found.get(labels.RUN, ""),
        plan=found.get(labels.PLAN, ""),
        ref=found.get(labels.REF, ""),
        digest=found.get(labels.DIGEST, ""),
        state=summary.get("State") or "",
        status=status,
        exit_code=int(code[1]) if code else None,
        health=health[1] if health else "",
        detached=bool(found.get(labels.DETACHED)),
        kept=bool(found.get(labels.KEEP)),
        successor_of=found.get(labels.SUCCESSOR_OF, ""),
        controller=found.get(labels.CONTROLLER, ""),
        uid=_uid(found.get(labels.UID, "")),
        created_at=summary.get("Created") or 0,
        render_minors=minors_of(summary),
        ports=_ports(summary.get("Ports") or ()),
    )


def _uid(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and is_id(text) else None


def is_ours(summary: Mapping[str, Any]) -> bool:
    """Whether rocmrun made a container: every one of ours says who looks after it, and one label alone is anybody's."""
    return bool(summary["Labels"].get(labels.CONTROLLER))


def name_of(summary: Mapping[str, Any]) -> str:
    """Return a container's name, or the start of its id."""
    names: list[str] = summary.get("Names") or [summary["Id"][:12]]
    return names[0].lstrip("/")


def minors_of(summary: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the render minors of the GPUs that a container was given."""
    words = summary["Labels"].get(labels.MINORS, "").split(",")
    return tuple(sorted({minor for word in words if (minor := number(word)) is not None}))


def meant(workloads: Iterable[Workload], name: str) -> Workload:
    """Return the workload that *name* means: a container's name, or a profile's that has just one.

    Of a profile those that run count before those that have ended.

    Raises:
        WorkloadNotFound: with what there is.
        WorkloadAmbiguous: with those that it could be.
    """
    found = tuple(workloads)
    for workload in found:
        if workload.name == name:
            return workload
    of_profile = [workload for workload in found if workload.profile == name]
    candidates = [workload for workload in of_profile if workload.alive] or of_profile
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        msg = f"profile {name} has {len(candidates)} workloads"
        raise WorkloadAmbiguous(
            msg, details=tuple(map(str, candidates)), hint="name one of these containers"
        )
    msg = f'there is no workload "{name}"'
    raise WorkloadNotFound(
        msg,
        details=tuple(f"there is {workload}" for workload in found),
        hint="see them all: rocmrun ps --all",
    )


def _ports(ports: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    published = [port for port in ports if port.get("PublicPort")]
    return tuple(
        sorted(
            f"{before_port(port.get('IP') or '')}:{port['PublicPort']}->{port['PrivatePort']}/{port.get('Type', 'tcp')}"
            for port in published
        )
    )
