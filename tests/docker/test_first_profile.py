"""From a published line to a profile that runs; secrets and downloads that leave nothing with the server."""

import contextlib
import http.server
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.docker.inside import GID, UID
from tests.docker.terminals import terminal
from tests.docker.waiting import ended, read_until, started
from tests.workspace import Workspace, left_behind

TOKEN = "hf_verysecret4711"
MODELS_GROUP = 47110
# The smallest downloader: what `[fetch] command` may be where the image has no hub client.
DOWNLOADER = """
import os, sys, urllib.request
repo, directory, hub = sys.argv[2], sys.argv[4], sys.argv[1]
request = urllib.request.Request(f"{hub}/{repo}", headers={"Authorization": "Bearer " + os.environ["HF_TOKEN"]})
with urllib.request.urlopen(request) as answer, open(directory + "/weights", "wb") as file:
    file.write(answer.read())
print("downloaded", repo)
"""
SERVER = """
import json, os
def attempt(path, mode):
    try:
        with open(path, mode) as file:
            return file.read() if mode == "r" else "written"
    except OSError as error:
        return error.strerror
print(json.dumps({"weights": attempt("/model/weights", "r"), "write": attempt("/model/new", "w"), "env": dict(os.environ)}))
"""


@contextlib.contextmanager
def hub(engine: docker.DockerClient) -> Iterator[tuple[str, list[str | None]]]:
    """Serve one model on the engine's bridge; yield the address and the tokens that came."""
    (config,) = engine.networks.get("bridge").attrs["IPAM"]["Config"]
    tokens: list[str | None] = []

    class Hub(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers.get("Authorization"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"weights of " + self.path.encode())

        def log_message(self, *words: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer((config["Gateway"], 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{config['Gateway']}:{server.server_port}", tokens
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def holding(folder: Path, word: str) -> list[str]:
    """Return the files below *folder* that hold *word*."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in files if word.encode() in path.read_bytes()]


def kept(engine: docker.DockerClient, name: str) -> str:
    """Return all that the engine knows and has logged of a container."""
    container = engine.containers.get(name)
    return json.dumps(container.attrs) + container.logs().decode()


def test_a_token_is_for_the_download_and_never_for_the_server(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """The hub saw it; no file, plan, report, label, log or inspect of the server has it.

    The model then belongs to root and a group of models, mode 0750, and is served through that group.
    """
    models = workspace.path / "models"
    models.mkdir()
    os.chown(models, UID, GID)
    with hub(engine) as (address, tokens):
        command = json.dumps(["python3", "-c", DOWNLOADER, address])
        name = workspace.profile(
            python_image,
            f'[container]\ncommand = ["python3", "-c", {json.dumps(SERVER)}]\n'
            f'groups = ["path:/model"]\nenv = {{ HF_HUB_OFFLINE = "1" }}\n'
            f'[[mounts]]\nsource = "../models"\ntarget = "/model"\n[fetch]\ncommand = {command}\n',
            name="serve",
        )
        token = {"HF_TOKEN": TOKEN}
        pulled = workspace.rocmrun("pull", name, "--json", check=True)
        fetched = workspace.rocmrun("fetch", name, "org/model", env=token, check=True)
    assert tokens == [f"Bearer {TOKEN}"]
    assert json.loads(pulled.stdout)["images"][0]["fetched"] is False
    assert "downloaded org/model" in fetched.stdout
    if os.geteuid() == 0:
        # Only root can give a directory away; without it the model stays the caller's own.
        os.chown(models, 0, MODELS_GROUP)
        os.chown(models / "weights", 0, MODELS_GROUP)
        models.chmod(0o750)
        (models / "weights").chmod(0o640)

    container = f"served-{workspace.token}"
    plan = workspace.rocmrun("plan", name, "--json", env=token, check=True)
    served = workspace.rocmrun(
        "launch", name, "--no-probe", "--keep", "--name", container, "--report", "report.json",
        env=token, check=True,
    )  # fmt: skip

    seen = json.loads(served.stdout)
    assert seen["weights"] == "weights of /org/model"
    assert seen["write"] == "Read-only file system"
    assert "HF_TOKEN" not in seen["env"]
    everything = (
        fetched.stderr,
        plan.stdout,
        served.stdout,
        served.stderr,
        kept(engine, container),
    )
    assert [text for text in everything if TOKEN in text] == []
    assert holding(workspace.path, TOKEN) == []
    left_behind(engine, workspace)


def test_a_download_that_may_not_write_is_refused_before_it_starts(
    workspace: Workspace, python_image: str
) -> None:
    """With the same fixes as any mount."""
    models = workspace.path / "models"
    models.mkdir()
    if os.geteuid() != 0:
        models.chmod(0o555)
    name = workspace.profile(
        python_image, '[[mounts]]\nsource = "../models"\ntarget = "/model"\n', name="closed"
    )

    done = workspace.rocmrun("fetch", name, "org/model", env={"HF_TOKEN": None})

    assert (done.returncode, done.stdout) == (8, "")
    assert "error[mount-unreadable]" in done.stderr


LOOK = """
import json, os
found = {}
for path in ("/run/secrets/token", "/etc/app.key"):
    state = os.stat(path)
    found[path] = [open(path).read(), state.st_mode & 0o777, state.st_uid, state.st_gid]
print(json.dumps({"files": found, "shown": "TOKEN" in os.environ}))
"""


def secret_profile(workspace: Workspace, image: str, command: list[str]) -> str:
    """Write a profile with a secret from a variable and one from a file."""
    (workspace.path / "app.key").write_text(f"{TOKEN}-key")
    return workspace.profile(
        image,
        f"[container]\ncommand = {json.dumps(command)}\n"
        '[[secrets]]\nname = "token"\nsource = "env:TOKEN"\n'
        '[[secrets]]\nname = "key"\nsource = "file:../app.key"\ntarget = "/etc/app.key"\n',
        name="secret",
    )


def test_secrets_are_files_for_one_user(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """0400 and the container user's own; no value is in what the engine or rocmrun keeps, and they go with the run."""
    runtime = workspace.path / "run"
    runtime.mkdir(mode=0o700)
    name = secret_profile(workspace, python_image, ["python3", "-c", LOOK])
    env = {"TOKEN": TOKEN, "XDG_RUNTIME_DIR": str(runtime)}
    container = f"secret-{workspace.token}"

    done = workspace.rocmrun(
        "launch", name, "--no-probe", "--keep", "--name", container, "--report", "report.json",
        env=env, check=True,
    )  # fmt: skip
    missing = workspace.rocmrun("launch", name, "--no-probe", env={**env, "TOKEN": None})

    assert json.loads(done.stdout) == {
        "files": {
            "/run/secrets/token": [TOKEN, 0o400, UID, GID],
            "/etc/app.key": [f"{TOKEN}-key", 0o400, UID, GID],
        },
        "shown": False,
    }
    assert TOKEN not in json.dumps(engine.containers.get(container).attrs) + done.stderr
    assert holding(workspace.path, TOKEN) == [str(workspace.path / "app.key")]
    assert list((runtime / "rocmrun" / "secrets").iterdir()) == []
    assert missing.returncode == 125
    assert "error[secret-missing]" in missing.stderr
    left_behind(engine, workspace)


@pytest.mark.cleans
def test_secrets_of_a_detached_workload_go_when_it_has_ended(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """They stay while it runs; the next command takes them away, and leaves those of another engine."""
    runtime = workspace.path / "run"
    runtime.mkdir(mode=0o700)
    name = secret_profile(workspace, python_image, ["sleep", "1000"])
    env = {"TOKEN": TOKEN, "XDG_RUNTIME_DIR": str(runtime)}
    secrets = runtime / "rocmrun" / "secrets"

    def started() -> tuple[str, Path]:
        launched = workspace.rocmrun("launch", name, "--no-probe", "--detach", env=env, check=True)
        (directory,) = secrets.iterdir()
        return launched.stdout.strip(), directory

    container, directory = started()
    workspace.rocmrun("clean", env=env, check=True)
    workspace.rocmrun("ps", env=env, check=True)
    assert sorted(path.name for path in directory.iterdir()) == [".engine", "key", "token"]
    # It ends by itself, as far as rocmrun knows.
    engine.containers.get(container).kill()
    workspace.rocmrun("ps", env=env, check=True)
    assert list(secrets.iterdir()) == []
    engine.containers.get(container).remove()

    container, directory = started()
    own = (directory / ".engine").read_text()
    (directory / ".engine").chmod(0o600)
    (directory / ".engine").write_text("another engine's")
    engine.containers.get(container).remove(force=True)
    workspace.rocmrun("clean", env=env, check=True)
    assert directory.is_dir()
    (directory / ".engine").write_text(own)
    cleaned = workspace.rocmrun("clean", env=env, check=True)
    assert list(secrets.iterdir()) == []
    assert own == engine.info()["ID"]
    assert "secrets of a run that has ended" in cleaned.stdout + cleaned.stderr


def test_a_published_line_becomes_a_profile_that_runs(
    workspace: Workspace, python_image: str
) -> None:
    """Locked and launched as written by `profiles new`; what the line over-grants is gone and named."""
    (workspace.path / "m").mkdir(mode=0o755)
    (workspace.path / "m" / "file").write_text("read")
    program = "import os; print(open('/m/file').read(), os.environ['A'], os.getuid() != 0)"
    line = (
        "docker run -it --rm --network=host --ipc=host --cap-add=SYS_PTRACE --security-opt seccomp=unconfined \\\n"
        "  --group-add video --shm-size 128m -v ./m:/m:ro -e A=b -e HF_TOKEN=" + TOKEN + " \\\n"
        f'  {python_image} python3 -c "{program}"'
    )
    name = f"line-{workspace.token}"
    workspace.names.append(name)

    made = workspace.rocmrun("profiles", "new", name, "--from-docker-run", line, check=True)
    checked = workspace.rocmrun("profiles", "check", name, check=True)
    workspace.rocmrun("lock", name, check=True)
    done = workspace.rocmrun("launch", name, "--no-probe", env={"HF_TOKEN": "x"}, check=True)

    assert done.stdout == "read b True\n"
    assert f"{name}: ok" in checked.stdout
    for what in ("--network host", "--ipc host", "--cap-add SYS_PTRACE", "--group-add video"):
        assert f"left out {what}" in made.stderr
    assert holding(workspace.path, TOKEN) == []


SOCKET_SERVER = """
import os, socket
server = socket.socket(socket.AF_UNIX)
server.bind("/socket/vllm.sock")
server.listen()
print("listening", sorted(os.listdir("/sys/class/net")), flush=True)
client, _ = server.accept()
client.sendall(open("/model/weights", "rb").read())
client.close()
"""


def test_a_server_without_a_network_answers_on_a_socket(
    workspace: Workspace, python_image: str
) -> None:
    """What vllm-serve-isolated promises, with a stand-in for vLLM: it sees loopback alone, and is reached all the same."""
    (workspace.path / "model").mkdir(mode=0o755)
    (workspace.path / "model" / "weights").write_text("answer")
    place = workspace.path / "s"
    place.mkdir()
    os.chown(place, UID, GID)
    name = workspace.write(
        'extends = "vllm-serve-isolated"\naccelerator = "cpu"\n'
        f'[image]\nref = "{python_image}"\n[gpus]\nselect = ["none"]\n'
        f'[container]\nentrypoint = []\ncommand = ["python3", "-c", {json.dumps(SOCKET_SERVER)}]\n',
        name="isolated",
    )
    workspace.rocmrun("lock", name, check=True)

    launch = ("launch", name, "--no-probe", "--set", "model_dir=model", "--set", "socket_dir=s")
    with started(workspace.rocmrun, *launch) as process:
        said = read_until(process.stdout, b"\n")
        # The path of a test's folder is longer than a socket's may be.
        folder = os.open(place, os.O_PATH)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"/proc/self/fd/{folder}/vllm.sock")
            answer = client.recv(100)
        os.close(folder)
        assert ended(process)[0] == 0

    assert said == b"listening ['lo']\n"
    assert answer == b"answer"


def test_a_volume_of_root_is_refused_where_it_is_to_be_written(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """A new volume is root's: known once the engine has made it, and said before anything runs in it."""
    volume = f"rocmrun-test-{workspace.token}"
    name = workspace.profile(python_image, "", name="volume")
    try:
        written = workspace.rocmrun(
            "launch", name, "--no-probe", "-v", f"{volume}:/data", "--", "true"
        )
        read = workspace.rocmrun(
            "launch", name, "--no-probe", "-v", f"{volume}:/data:ro", "--", "ls", "/data"
        )
    finally:
        with contextlib.suppress(docker.errors.NotFound):
            engine.volumes.get(volume).remove(force=True)

    assert written.returncode == 125
    assert f"volume {volume} → /data: mode 0755, owner 0:0" in written.stderr
    assert read.returncode == 0


def test_new_asks_on_a_terminal(workspace: Workspace) -> None:
    """Which profile, and each parameter without a value; an empty answer leaves it open."""
    with terminal(workspace.rocmrun, "profiles", "new", "mine") as screen:
        screen.until(b"Build on")
        screen.type(b"vllm-serve-isolated\n")
        screen.until(b"model_dir")
        screen.type(b"/srv/models\n")
        screen.until(b"socket_dir")
        screen.type(b"\n")
        screen.until(b"next: rocmrun lock mine")
        assert screen.process.wait(timeout=60) == 0

    text = (workspace.profiles / "mine.toml").read_text(encoding="utf-8")
    assert 'default = "/srv/models" }' in text
    assert "# socket_dir = {" in text
