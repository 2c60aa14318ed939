"""How much faster a lock of many references is than `skopeo inspect` of one after another.

    python bench/lock.py [--references N] [--delay SECONDS] [--jobs N] [--rounds N] [--json]

A registry on loopback answers every request after a delay, as one far away would. The same references
are locked by `rocmrun lock --resolver registry` and inspected in a loop by skopeo, with and without its
listing of tags. Then the lock is run again: unchanged, it must send no request at all. Counted by the
registry itself.
"""

import argparse
import hashlib
import http.server
import json
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).with_name("rocmrun")
GOALS = {"speedup_vs_skopeo": 5, "unchanged_network_calls": 0}
MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE = "application/vnd.docker.container.image.v1+json"
EPOCH = "2026-01-01T00:00:00Z"
TAGS = b'{"name": "x", "tags": ["1", "2", "3"]}'


def main() -> int:
    """Print the ratios; return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--references", type=int, default=50)
    parser.add_argument("--delay", type=float, default=0.15, metavar="SECONDS")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    context = multiprocessing.get_context("fork")
    there, here = context.Pipe()
    process = context.Process(target=serve, args=(there, options.delay), daemon=True)
    process.start()
    address: str = here.recv()
    result = measure(address, options)
    process.terminate()
    missed = result["unchanged_network_calls"] > GOALS["unchanged_network_calls"]
    speedup = result["speedup_vs_skopeo"]
    missed = missed or (speedup is not None and speedup < GOALS["speedup_vs_skopeo"])
    if options.json:
        print(json.dumps({"goals": GOALS, **result}, indent=2))
    else:
        for name, value in result.items():
            print(f"{name}: {value}")
    return int(missed)


def measure(address: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return seconds, requests and ratios."""
    repositories = [f"bench/image{number:03}" for number in range(options.references)]
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory)
        write_profiles(project, address, repositories)
        lock: list[str | Path] = [PROGRAM, "-q", "lock", "--resolver", "registry"]
        lock += ["--jobs", str(options.jobs)]
        rounds = []
        for _ in range(options.rounds):
            (project / "rocmrun.lock").unlink(missing_ok=True)
            rounds.append(timed(lambda: run(lock, project), address))
        again = [timed(lambda: run(lock, project), address) for _ in range(options.rounds)]
    seconds = statistics.median(seconds for seconds, _ in rounds)
    skopeo = skopeo_seconds(address, repositories, [])
    plain = skopeo_seconds(address, repositories, ["--no-tags"])
    return {
        "references": options.references,
        "delay_seconds": options.delay,
        "jobs": options.jobs,
        "lock_seconds": round(seconds, 3),
        "lock_network_calls": rounds[0][1],
        "skopeo_seconds": skopeo,
        "skopeo_no_tags_seconds": plain,
        "speedup_vs_skopeo": skopeo and round(skopeo / seconds, 1),
        "speedup_vs_skopeo_no_tags": plain and round(plain / seconds, 1),
        "unchanged_seconds": round(statistics.median(seconds for seconds, _ in again), 3),
        "unchanged_network_calls": max(calls for _, calls in again),
    }


def write_profiles(project: Path, address: str, repositories: list[str]) -> None:
    """Write one profile for each repository."""
    (project / "profiles").mkdir()
    for number, repository in enumerate(repositories):
        text = f'[image]\nref = "{address}/{repository}:1"\n'
        (project / "profiles" / f"image{number:03}.toml").write_text(text)


def skopeo_seconds(address: str, repositories: list[str], options: list[str]) -> float | None:
    """Return how long skopeo takes for one after another; None where it is not installed."""
    program = shutil.which("skopeo")
    if program is None:
        return None

    def inspect_each() -> None:
        for repository in repositories:
            name = f"docker://{address}/{repository}:1"
            run([program, "inspect", "--tls-verify=false", *options, name], Path.cwd())

    return round(timed(inspect_each, address)[0], 3)


def run(command: list[str | Path], directory: Path) -> None:
    """Run *command*; what it says is shown only if it fails."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command}: {done.returncode}\n{done.stderr}")


def timed(work: Callable[[], None], address: str) -> tuple[float, int]:
    """Return the seconds that *work* takes, and the requests that the registry saw meanwhile."""
    before = count(address)
    began = time.perf_counter()
    work()
    return time.perf_counter() - began, count(address) - before


def count(address: str) -> int:
    """Return how many requests the registry has had."""
    with urllib.request.urlopen(f"http://{address}/count") as response:
        return int(response.read())


def serve(pipe: Any, delay: float) -> None:
    """Serve a registry that has every repository, in a process of its own."""
    lock, requests = threading.Lock(), [0]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            if self.path == "/count":
                self.reply(str(requests[0]).encode(), "text/plain")
                return
            with lock:
                requests[0] += 1
            time.sleep(delay)
            *_, repository, kind, name = ("", "", "", *self.path.split("/"))
            config, manifest = content(repository)
            if kind == "manifests":
                self.reply(manifest, MANIFEST_TYPE)
            elif kind == "blobs" and name == digest(config):
                self.reply(config, "application/octet-stream")
            else:
                self.reply(TAGS if kind == "tags" else b"{}", "application/json")

        def reply(self, body: bytes, content_type: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Docker-Content-Digest", digest(body))
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        do_GET = do_HEAD = answer  # noqa: N815

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pipe.send(f"127.0.0.1:{server.server_port}")
    server.serve_forever()


def content(repository: str) -> tuple[bytes, bytes]:
    """Return the config and the manifest of the image in *repository*."""
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": EPOCH,
            "config": {"Labels": {"name": repository}},
            "rootfs": {"type": "layers", "diff_ids": []},
        }
    ).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "size": len(config), "digest": digest(config)},
        "layers": [],
    }
    return config, json.dumps(manifest).encode()


def digest(body: bytes) -> str:
    """Return the digest of *body*."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


if __name__ == "__main__":
    sys.exit(main())
