"""What a process inside a container sees: the other end of every assertion about rights.

`look` starts Python in the container with LOOK as its program and returns what it printed.
"""

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.workspace import Environment, Rocmrun, Workspace

# Whom a container runs as when nobody asks: the caller, and 65532 in the place of plain root.
UID, GID = (65532, 65532) if os.geteuid() == 0 else (os.getuid(), os.getgid())

# Kept to what every Python 3 in an image has. Attempts are reported as "ok" or by errno's name.
LOOK = r"""
import errno, json, os, pathlib, resource, shutil, socket, subprocess, sys

asked = json.loads(sys.argv[1])

def attempt(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return "ok"

def touch(folder):
    name = os.path.join(folder, "rocmrun-was-here")
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
    os.unlink(name)

def run_copy(folder):
    name = os.path.join(folder, "copy-of-true")
    shutil.copy(os.path.realpath("/bin/true"), name)
    try:
        subprocess.run([name], check=True)
    finally:
        os.unlink(name)

def connect(address):
    host, port = address.rsplit(":", 1)
    socket.create_connection((host, int(port)), timeout=3).close()

def first(*names):
    for name in names:
        if os.path.exists(name):
            return pathlib.Path(name).read_text().strip()
    return None

def status():
    rows = (line.partition(":") for line in open("/proc/self/status"))
    return {name: value.strip() for name, _, value in rows}

def mounts():
    found = {}
    for line in open("/proc/self/mountinfo"):
        fields = line.split()
        found[fields[4]] = fields[5].split(",")
    return found

def nodes():
    found = {}
    for folder, _, names in os.walk("/dev"):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                state = os.stat(path)
                found[path] = [state.st_mode & 0o7777, state.st_uid, state.st_gid]
    return found

def size(path):
    state = os.statvfs(path)
    return state.f_blocks * state.f_frsize

def resolved(name):
    try:
        return socket.gethostbyname(name)
    except OSError as error:
        return type(error).__name__

print(json.dumps({
    "argv": sys.argv,
    "cgroup": [line.strip().rpartition(":")[2] for line in open("/proc/self/cgroup")],
    "connect": {address: attempt(lambda: connect(address)) for address in asked.get("connect", ())},
    "cwd": os.getcwd(),
    "env": dict(os.environ),
    "gids": os.getresgid(),
    "groups": sorted(os.getgroups()),
    "hostname": socket.gethostname(),
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "limits": {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in ("CORE", "NOFILE", "MEMLOCK")},
    "memory": first("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"),
    "mounts": mounts(),
    "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in os.listdir("/proc/self/ns")},
    "nodes": nodes(),
    "open": {path: attempt(lambda: os.close(os.open(path, os.O_RDWR))) for path in asked.get("open", ())},
    "pid1": pathlib.Path("/proc/1/comm").read_text().strip(),
    "pids": first("/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/pids.max"),
    "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "resolved": resolved(socket.gethostname()),
    "run": {folder: attempt(lambda: run_copy(folder)) for folder in asked.get("run", ())},
    "size": {path: size(path) for path in asked.get("size", ())},
    "status": status(),
    "uids": os.getresuid(),
    "umask": os.umask(0o022),
    "write": {folder: attempt(lambda: touch(folder)) for folder in asked.get("write", ())},
}))
"""


def look(
    workspace: Workspace,
    profile: str,
    *options: str,
    env: Environment | None = None,
    **asked: Sequence[str],
) -> dict[str, Any]:
    """Launch *profile* without a probe and return what Python sees in it.

    *asked* names what to try there: write=[folders], run=[folders], open=[paths], connect=[addresses], size=[paths].
    """
    command = ("python3", "-c", LOOK, json.dumps(asked))
    done = workspace.rocmrun(
        "launch", profile, "--no-probe", *options, "--", *command, env=env, check=True
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def workspace_at(path: Path) -> Workspace:
    """Return a workspace that several tests share: one launch answers many of them."""
    return Workspace(path=path, rocmrun=Rocmrun(path=path), token=secrets.token_hex(4))
