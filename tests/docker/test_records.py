"""What the engine records of a create request: no difference to us, and what the fake engine says it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from rocmrun.core.create_request import create_request
from rocmrun.core.image import ImageFacts
from rocmrun.core.inspection import differences
from rocmrun.core.plan import Plan, PlannedImage
from tests.builders import SECCOMP, plan, privileges
from tests.docker_records import recorded

CPU = {"gpus": {"select": ["none"]}, "accelerator": "cpu", "cache": {"mode": "tmpfs"}}
GRANTS = ("seccomp:/s.json", "cap:SYS_PTRACE", "nnp:off", "rootfs:rw", "masks:off", "ipc:shareable",
          "ulimit:memlock=65536", "group:5", "sysctl:net.core.somaxconn=64")  # fmt: skip


def jobs(directory: Path) -> dict[str, Plan]:
    """Return plans that set what can be set without a device."""
    mounts = [
        {"source": str(directory), "target": "/a"},
        {"source": str(directory), "target": "/b", "mode": "rw", "selinux": "shared"},
        {"type": "volume", "source": "rocmrun-test-records", "target": "/v", "mode": "rw"},
    ]
    container = {"memory": "64MiB", "cpus": 0.5, "tmpfs": {"/scratch": "1MiB"},
                 "restart": "on-failure:3", "env": {"A": "1"}, "entrypoint": [], "command": ["true"]}  # fmt: skip
    return {
        "baseline": plan(CPU),
        "mounts and limits": plan({**CPU, "mounts": mounts, "container": container}),
        "privileges": plan({**CPU, **privileges(*GRANTS)}, seccomp_files={"/s.json": SECCOMP}),
        "host": plan({**CPU, "container": {"network": "host", "env": {"HF_HUB_OFFLINE": "1"}},
                      **privileges("network:host", "ipc:host", "pid:host")}),
    }  # fmt: skip


@pytest.fixture(params=["baseline", "mounts and limits", "privileges", "host"])
def created(
    request: pytest.FixtureRequest, engine: docker.DockerClient, tiny_image: str, tmp_path: Path
) -> Iterator[tuple[dict[str, Any], dict[str, Any], ImageFacts]]:
    """A request, what the engine recorded of it, and the image's facts."""
    api: Any = engine.api
    image = api.inspect_image(tiny_image)
    config = image["Config"]
    facts = ImageFacts(
        image_id=image["Id"],
        workdir=config.get("WorkingDir") or "",
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        env=tuple(tuple(entry.split("=", 1)) for entry in config.get("Env") or ()),
        labels=tuple((config.get("Labels") or {}).items()),
    )
    job = jobs(tmp_path)[request.param].with_changes(
        image=PlannedImage(ref=tiny_image, image_id=image["Id"])
    )
    body = create_request(job, role="workload", keep_log=True)
    container = api.create_container_from_config(body)
    try:
        yield body, api.inspect_container(container["Id"]), facts
    finally:
        api.remove_container(container["Id"], v=True)
        for volume in engine.volumes.list(filters={"name": "rocmrun-test-records"}):
            volume.remove()


def test_what_the_engine_records_is_what_was_asked_for(
    created: tuple[dict[str, Any], dict[str, Any], ImageFacts],
) -> None:
    request, record, _ = created

    assert differences(request, record) == ()


def test_the_fake_engine_records_the_same(
    engine: docker.DockerClient, created: tuple[dict[str, Any], dict[str, Any], ImageFacts]
) -> None:
    """Unit tests stand on this."""
    version = str(engine.version()["Version"])
    if not version.startswith("20.10."):
        pytest.skip(f"the fake records as Docker 20.10 does, and this is {version}")
    request, record, facts = created

    fake = recorded(request, facts)

    for part in (record, fake):
        part["HostConfig"]["Ulimits"].sort(key=lambda limit: limit["Name"])
    assert fake["HostConfig"] == record["HostConfig"]
    assert (fake["Path"], fake["Args"]) == (record["Path"], record["Args"])
    known = {key: record["Config"].get(key) for key in fake["Config"]}
    assert fake["Config"] | {"Env": set(fake["Config"]["Env"])} == known | {
        "Env": set(known["Env"])
    }
    assert sorted(map(_point, fake["Mounts"])) == sorted(map(_point, record["Mounts"]))


def _point(point: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(point.get(key) for key in ("Destination", "Type", "Source", "RW", "Propagation"))
