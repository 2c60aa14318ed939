"""Containers of an engine: made, watched, ended."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import requests.exceptions

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.log_frames import frames_of
from rocmrun.core.run import ContainerState, Created
from rocmrun.system.engine.attachment import Attachment
from rocmrun.system.engine.calls import CALL_TIMEOUT_SECONDS, chunks_of, gone_is_fine, translated
from rocmrun.system.engine.podman import PodmanDialect

STDOUT = 1
# The engine's own keys, Ctrl-P Ctrl-Q, are common in shells and editors and would cut the workload off.
NO_DETACH = ",".join(["ctrl-@", "ctrl-^"] * 8)


class EngineContainers(ABC):
    """The part of an engine that knows containers."""

    _api: Any
    _podman: PodmanDialect

    @abstractmethod
    def facts(self) -> EngineFacts:
        """Return what the engine says of itself."""

    def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
        """Create a container from *request*, byte for byte; only Podman gets a seccomp profile as a file."""
        with translated("create the container", container=True), self._sent(request) as sent:
            body = self._api.create_container_from_config(sent, name=name, platform=platform)
        return Created(container_id=body["Id"], warnings=tuple(body.get("Warnings") or ()))

    def inspect(self, container_id: str) -> dict[str, Any]:
        """Return the engine's record of a container, in Docker's words."""
        api = self._api
        with translated("inspect the container"):
            # The SDK's own method hides the headers, by which Podman tells itself.
            response = api.get(
                api._url("/containers/{0}/json", container_id), timeout=CALL_TIMEOUT_SECONDS
            )
            record: dict[str, Any] = api._result(response, json=True)
            return self._podman.completed(record, container_id, response.headers)

    def _sent(self, request: Mapping[str, Any]) -> AbstractContextManager[dict[str, Any]]:
        if self.facts().podman:
            return self._podman.profile_as_file(request)
        return nullcontext(dict(request))

    def state(self, container_id: str) -> ContainerState:
        """Return how a container is doing, or ended."""
        state = self.inspect(container_id)["State"]
        return ContainerState(
            status=state.get("Status", ""),
            exit_code=state.get("ExitCode"),
            oom_killed=bool(state.get("OOMKilled")),
            error=state.get("Error") or "",
            health=(state.get("Health") or {}).get("Status", "").replace("none", ""),
        )

    def attach(self, container_id: str, *, stdin: bool, tty: bool) -> Attachment:
        """Attach to a container before it starts, so that no byte of it is lost."""
        params = {
            "stdin": int(stdin),
            "stdout": 1,
            "stderr": 1,
            "stream": 1,
            "detachKeys": NO_DETACH,
        }
        # Podman prepares the container here, and says here what it cannot do.
        with translated("attach to the container", container=True):
            raw = self._api.attach_socket(container_id, params=params)
        # The SDK leaves its call timeout on the socket; a workload may be silent for days.
        getattr(raw, "_sock", raw).settimeout(None)
        return Attachment(raw=raw, tty=tty)

    def start(self, container_id: str) -> None:
        """Start a created container."""
        with translated("start the container", container=True):
            self._api.start(container_id)

    def wait(self, container_id: str, timeout_seconds: float | None = None) -> int:
        """Return the exit code of a container once it has ended.

        Raises:
            TimeoutError: it still runs after *timeout_seconds*.
        """
        with translated("wait for the container"):
            try:
                return int(self._api.wait(container_id, timeout=timeout_seconds)["StatusCode"])
            except (requests.exceptions.ReadTimeout, requests.exceptions.ConnectionError) as error:
                if timeout_seconds is None:
                    raise
                raise TimeoutError(str(error)) from error

    def kill(self, container_id: str, signal_name: str) -> None:
        """Send a signal ("SIGTERM"); a container that has ended already is no error."""
        with translated("signal the container"), gone_is_fine():
            self._api.kill(container_id, signal_name)

    def stop(self, container_id: str, timeout_seconds: int) -> None:
        """Ask a container to end, and kill it after *timeout_seconds*."""
        with translated("stop the container"), gone_is_fine():
            self._api.stop(container_id, timeout=timeout_seconds)

    def remove(self, container_id: str) -> None:
        """Remove a container with its anonymous volumes, running or not; gone already is no error."""
        with translated("remove the container"), gone_is_fine():
            self._api.remove_container(container_id, v=True, force=True)

    def logs(
        self, container_id: str, *, follow: bool, tail: int | None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield (1 for stdout or 2 for stderr, bytes) of what the engine kept; with *follow* until the container ends.

        *tail* is how many lines from the end; None is all.
        """
        api = self._api
        params = {"stdout": 1, "stderr": 1, "follow": int(follow), "tail": "all"}
        if tail is not None:
            params["tail"] = str(tail)
        with translated("read the log"):
            tty = api.inspect_container(container_id)["Config"]["Tty"]
            # The SDK's own method does not tell the two streams apart.
            response = api.get(
                api._url("/containers/{0}/logs", container_id),
                params=params,
                stream=True,
                timeout=None if follow else CALL_TIMEOUT_SECONDS,
            )
            api._raise_for_status(response)
        with contextlib.closing(response), translated("read the log"):
            chunks = chunks_of(response)
            # A terminal has one stream, and no frames.
            yield from ((STDOUT, chunk) for chunk in chunks) if tty else frames_of(chunks)

    def rename(self, container_id: str, name: str) -> None:
        """Give a container another name."""
        with translated("rename the container", container=True):
            self._api.rename(container_id, name)

    def resize(self, container_id: str, rows: int, columns: int) -> None:
        """Tell a running container the size of its terminal."""
        with translated("resize the terminal"), gone_is_fine():
            self._api.resize(container_id, height=rows, width=columns)

    def containers(self, label: str, *, running_only: bool = False) -> list[dict[str, Any]]:
        """Return the engine's summary of every container that carries *label* ("name", "name=value", "" for any)."""
        with translated("list containers"):
            found: list[dict[str, Any]] = self._api.containers(
                all=not running_only, filters={"label": label} if label else {}
            )
        return found
