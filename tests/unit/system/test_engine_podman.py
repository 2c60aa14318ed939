"""An engine that answers as Podman 4.3.1 did, where that is not what Docker says."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from rocmrun.system.engine import DockerEngine
from tests.scripted_registry import Reply, Request, ScriptedRegistry

pytestmark = pytest.mark.enable_socket

JSON = {"Content-Type": "application/json"}
PODMAN = {**JSON, "Libpod-API-Version": "4.3.1"}
VERSION = {"Version": "4.3.1", "ApiVersion": "1.41", "Components": [{"Name": "Podman Engine"}]}
FILTER = 'seccomp={"defaultAction":"SCMP_ACT_ERRNO"}'


@pytest.fixture
def daemon() -> Iterator[ScriptedRegistry]:
    scripted = ScriptedRegistry()
    yield scripted
    scripted.close()


@pytest.fixture
def engine(daemon: ScriptedRegistry) -> Iterator[DockerEngine]:
    api = docker.APIClient(base_url=f"tcp://{daemon.host}", version="1.41", timeout=60)
    yield DockerEngine(api)
    api.close()


def answer(body: Any, headers: dict[str, str] = PODMAN, status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode(), headers=headers)


@pytest.mark.parametrize(("status", "asks"), [(404, False), (400, True), (500, True)])
def test_whether_it_asks_registries(
    daemon: ScriptedRegistry, engine: DockerEngine, status: int, *, asks: bool
) -> None:
    """Podman has no such path; Docker refuses the name, and asks nobody for that."""
    daemon.script = lambda _request: answer({"message": "x"}, status=status)

    assert engine.asks_registries() is asks
    assert daemon.requests[0].path == "/v1.41/distribution/:/json"


def test_a_record_is_completed_from_podmans_own(
    daemon: ScriptedRegistry, engine: DockerEngine
) -> None:
    """Below the version that it names itself, and not below Docker's."""
    own = {"BoundingCaps": None, "EffectiveCaps": None, "HostConfig": {"CgroupMode": "private"}}
    record = {"HostConfig": {"CapDrop": ["KILL"]}, "Mounts": []}
    daemon.script = lambda request: answer(own if "libpod" in request.path else record)

    found = engine.inspect("abc")

    assert [request.path for request in daemon.requests] == [
        "/v1.41/containers/abc/json",
        "/v4.3.1/libpod/containers/abc/json",
    ]
    assert found["HostConfig"]["CapDrop"] == ["ALL"]
    assert found["HostConfig"]["CgroupnsMode"] == "private"


def test_another_engines_record_stays_as_it_is(
    daemon: ScriptedRegistry, engine: DockerEngine
) -> None:
    """And nothing more is asked."""
    record = {"HostConfig": {"CapDrop": ["KILL"]}, "Mounts": []}
    daemon.script = lambda _request: answer(record, JSON)

    assert engine.inspect("abc") == record
    assert len(daemon.requests) == 1


def test_a_seccomp_profile_is_a_file_while_the_container_is_made(
    daemon: ScriptedRegistry, engine: DockerEngine
) -> None:
    """Podman takes a path; the record has the text again, and the file is gone."""
    seen: list[tuple[str, str]] = []

    def podman(request: Request) -> Reply:
        if request.path.endswith("/create"):
            (option,) = json.loads(request.body)["HostConfig"]["SecurityOpt"]
            seen.append((option, Path(option.removeprefix("seccomp=")).read_text()))
            return answer({"Id": "abc"}, status=201)
        if "containers" in request.path:
            return answer({"HostConfig": {"SecurityOpt": [seen[0][0], "label=disable"]}})
        return answer(VERSION if request.path.endswith("/version") else {})

    daemon.script = podman
    request = {"HostConfig": {"SecurityOpt": [FILTER]}}

    created = engine.create(request, "name", "linux/amd64")

    assert created.container_id == "abc"
    assert seen[0][1] == FILTER.removeprefix("seccomp=")
    assert not Path(seen[0][0].removeprefix("seccomp=")).exists()
    assert engine.inspect("abc")["HostConfig"]["SecurityOpt"] == [FILTER, "label=disable"]
    assert request == {"HostConfig": {"SecurityOpt": [FILTER]}}


@pytest.mark.parametrize(
    ("mode", "target"), [(0o120777 | 1 << 27, "/usr/bin/python3.11"), (0o755, "")]
)
def test_a_link_is_what_its_mode_says(
    daemon: ScriptedRegistry, engine: DockerEngine, mode: int, target: str
) -> None:
    """Podman names a target of everything: the path itself."""
    stat = base64.b64encode(
        json.dumps({"mode": mode, "linkTarget": "/usr/bin/python3.11"}).encode()
    )
    daemon.script = lambda _request: Reply(headers={"X-Docker-Container-Path-Stat": stat.decode()})

    found = engine.path_stat("abc", "/usr/bin/python3")

    assert found is not None
    assert found.link_target == target


def test_a_container_that_has_ended_can_be_signalled(
    daemon: ScriptedRegistry, engine: DockerEngine
) -> None:
    """Podman 4 says so with 500."""
    daemon.script = lambda _request: answer(
        {"message": "can only kill running containers: container state improper"}, status=500
    )

    engine.kill("abc", "SIGTERM")
    engine.stop("abc", 1)

    assert len(daemon.requests) == 2


@pytest.mark.parametrize("options", [["name=seccomp,profile=default"], ["name=rootless"]])
def test_a_rootless_one_says_so_in_a_field_of_its_own(
    daemon: ScriptedRegistry, engine: DockerEngine, options: list[str]
) -> None:
    """Podman 4.3 alone there, Docker among its options."""
    info = {"ID": "made up anew", "SecurityOptions": options, "Rootless": True}
    daemon.script = lambda request: answer(VERSION if request.path.endswith("/version") else info)

    facts = engine.facts()

    assert (facts.podman, facts.rootless, facts.identity) == (True, True, None)
    assert facts.security_options.count("name=rootless") == 1


def test_names_are_those_that_docker_writes(daemon: ScriptedRegistry, engine: DockerEngine) -> None:
    """Podman writes Docker Hub's name out, and makes a digest's name of every tag."""
    kept, pulled = "docker.io/rocmrun/locked", f"docker.io/rocm/dev@sha256:{'a' * 64}"
    body = {
        "Id": "sha256:1",
        "RepoTags": [f"{kept}:0123", "docker.io/library/debian:12", "127.0.0.1:5000/x:1"],
        "RepoDigests": [f"{kept}@sha256:{'a' * 64}", pulled],
    }
    daemon.script = lambda request: answer([body] if "images/json" in request.path else body)

    (found,) = engine.named_images("rocmrun/locked")

    assert found.tags == ("rocmrun/locked:0123", "debian:12", "127.0.0.1:5000/x:1")
    assert found.digests == (pulled.removeprefix("docker.io/"),)
