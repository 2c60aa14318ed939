"""What a use-case asks of an engine. `rocmrun.system.engine` and the tests' fake both answer it."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

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


class Attachment(Protocol):
    """The streams of one container."""

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Yield (1 for stdout or 2 for stderr, bytes) until the end."""

    def send(self, data: bytes) -> None:
        """Write to the container's stdin."""

    def end_input(self) -> None:
        """Close the container's stdin."""

    def close(self) -> None:
        """Drop the connection."""


class Engine(Protocol):
    """A Docker-compatible engine. Errors are ours (`rocmrun.errors`)."""

    def facts(self) -> EngineFacts:
        """Return what the engine says of itself."""

    def image(self, name: str) -> ImageFacts | None:
        """Return a local image by id, digest or tag."""

    def history(self, image_id: str) -> tuple[str, ...]:
        """Return the steps that a local image was built by, the first one first."""

    def asks_registries(self) -> bool:
        """Whether it can say what a reference names at its registry."""

    def resolve(self, reference: str, timeout_seconds: float) -> Resolved:
        """Ask the registry what a reference names now."""

    def pull(self, name: str, platform: str) -> Iterator[PullEvent]:
        """Pull an image by digest, yielding progress."""

    def tag(self, image_id: str, repository: str, tag: str) -> None:
        """Name a local image."""

    def named_images(self, repository: str) -> tuple[NamedImage, ...]:
        """List the images that a tag of *repository* names."""

    def images_in_use(self) -> frozenset[str]:
        """Return the ids of images that containers were made from."""

    def mounts_in_use(self) -> Mapping[str, str]:
        """Return host path → name of a container that has it mounted and runs, or is about to."""

    def remove_image_name(self, name: str) -> None:
        """Take a name from an image; the image goes with its last name."""

    def volume(self, name: str) -> VolumeFacts | None:
        """Return a volume; None when there is none yet."""

    def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
        """Create a container."""

    def inspect(self, container_id: str) -> dict[str, Any]:
        """Return the engine's record of a container."""

    def state(self, container_id: str) -> ContainerState:
        """Return how a container is doing."""

    def path_stat(self, container_id: str, path: str) -> PathStat | None:
        """Look a path up in a container that need not run."""

    def path_owner(self, container_id: str, path: str) -> PathOwner | None:
        """Return whose a path is in a container that need not run."""

    def read_file(self, container_id: str, path: str, limit: int = 1 << 20) -> bytes | None:
        """Return a small file of a container that need not run."""

    def written(self, container_id: str) -> WritableLayer:
        """Return what a container has changed of its image so far."""

    def attach(self, container_id: str, *, stdin: bool, tty: bool) -> Attachment:
        """Attach before the start."""

    def start(self, container_id: str) -> None:
        """Start a created container."""

    def wait(self, container_id: str, timeout_seconds: float | None = None) -> int:
        """Return the exit code once it has ended; TimeoutError when it has not by then."""

    def kill(self, container_id: str, signal_name: str) -> None:
        """Send a signal."""

    def stop(self, container_id: str, timeout_seconds: int) -> None:
        """End a container, by force after the timeout."""

    def remove(self, container_id: str) -> None:
        """Remove a container with its anonymous volumes."""

    def logs(
        self, container_id: str, *, follow: bool, tail: int | None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield (1 for stdout or 2 for stderr, bytes) of what the engine kept, the last *tail* lines."""

    def rename(self, container_id: str, name: str) -> None:
        """Give a container another name."""

    def resize(self, container_id: str, rows: int, columns: int) -> None:
        """Set the size of a running container's terminal."""

    def containers(self, label: str, *, running_only: bool = False) -> list[dict[str, Any]]:
        """List containers that carry a label; "" is any."""
