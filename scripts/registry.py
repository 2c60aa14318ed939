"""A registry on loopback: the one that already answers there, or one that we start."""

import json
import time
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from scripts import background
from scripts.commands import SetupError, find, output, say

HOST, PORT = "127.0.0.1", 5055
ADDRESS = f"{HOST}:{PORT}"
IMAGE = "docker.io/library/registry:2"
START_SECONDS = 20.0
MANIFESTS = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"


def ensure(*, state: Path, logs: Path, storage: Path, port: int = PORT) -> None:
    """Leave with a registry that answers on loopback.

    Raises:
        SetupError: something else has the port, or the registry does not start.
    """
    address = f"{HOST}:{port}"
    if answers(port):
        say(f"registry: one answers at {address}, used as it is")
        return
    holder = holder_of(port)
    if holder is not None:
        msg = (
            f"{address}, where the demo's registry goes, is taken by {holder}, which is no registry"
        )
        raise SetupError(msg, hint="stop it, then run make again")
    program = find("docker-registry")
    if program is None:
        _start_container(address, state=state)
    else:
        _start_process([program, "serve"], address, state=state, logs=logs, storage=storage)
    deadline = time.monotonic() + START_SECONDS
    while not answers(port):
        if time.monotonic() > deadline:
            msg = f"the registry does not answer at {address} within {START_SECONDS:.0f} s"
            raise SetupError(msg, hint=f"read {logs}/registry.log")
        time.sleep(0.1)
    say(f"registry: started at {address}")


def stop(*, state: Path) -> None:
    """Stop the registry if it is the one that we started; its storage stays."""
    container = state / "registry.container"
    stopped = background.stop(state / "registry.json", timeout_seconds=10)
    if stopped is not None:
        say(f"registry: stopped (pid {stopped.pid})")
    elif container.exists():
        output(
            ["docker", "rm", "--force", "--volumes", container.read_text(encoding="utf-8").strip()]
        )
        container.unlink()
        say("registry: its container was removed")
    else:
        say("registry: none was started here, nothing to stop")


def answers(port: int = PORT) -> bool:
    """Tell whether a registry speaks on loopback (with or without asking who we are)."""
    try:
        with _open(f"http://{HOST}:{port}/v2/") as response:
            return "Docker-Distribution-Api-Version" in response.headers
    except urllib.error.HTTPError as error:
        return "Docker-Distribution-Api-Version" in error.headers
    except (OSError, HTTPException):  # nobody there, or somebody who speaks no HTTP
        return False


def digest(reference: str) -> str | None:
    """Return the digest that the registry has for one of its own references (ADDRESS/NAME:TAG)."""
    repository, _, tag = reference.removeprefix(f"{ADDRESS}/").rpartition(":")
    url = f"http://{ADDRESS}/v2/{repository}/manifests/{tag}"
    try:
        with _open(url, Accept=MANIFESTS) as response:
            return response.headers["Docker-Content-Digest"]
    except urllib.error.HTTPError:
        return None


def holder_of(port: int) -> str | None:
    """Return who listens on a TCP port of loopback or of every address: name and pid, if seen."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text(encoding="utf-8").splitlines()[1:]
        except FileNotFoundError:
            continue
        for row in rows:
            _, local, _, status, *_, inode = row.split()[:10]
            if status == "0A" and int(local.rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{inode}]")
    if not inodes:
        return None
    for fd in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(fd.readlink()) in inodes:
                process = fd.parent.parent
                name = (process / "comm").read_text(encoding="utf-8").strip()
                return f"{name} (pid {process.name})"
        except OSError:  # another user's, or it ended in between
            continue
    return "a process of another user"


def _start_process(
    command: list[str], address: str, *, state: Path, logs: Path, storage: Path
) -> None:
    config = {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {
            "filesystem": {"rootdirectory": str(storage)},
            "delete": {"enabled": True},
        },
        "http": {"addr": address},
    }
    storage.mkdir(parents=True, exist_ok=True)
    state.mkdir(parents=True, exist_ok=True)
    path = state / "registry.yml"
    path.write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")  # JSON is YAML
    background.start(
        [*command, str(path)], log=logs / "registry.log", record=state / "registry.json"
    )


def _start_container(address: str, *, state: Path) -> None:
    """Run the registry in the engine, on the host's network: the default bridge may be absent."""
    say(f"registry: docker-registry is not installed, starting {IMAGE}")
    settings = (f"REGISTRY_HTTP_ADDR={address}", "REGISTRY_STORAGE_DELETE_ENABLED=true")
    container = output(
        ["docker", "run", "--detach", "--network", "host"]
        + [word for setting in settings for word in ("--env", setting)]
        + [IMAGE]
    )
    state.mkdir(parents=True, exist_ok=True)
    (state / "registry.container").write_text(container + "\n", encoding="utf-8")


def _open(url: str, **headers: str) -> HTTPResponse:
    request = urllib.request.Request(url, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    response: HTTPResponse = opener.open(request, timeout=5)
    return response
