"""A second Docker daemon beside the one that runs: own sockets, own data, own bridge.

Its bridge is its own on purpose: a daemon with --bridge=none deletes the docker0 of its neighbour.
"""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

START_SECONDS = 60
STOP_SECONDS = 60


@contextlib.contextmanager
def spare_engine(
    settings: dict[str, Any] | None = None, *, disk: str | None = None
) -> Iterator[str]:
    """Start a daemon with *settings* (as in daemon.json) and yield its address.

    With *disk* ("220m") its data is on a file system of that size.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can start a second daemon")
    for program in ("dockerd", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: the engine here is not this machine's")
    folder = Path(tempfile.mkdtemp(prefix="rrt-"))  # socket paths are short
    bridge = f"rrt{secrets.token_hex(4)}"
    try:
        make_data(folder / "data", disk)
        with _bridge(bridge), _daemon(folder, bridge, settings or {}):
            yield f"unix://{folder}/s"
    finally:
        unmount_below(folder)
        shutil.rmtree(folder)


@contextlib.contextmanager
def _bridge(name: str) -> Iterator[None]:
    subnet = secrets.randbelow(250)
    _run("ip", "link", "add", name, "type", "bridge")
    try:
        _run("ip", "address", "add", f"10.203.{subnet}.1/24", "dev", name)
        _run("ip", "link", "set", name, "up")
        yield
    finally:
        _run("ip", "link", "delete", name)


def make_data(folder: Path, size: str | None) -> None:
    """Make *folder*; with *size* it is a file system in memory, which goes with `unmount_below`."""
    folder.mkdir()
    if size is not None:
        _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))


@contextlib.contextmanager
def _daemon(folder: Path, bridge: str, settings: dict[str, Any]) -> Iterator[None]:
    config = {
        "bridge": bridge,
        "data-root": f"{folder}/data",
        "exec-root": f"{folder}/exec",
        "hosts": [f"unix://{folder}/s"],
        "ip-forward": False,
        "ip-masq": False,
        "ip6tables": False,
        "iptables": False,
        "pidfile": f"{folder}/pid",
        **settings,
    }
    (folder / "daemon.json").write_text(json.dumps(config))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["dockerd", "--config-file", f"{folder}/daemon.json"], stdout=log, stderr=log
        )
        try:
            _await_answer(process, folder)
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_answer(process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers(f"{folder}/s"):
        said = (folder / "log").read_text(errors="replace")[-2000:]
        assert process.poll() is None, f"the second daemon ended:\n{said}"
        assert time.monotonic() < deadline, f"the second daemon does not answer:\n{said}"
        time.sleep(0.1)


def answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        try:
            client.connect(path)
            client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in client.recv(100)
        except OSError:
            return False


def unmount_below(folder: Path) -> None:
    """Take away what the daemon and we mounted: its data, its network namespaces."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for path in sorted(mounts, reverse=True):
        if path.startswith(f"{folder}/"):
            _run("umount", "--lazy", path)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30)
