"""Sockets of container engines: whoever talks to one is root on the host."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
from pathlib import Path

from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.grants import Grants
from rocmrun.probe.parts.isolation_nodes import paths_of_mounts
from rocmrun.probe.parts.machine import errno_name

SOCKET_PATTERNS = (
    "/run/docker.sock",
    "/run/docker/*.sock",
    "/run/containerd/*.sock*",
    "/run/containerd/s/*",
    "/run/docker/containerd/*.sock",
    "/run/podman/podman.sock",
    "/run/crio/crio.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/cri-dockerd.sock",
    "/run/user/*/docker.sock",
    "/run/user/*/podman/podman.sock",
    "/var/run/docker.sock",
    "/var/lib/incus/unix.socket",
    "/var/lib/lxd/unix.socket",
)
ENGINE_NAME = re.compile(
    r"docker|containerd|podman|crio|cri-o|buildkit|kubelet|incus|lxd", re.IGNORECASE
)
# What engines of Docker's API put into the headers of every answer.
ENGINE_ANSWER = re.compile(
    rb"^(Server: (Docker|Libpod)|Api-Version:|Libpod-)", re.IGNORECASE | re.MULTILINE
)
WAIT_SECONDS = 0.1
ANSWERS = "answers as an engine"
MOST_SOCKETS = 32
LISTENS = 0x10000  # __SO_ACCEPTCON, in the flags of /proc/net/unix


def check_engine_sockets(check: Check, grants: Grants) -> None:
    """Connect to every socket that is an engine's by name, and ask the others whether they are."""
    reached = []
    for name in candidate_sockets()[:MOST_SOCKETS]:
        by_name = is_an_engines_by_name(name)
        outcome = ask(name, wait=not by_name)
        check.evidence[name] = outcome
        if outcome == ANSWERS or (by_name and outcome.startswith("connected")):
            reached.append(f"the engine's socket {name} can be reached")
    # No plan can grant one: it is refused whatever the reason.
    grants.judge(check, reached)


def is_an_engines_by_name(name: str) -> bool:
    """Whether a socket is an engine's whatever it answers: a folder of the job's own may be called after one."""
    own_place = name.startswith(("@", "/run/", "/var/run/", "/var/lib/"))
    return ENGINE_NAME.search(name if own_place else os.path.basename(name)) is not None  # noqa: PTH119


def candidate_sockets() -> list[str]:
    """Return sockets at usual paths, at the top of mounts, and abstract ones ("@name")."""
    found = [
        str(path)
        for pattern in SOCKET_PATTERNS
        for path in sorted(Path("/").glob(pattern.lstrip("/")))
    ]
    for path in paths_of_mounts():
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                found.append(path)
    with contextlib.suppress(OSError):  # not every kernel has the table
        table = Path("/proc/net/unix").read_text(errors="replace")
        found += [name for name in listening_sockets(table) if ENGINE_NAME.search(name)]
    return list(dict.fromkeys(found))


def listening_sockets(table: str) -> list[str]:
    """Return the names of listening sockets in the form of /proc/net/unix."""
    rows = (line.split(None, 7) for line in table.splitlines()[1:])
    return [row[7] for row in rows if len(row) > 7 and int(row[3], 16) & LISTENS]  # noqa: PLR2004


def ask(name: str, *, wait: bool) -> str:
    """Return what a socket does when it is connected to and, to *wait* for an answer, greeted in HTTP."""
    address = "\0" + name[1:] if name.startswith("@") else name
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(WAIT_SECONDS)
        try:
            client.connect(address)
        except OSError as error:
            return errno_name(error)
        if not wait:
            return "connected"
        with contextlib.suppress(OSError):
            client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            if ENGINE_ANSWER.search(client.recv(4096)):
                return ANSWERS
    return "connected, answers as something else"
