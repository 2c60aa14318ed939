"""The one fake engine: it keeps containers in memory and records them the way Docker 20.10 does.

What a real engine can do wrong is said when the fake is made: it changes a field of what it
records, warns, fails at a call, or runs out of patience. `calls` tells in which order it was used.
"""

import copy
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.image import ImageFacts
from rocmrun.core.keep_tags import NamedImage
from rocmrun.core.lock import Resolved
from rocmrun.core.path_facts import VolumeFacts
from rocmrun.core.run import (
    ContainerState,
    Created,
    PathOwner,
    PathStat,
    PullEvent,
    WritableLayer,
)
from rocmrun.errors import EngineFailed, EngineUnreachable, ImageGone
from rocmrun.usecases.engine_protocol import Engine
from tests.builders import ENGINE, IMAGE, probe_output
from tests.docker_records import recorded

STDOUT, STDERR = 1, 2
PATIENCE_SECONDS = 60
KILLED = 137

Change = Callable[[dict[str, Any]], None]
Answer = Callable[[bytes], bytes]


def no_engine() -> Engine:
    """Connect to an engine where none answers."""
    msg = "no engine answers"
    raise EngineUnreachable(msg)


def probe_answer(data: bytes) -> bytes:
    """Return the report of a probe that passes, as *data* on its standard input asks for it."""
    settings = json.loads(data.partition(b"\n")[0])
    return probe_output(
        level=settings["level"],
        accelerator=settings["accelerator"],
        devices=len(settings["expect"]["gpus"]) or 1,
        runtime=settings["runtime"],
        own=[check["name"] for check in settings["checks"]],
    )


@dataclass(kw_only=True)
class Script:
    """What a container does once it is started."""

    frames: Sequence[tuple[int, "bytes | Answer"]] = ()
    exit_code: int = 0
    oom_killed: bool = False
    health: str = ""
    until_killed: bool = False
    on_start: Callable[[], None] = lambda: None
    deaf: bool = False
    ignores: frozenset[str] = frozenset()
    written: WritableLayer = field(default_factory=lambda: WritableLayer(changes={}, size_bytes=0))


@dataclass(kw_only=True)
class Container:
    """A container of the fake."""

    id: str
    name: str
    platform: str
    request: Mapping[str, Any]
    record: dict[str, Any]
    script: Script
    status: str = "created"
    exit_code: int = 0
    input: bytes = b""
    input_ended: bool = False
    closed: bool = False
    signals: list[str] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    ports: list[dict[str, Any]] = field(default_factory=list)
    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def labels(self) -> dict[str, str]:
        """The labels that it was created with."""
        return dict(self.request.get("Labels", {}))

    @property
    def role(self) -> str:
        """What rocmrun made it for."""
        return self.labels.get("io.rocmrun.role", "")

    def end(self, exit_code: int) -> None:
        """End it."""
        self.exit_code, self.status = exit_code, "exited"
        self.ended.set()


@dataclass(kw_only=True)
class Streams:
    """The attachment to a container of the fake."""

    container: Container

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Yield the script's output once the container is started."""
        assert self.container.started.wait(PATIENCE_SECONDS)
        if self.container.status == "created":
            return
        for stream, data in self.container.script.frames:
            yield stream, data(self.container.input) if callable(data) else data
        if self.container.script.until_killed:
            assert self.container.ended.wait(PATIENCE_SECONDS)

    def send(self, data: bytes) -> None:
        """Take input, unless the container is deaf."""
        if self.container.script.deaf:
            raise BrokenPipeError
        self.container.input += data

    def end_input(self) -> None:
        """Remember that the input has ended."""
        self.container.input_ended = True

    def close(self) -> None:
        """Remember that nobody listens any more."""
        self.container.closed = True


class FakeEngine:
    """An engine in memory. `calls` holds "METHOD ROLE" in order; `kept` is what is left in the end."""

    def __init__(
        self,
        *,
        facts: EngineFacts = ENGINE,
        images: Mapping[str, ImageFacts] | None = None,
        registry: Mapping[str, ImageFacts] | None = None,
        scripts: Mapping[str, Script] | None = None,
        change: Mapping[str, Change] | None = None,
        warnings: Sequence[str] = (),
        failures: Mapping[str, Exception] | None = None,
        files: Mapping[str, PathStat | bytes | None] | None = None,
        others: Sequence[dict[str, Any]] = (),
        named: Sequence[NamedImage] = (),
        volumes: Sequence[VolumeFacts] = (),
        owners: Mapping[str, PathOwner | None] | None = None,
    ) -> None:
        """Make an engine.

        Args:
            images: Name → image that is here; the usual one goes by its id.
            registry: Name → image that a pull fetches.
            scripts: Role → what its container does; the probe passes, the workload exits 0.
            change: Role → what happens to the record of its container.
            warnings: What every create warns about.
            failures: "METHOD ROLE" → what that call raises.
            files: Path in every container → what is there; any other path is an executable file.
            others: Summaries of containers that are here already.
            named: Images with all their names, for those who list them.
            volumes: Those that are here already.
            owners: Path in every container → whose it is.
        """
        self._facts = facts
        self.images = {IMAGE.image_id: IMAGE} if images is None else dict(images)
        self.registry = dict(registry or {})
        self.scripts = {"probe": Script(frames=[(STDOUT, probe_answer)]), **(scripts or {})}
        self.change = change or {}
        self.warnings = tuple(warnings)
        self.failures = failures or {}
        self.files = files or {}
        self.owners = owners or {}
        self.others = list(others)
        self.named = {image.image_id: image for image in named}
        self.volumes = {volume.name: volume for volume in volumes}
        self.calls: list[str] = []
        self.stop_seconds: list[int] = []
        self.failures_once: dict[str, Exception] = {}
        self.restarted: dict[str, Script] = {}
        self.on_stop: Callable[[], None] = lambda: None
        self.on_remove: Callable[[], None] = lambda: None
        self.tags: list[tuple[str, str, str]] = []
        self.containers_by_id: dict[str, Container] = {}
        self.removed: list[Container] = []
        self._numbers = itertools.count(1)

    @property
    def kept(self) -> list[Container]:
        """Containers that are still here."""
        return list(self.containers_by_id.values())

    def made(self, role: str) -> Container:
        """Return the one container that was made for *role*, removed since or not."""
        (found,) = [each for each in (*self.removed, *self.kept) if each.role == role]
        return found

    def _call(self, method: str, role: str = "") -> None:
        name = f"{method} {role}".rstrip()
        self.calls.append(name)
        if name in self.failures_once:
            raise self.failures_once.pop(name)
        if name in self.failures:
            raise self.failures[name]

    def _get(self, container_id: str) -> Container:
        if container_id not in self.containers_by_id:
            msg = f"no such container: {container_id}"
            raise EngineFailed(msg)
        return self.containers_by_id[container_id]

    def facts(self) -> EngineFacts:
        """Return what the fake was told to be."""
        self._call("facts")
        return self._facts

    def image(self, name: str) -> ImageFacts | None:
        """Return an image that is here."""
        return self.images.get(name)

    def history(self, image_id: str) -> tuple[str, ...]:  # noqa: ARG002  # the protocol's
        """Say nothing of how an image was built."""
        return ()

    def asks_registries(self) -> bool:
        """As Docker does, and Podman does not."""
        return self.facts().kind != "podman"

    def resolve(self, reference: str, timeout_seconds: float) -> Resolved:  # noqa: ARG002  # the protocol's
        """Return the digest of an image of the registry."""
        if reference not in self.registry:
            msg = f"no {reference}"
            raise ImageGone(msg)
        return Resolved(digest=self.registry[reference].repo_digests[0].partition("@")[2])

    def pull(self, name: str, platform: str) -> Iterator[PullEvent]:
        """Fetch an image of the registry."""
        self._call("pull")
        yield PullEvent(layer="abc", status="Downloading", current=1, total=2)
        if name in self.registry:
            self.images[name] = self.registry[name]
            self.images[self.registry[name].image_id] = self.registry[name]
        yield PullEvent(layer="", status=f"Status: {platform}")

    def tag(self, image_id: str, repository: str, tag: str) -> None:
        """Name an image."""
        self.tags.append((image_id, repository, tag))
        self.images[f"{repository}:{tag}"] = self.images[image_id]

    def named_images(self, repository: str) -> tuple[NamedImage, ...]:
        """Return the images that were told to be there and have a tag of *repository*."""
        prefix = f"{repository}:"
        return tuple(
            image
            for image in self.named.values()
            if any(tag.startswith(prefix) for tag in image.tags)
        )

    def images_in_use(self) -> frozenset[str]:
        """Return the ids of images of containers that are here."""
        others = (summary.get("ImageID", "") for summary in self.others)
        return frozenset((*others, *(each.request["Image"] for each in self.kept)))

    def mounts_in_use(self) -> dict[str, str]:
        """Return the mounts of containers that have not ended."""
        own = {
            mount["Source"]: each.name
            for each in self.kept
            if each.status != "exited"
            for mount in each.record["Mounts"]
        }
        others = {
            mount["Source"]: summary["Names"][0].lstrip("/")
            for summary in self.others
            if summary["State"] != "exited"
            for mount in summary.get("Mounts", ())
        }
        return others | own

    def remove_image_name(self, name: str) -> None:
        """Take a name from an image, and the image with its last."""
        self._call(f"remove_image_name {name}")
        for image in tuple(self.named.values()):
            tags = tuple(tag for tag in image.tags if tag != name)
            digests = tuple(digest for digest in image.digests if digest != name)
            self.named[image.image_id] = replace(image, tags=tags, digests=digests)
            if not tags and not digests:
                del self.named[image.image_id]

    def volume(self, name: str) -> VolumeFacts | None:
        """Return a volume that is here."""
        return self.volumes.get(name)

    def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
        """Create a container and record it as Docker does."""
        role = request.get("Labels", {}).get("io.rocmrun.role", "")
        self._call("create", role)
        image = self.images[request["Image"]]
        if not any(
            (request.get("Entrypoint"), request.get("Cmd"), image.entrypoint, image.command)
        ):
            msg = "cannot create the container: no command specified (status 400)"
            raise EngineFailed(msg)
        identity = f"{next(self._numbers):064x}"
        record = recorded(request, image, name=name)
        if role in self.change:
            self.change[role](record)
        self.containers_by_id[identity] = Container(
            id=identity,
            name=name,
            platform=platform,
            request=copy.deepcopy(dict(request)),
            record=record | {"Id": identity},
            script=self.scripts.get(role, Script()),
        )
        return Created(container_id=identity, warnings=self.warnings)

    def inspect(self, container_id: str) -> dict[str, Any]:
        """Return the record."""
        container = self._get(container_id)
        self._call("inspect", container.role)
        return copy.deepcopy(container.record)

    def state(self, container_id: str) -> ContainerState:
        """Return how it is."""
        container = self._get(container_id)
        return ContainerState(
            status=container.status,
            exit_code=container.exit_code,
            oom_killed=container.script.oom_killed,
            health=container.script.health,
        )

    def path_stat(self, container_id: str, path: str) -> PathStat | None:
        """Return what is at *path*: an executable file, unless the fake was told otherwise."""
        self._get(container_id)
        found = self.files.get(path, PathStat(mode=0o755))
        return PathStat(mode=0o644) if isinstance(found, bytes) else found

    def path_owner(self, container_id: str, path: str) -> PathOwner | None:
        """Return whose *path* is: root's, open to all, unless the fake was told otherwise."""
        self._get(container_id)
        return self.owners.get(path, PathOwner(mode=0o755, uid=0, gid=0))

    def read_file(self, container_id: str, path: str, limit: int = 1 << 20) -> bytes | None:
        """Return the bytes that the fake was given for *path*."""
        self._call("read_file", self._get(container_id).role)
        found = self.files.get(path)
        return found[:limit] if isinstance(found, bytes) else None

    def written(self, container_id: str) -> WritableLayer:
        """Return what the script says that it has changed."""
        container = self._get(container_id)
        self._call("written", container.role)
        return container.script.written

    def attach(self, container_id: str, *, stdin: bool, tty: bool) -> Streams:  # noqa: ARG002  # the protocol's
        """Attach."""
        container = self._get(container_id)
        self._call("attach", container.role)
        return Streams(container=container)

    def start(self, container_id: str) -> None:
        """Start it: a script that is not told to wait is at its end at once."""
        container = self._get(container_id)
        self._call("start", container.role)
        container.script = self.restarted.get(container_id, container.script)
        container.status = "running"
        container.ended.clear()
        container.started.set()
        container.script.on_start()
        if not container.script.until_killed:
            container.end(container.script.exit_code)

    def wait(self, container_id: str, timeout_seconds: float | None = None) -> int:
        """Return the exit code."""
        container = self._get(container_id)
        self._call("wait", container.role)
        if not container.ended.wait(timeout_seconds or PATIENCE_SECONDS):
            raise TimeoutError
        return container.exit_code

    def kill(self, container_id: str, signal_name: str) -> None:
        """Send a signal, which ends a script that waits."""
        container = self._get(container_id)
        self._call(f"kill {signal_name}", container.role)
        container.signals.append(signal_name)
        if container.status == "running" and signal_name not in container.script.ignores:
            container.end(KILLED if signal_name == "SIGKILL" else container.script.exit_code)

    def stop(self, container_id: str, timeout_seconds: int) -> None:
        """End it."""
        container = self._get(container_id)
        self._call("stop", container.role)
        self.stop_seconds.append(timeout_seconds)
        if container.status != "exited":
            container.end(KILLED)
        self.on_stop()

    def remove(self, container_id: str) -> None:
        """Remove it; a second time is no error."""
        found = [other for other in self.others if other["Id"] == container_id]
        if found:
            self.others.remove(found[0])
            self._call("remove")
        elif container_id in self.containers_by_id:
            container = self.containers_by_id.pop(container_id)
            self.removed.append(container)
            # Whoever still reads or waits sees the end.
            container.started.set()
            container.ended.set()
            self._call("remove", container.role)
            self.on_remove()

    def logs(
        self, container_id: str, *, follow: bool, tail: int | None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield what the script of a container printed, the last *tail* frames."""
        container = self._get(container_id)
        self._call(f"logs follow={follow}", container.role)
        frames = [
            (stream, data) for stream, data in container.script.frames if isinstance(data, bytes)
        ]
        yield from frames if tail is None else frames[len(frames) - tail :]

    def rename(self, container_id: str, name: str) -> None:
        """Give a container another name."""
        container = self._get(container_id)
        self._call("rename", container.role)
        container.name = name

    def resize(self, container_id: str, rows: int, columns: int) -> None:
        """Remember the size."""
        container = self._get(container_id)
        self._call("resize", container.role)
        container.sizes.append((rows, columns))

    def containers(self, label: str, *, running_only: bool = False) -> list[dict[str, Any]]:
        """Return summaries of the containers that carry *label*, of all for ""."""
        own = [
            {
                "Id": each.id,
                "Names": [f"/{each.name}"],
                "Labels": each.labels,
                "State": each.status,
                "Status": f"Exited ({each.exit_code}) now" if each.status == "exited" else "Up now",
                "Ports": each.ports,
            }
            for each in self.kept
        ]
        return [
            summary
            for summary in (*self.others, *own)
            if (not label or label in summary["Labels"])
            and (not running_only or summary["State"] == "running")
        ]
