"""The Docker daemon through the Docker SDK: the only module that imports docker.

Calls return our own values and raise our own errors; nothing here decides what a container may do.
"""

import base64
import contextlib
import io
import json
import os
import re
import socket
import tarfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import docker
import docker.auth
import docker.errors
import requests.exceptions
from docker.utils.socket import frames_iter as _frames_iter

from rocmrun.core.engine_errors import container_error, pull_error
from rocmrun.core.host import EngineFacts, VolumeFacts
from rocmrun.core.image import ImageFacts
from rocmrun.core.keep_tags import NamedImage
from rocmrun.core.lock import Resolved
from rocmrun.core.log_frames import frames_of
from rocmrun.core.run import ContainerState, Created, PathOwner, PathStat, PullEvent
from rocmrun.errors import (
    EngineDenied,
    EngineFailed,
    EngineUnreachable,
    EngineUnsuitable,
    ImageGone,
    RocmrunError,
)

frames_iter: Any = _frames_iter
MINIMUM_API = (1, 41)
# What the daemon says of a path that leads through a loop of links (github.com/moby/sys, symlink) or a file.
_NO_SUCH_PATH = re.compile(r"too many links|lstat .*: not a directory")
CALL_TIMEOUT_SECONDS = 60
STDOUT = 1
# The engine's own keys, Ctrl-P Ctrl-Q, are common in shells and editors and would cut the workload off.
NO_DETACH = ",".join(["ctrl-@", "ctrl-^"] * 8)


@dataclass(slots=True)
class Attachment:
    """The streams of one container, attached before it starts."""

    raw: Any
    tty: bool

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Yield (1 for stdout or 2 for stderr, bytes) until the container closes its streams."""
        with contextlib.suppress(ConnectionResetError):
            yield from frames_iter(self.raw, self.tty)

    def send(self, data: bytes) -> None:
        """Write *data* to the container's stdin."""
        self._socket.sendall(data)

    def end_input(self) -> None:
        """Close the container's stdin and keep reading its output."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Drop the connection; a reader in another thread sees the end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self.raw.close()

    @property
    def _socket(self) -> socket.socket:
        # urllib3 hands out the file object around the socket; only the socket can be half-closed.
        found: socket.socket = getattr(self.raw, "_sock", self.raw)
        return found


def engine_address(environment: Mapping[str, str] = os.environ) -> str:
    """Return where the engine is looked for, without a password."""
    address = environment.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    scheme, mark, rest = address.partition("://")
    login, at, host = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}{mark}{user}:***{at}{host}" if colon and at else address


class DockerEngine:
    """A Docker-compatible engine that answers."""

    def __init__(self, api: Any) -> None:
        # The SDK is only partly typed; this module gives its answers types.
        self._api = api
        self._facts: EngineFacts | None = None
        self._logins = _Logins(api)

    @classmethod
    def connect(cls) -> "DockerEngine":
        """Return the engine that DOCKER_HOST, the Docker context or the default socket names.

        Raises:
            EngineDenied: the socket exists and may not be opened.
            EngineUnreachable: nothing answers.
            EngineUnsuitable: it speaks an API older than 1.41.
        """
        address = engine_address()
        try:
            api = docker.DockerClient.from_env(version="auto", timeout=CALL_TIMEOUT_SECONDS).api
        except docker.errors.DockerException as error:
            raise _connection_error(error, address) from error
        except (requests.exceptions.RequestException, OSError) as error:
            raise _connection_error(error, address) from error
        version = api.api_version
        if tuple(int(part) for part in version.split(".")) < MINIMUM_API:
            msg = f"the engine at {address} speaks API {version}; rocmrun needs 1.41 (Docker Engine 20.10) or newer"
            raise EngineUnsuitable(msg, hint="upgrade Docker Engine to 20.10 or newer")
        return cls(api)

    def facts(self) -> EngineFacts:
        """Return what /version and /info say; asked once."""
        if self._facts is None:
            self._facts = self._ask_facts()
        return self._facts

    def _ask_facts(self) -> EngineFacts:
        with _translated("ask the engine about itself"):
            version, info = self._api.version(), self._api.info()
        components = [part.get("Name", "") for part in version.get("Components") or ()]
        kind = "podman" if any("Podman" in name for name in components) else "docker"
        return EngineFacts(
            kind=kind,
            version=version.get("Version", ""),
            api_version=version.get("ApiVersion", ""),
            address=engine_address(),
            kernel=info.get("KernelVersion"),
            operating_system=info.get("OperatingSystem"),
            architecture=info.get("Architecture"),
            security_options=tuple(info.get("SecurityOptions") or ()),
            default_runtime=info.get("DefaultRuntime"),
            runtimes=tuple(sorted(info.get("Runtimes") or ())),
            cgroup_driver=info.get("CgroupDriver"),
            cgroup_version=int(info["CgroupVersion"]) if info.get("CgroupVersion") else None,
            root_directory=info.get("DockerRootDir"),
            cdi_spec_dirs=tuple(info.get("CDISpecDirs") or ()),
            cdi_devices=tuple(
                sorted(device.get("ID", "") for device in info.get("DiscoveredDevices") or ())
            ),
            mirrors=tuple((info.get("RegistryConfig") or {}).get("Mirrors") or ()),
            memory_limit=bool(info.get("MemoryLimit", True)),
            pids_limit=bool(info.get("PidsLimit", True)),
            swap_limit=bool(info.get("SwapLimit", True)),
        )

    def image(self, name: str) -> ImageFacts | None:
        """Return the config of a local image by id, digest or tag; None when it is not here."""
        with _translated(f"inspect image {name}"):
            try:
                return _image_facts(self._api.inspect_image(name))
            except docker.errors.ImageNotFound:
                return None

    def history(self, image_id: str) -> tuple[str, ...]:
        """Return the steps that a local image was built by, the first one first; () when it is not here."""
        with _translated(f"read the history of {image_id}"):
            try:
                steps = self._api.history(image_id)
            except docker.errors.ImageNotFound:
                return ()
        return tuple(step.get("CreatedBy") or "" for step in reversed(steps))

    def resolve(self, reference: str, timeout_seconds: float) -> Resolved:
        """Ask the registry, through the engine, what *reference* names now."""
        api = self._api
        login, warning = self._logins.login(reference)
        with _translated(f"resolve {reference}", registry=reference):
            response = api.get(
                api._url(
                    "/distribution/{0}/json", reference
                ),  # inspect_distribution has no timeout
                headers={"X-Registry-Auth": docker.auth.encode_header(login)} if login else {},
                timeout=timeout_seconds,
            )
            api._raise_for_status(response)
            body = response.json()
        descriptor = body["Descriptor"]
        platforms = body.get("Platforms")
        return Resolved(
            digest=descriptor["digest"],
            media_type=descriptor.get("mediaType"),
            platforms=None if platforms is None else _platforms(platforms),
            warning=warning,
        )

    def pull(self, name: str, platform: str) -> Iterator[PullEvent]:
        """Pull *name* ("repo@sha256:…") and yield progress; an error inside the stream is raised.

        The SDK's `images.pull` hides those errors and returns whatever is local: it is not used.
        """
        login, warning = self._logins.login(name)
        if warning:
            yield PullEvent(warning=warning)
        with _translated(f"pull {name}", registry=name):
            repository, _, digest = name.partition("@")
            stream = self._api.pull(
                repository,
                tag=digest,
                stream=True,
                decode=True,
                platform=platform,
                auth_config=login,
            )
            failure = ""
            for event in stream:
                if "error" in event:
                    failure = (
                        failure or event["error"]
                    )  # the last event; the stream is read to its end
                    continue
                detail = event.get("progressDetail") or {}
                yield PullEvent(
                    layer=event.get("id", ""),
                    status=event.get("status", ""),
                    current=detail.get("current"),
                    total=detail.get("total"),
                )
        if failure:
            raise pull_error(name, failure)

    def tag(self, image_id: str, repository: str, tag: str) -> None:
        """Give a local image a name, so that `docker image prune` leaves it alone."""
        with _translated(f"tag {image_id}"):
            self._api.tag(image_id, repository, tag)

    def named_images(self, repository: str) -> tuple[NamedImage, ...]:
        """Return the images that a tag of *repository* names, each with all its names."""
        with _translated("list images"):
            listed = self._api.images(filters={"reference": f"{repository}:*"})
            # The filter leaves out an image's other names too, so each is looked at by itself.
            found = [self._api.inspect_image(body["Id"]) for body in listed]
        return tuple(
            NamedImage(
                image_id=body["Id"],
                tags=tuple(body.get("RepoTags") or ()),
                digests=tuple(
                    name for name in body.get("RepoDigests") or () if not name.startswith("<none>")
                ),
                size_bytes=body.get("Size") or 0,
            )
            for body in found
        )

    def images_in_use(self) -> frozenset[str]:
        """Return the ids of the images that any container was made from, running or not."""
        with _translated("list containers"):
            return frozenset(body["ImageID"] for body in self._api.containers(all=True))

    def mounts_in_use(self) -> dict[str, str]:
        """Return host path → name of a container that has it mounted and runs, or is about to."""
        with _translated("list containers"):
            listed = self._api.containers(all=True)
        return {
            mount["Source"]: (body.get("Names") or [body["Id"][:12]])[0].lstrip("/")
            for body in listed
            if body.get("State") not in {"exited", "dead"}
            for mount in body.get("Mounts") or ()
            if mount.get("Source")
        }

    def remove_image_name(self, name: str) -> None:
        """Take *name* from an image; the image goes with its last name. Gone already is no error."""
        with _translated(f"remove {name}"), contextlib.suppress(docker.errors.ImageNotFound):
            self._api.remove_image(name, noprune=True)

    def volume(self, name: str) -> VolumeFacts | None:
        """Return who provides a volume, and from what; None when there is none yet."""
        with _translated(f"inspect volume {name}"):
            try:
                body = self._api.inspect_volume(name)
            except docker.errors.NotFound:
                return None
        return VolumeFacts(
            name=body.get("Name", name),
            driver=body.get("Driver") or "",
            options=dict(body.get("Options") or {}),
        )

    def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
        """Create a container from *request*, byte for byte."""
        with _translated("create the container", container=True):
            body = self._api.create_container_from_config(
                dict(request), name=name, platform=platform
            )
        return Created(container_id=body["Id"], warnings=tuple(body.get("Warnings") or ()))

    def inspect(self, container_id: str) -> dict[str, Any]:
        """Return the engine's record of a container."""
        with _translated("inspect the container"):
            record: dict[str, Any] = self._api.inspect_container(container_id)
        return record

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

    def path_stat(self, container_id: str, path: str) -> PathStat | None:
        """Look *path* up in a container that need not run; None when it is not there."""
        api = self._api
        url = api._url("/containers/{0}/archive", container_id)
        how: dict[str, Any] = {"params": {"path": path}, "timeout": CALL_TIMEOUT_SECONDS}
        with _translated(f"look up {path} in the image", container=True):
            response = api.head(url, **how)  # get_archive would send the file
            if response.status_code == requests.codes.not_found:
                return None
            if not response.ok:
                # The answer to HEAD has no body to say why.
                with api.get(url, stream=True, **how) as reason:
                    if _NO_SUCH_PATH.search(reason.text):
                        return None
                    api._raise_for_status(reason)
        header = response.headers["X-Docker-Container-Path-Stat"]
        stat = json.loads(base64.b64decode(header))
        return PathStat(mode=stat["mode"], link_target=stat.get("linkTarget") or "")

    def path_owner(self, container_id: str, path: str) -> PathOwner | None:
        """Return whose *path* is in a container that need not run; None when it is not there.

        Only the archive's first header is read: the rest of a directory is never sent.
        """
        api = self._api
        url = api._url("/containers/{0}/archive", container_id)
        with _translated(f"look up {path} in the image", container=True):
            how: dict[str, Any] = {"params": {"path": path}, "timeout": CALL_TIMEOUT_SECONDS}
            # Compressed, the first header would wait for the first block of the compressor.
            how["headers"] = {"Accept-Encoding": "identity"}
            with api.get(url, stream=True, **how) as response:
                if response.status_code == requests.codes.not_found:
                    return None
                if not response.ok:
                    if _NO_SUCH_PATH.search(response.text):
                        return None
                    api._raise_for_status(response)
                try:
                    with tarfile.open(fileobj=response.raw, mode="r|", bufsize=512) as archive:
                        found = archive.next()
                except tarfile.TarError:
                    return None
        if found is None:
            return None
        link = found.linkname if found.issym() else ""
        return PathOwner(mode=found.mode & 0o7777, uid=found.uid, gid=found.gid, link_target=link)

    def read_file(self, container_id: str, path: str, limit: int = 1 << 20) -> bytes | None:
        """Return a small file of a container that need not run; None when it is not there.

        *limit* is in bytes; a larger file is cut.
        """
        with _translated(f"read {path} in the image"):
            try:
                chunks, _ = self._api.get_archive(container_id, path)
            except docker.errors.NotFound:
                return None
            data = bytearray()
            for chunk in chunks:
                data += chunk
                if len(data) > limit:
                    break
        with (
            contextlib.suppress(tarfile.TarError),
            tarfile.open(fileobj=io.BytesIO(bytes(data))) as archive,
        ):
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                return file.read(limit) if file else None
        return None

    def attach(self, container_id: str, *, stdin: bool, tty: bool) -> Attachment:
        """Attach to a container before it starts, so that no byte of it is lost."""
        params = {
            "stdin": int(stdin),
            "stdout": 1,
            "stderr": 1,
            "stream": 1,
            "detachKeys": NO_DETACH,
        }
        with _translated("attach to the container"):
            raw = self._api.attach_socket(container_id, params=params)
        # The SDK leaves its call timeout on the socket; a workload may be silent for days.
        getattr(raw, "_sock", raw).settimeout(None)
        return Attachment(raw=raw, tty=tty)

    def start(self, container_id: str) -> None:
        """Start a created container."""
        with _translated("start the container", container=True):
            self._api.start(container_id)

    def wait(self, container_id: str, timeout_seconds: float | None = None) -> int:
        """Return the exit code of a container once it has ended.

        Raises:
            TimeoutError: it still runs after *timeout_seconds*.
        """
        with _translated("wait for the container"):
            try:
                return int(self._api.wait(container_id, timeout=timeout_seconds)["StatusCode"])
            except (requests.exceptions.ReadTimeout, requests.exceptions.ConnectionError) as error:
                if timeout_seconds is None:
                    raise
                raise TimeoutError(str(error)) from error

    def kill(self, container_id: str, signal_name: str) -> None:
        """Send a signal ("SIGTERM"); a container that has ended already is no error."""
        with _translated("signal the container"), _gone_is_fine():
            self._api.kill(container_id, signal_name)

    def stop(self, container_id: str, timeout_seconds: int) -> None:
        """Ask a container to end, and kill it after *timeout_seconds*."""
        with _translated("stop the container"), _gone_is_fine():
            self._api.stop(container_id, timeout=timeout_seconds)

    def remove(self, container_id: str) -> None:
        """Remove a container with its anonymous volumes, running or not; gone already is no error."""
        with _translated("remove the container"), _gone_is_fine():
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
        with _translated("read the log"):
            tty = api.inspect_container(container_id)["Config"]["Tty"]
            # The SDK's own method does not tell the two streams apart.
            response = api.get(
                api._url("/containers/{0}/logs", container_id),
                params=params,
                stream=True,
                timeout=None if follow else CALL_TIMEOUT_SECONDS,
            )
            api._raise_for_status(response)
        with contextlib.closing(response), _translated("read the log"):
            chunks = _chunks(response)
            # A terminal has one stream, and no frames.
            yield from ((STDOUT, chunk) for chunk in chunks) if tty else frames_of(chunks)

    def rename(self, container_id: str, name: str) -> None:
        """Give a container another name."""
        with _translated("rename the container", container=True):
            self._api.rename(container_id, name)

    def resize(self, container_id: str, rows: int, columns: int) -> None:
        """Tell a running container the size of its terminal."""
        with _translated("resize the terminal"), _gone_is_fine():
            self._api.resize(container_id, height=rows, width=columns)

    def containers(self, label: str, *, running_only: bool = False) -> list[dict[str, Any]]:
        """Return the engine's summary of every container that carries *label* ("name" or "name=value")."""
        with _translated("list containers"):
            found: list[dict[str, Any]] = self._api.containers(
                all=not running_only, filters={"label": label}
            )
        return found

    def close(self) -> None:
        """Drop the connections."""
        self._api.close()


def _chunks(response: Any) -> Iterator[bytes]:
    """Yield what comes, as it comes; the engine hangs up when the container is removed."""
    with contextlib.suppress(requests.exceptions.ChunkedEncodingError):
        yield from response.iter_content(chunk_size=None)


def _image_facts(body: Mapping[str, Any]) -> ImageFacts:
    config = body.get("Config") or {}
    environment = (entry.partition("=")[::2] for entry in config.get("Env") or ())
    return ImageFacts(
        image_id=body["Id"],
        repo_digests=tuple(sorted(set(body.get("RepoDigests") or ()))),
        os=body.get("Os") or "linux",
        architecture=body.get("Architecture") or "",
        variant=body.get("Variant") or "",
        user=config.get("User") or "",
        workdir=config.get("WorkingDir") or "",
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        env=tuple(sorted((name, value) for name, value in environment)),
        volumes=tuple(sorted(config.get("Volumes") or ())),
        labels=tuple(sorted((config.get("Labels") or {}).items())),
        healthcheck=bool(config.get("Healthcheck")),
    )


def _platforms(found: list[Mapping[str, str]]) -> tuple[str, ...]:
    names = {
        "/".join(
            part for part in (item.get("os"), item.get("architecture"), item.get("variant")) if part
        )
        for item in found
        if item.get("os") not in {None, "", "unknown"}
    }
    return tuple(sorted(names))


class _Logins:
    """Logins of this user, each registry looked up once: a helper may ask for a password each time."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._found: dict[str, dict[str, str]] = {}

    def login(self, name: str) -> tuple[dict[str, str], str]:
        """Return the login for the registry of *name*, {} for none, and a warning: once where a helper does not work."""
        registry, _ = docker.auth.resolve_repository_name(name.partition("@")[0])
        with self._lock:
            if registry in self._found:
                return self._found[registry], ""
            warning = ""
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the SDK's own words for a missing helper
                    found = docker.auth.resolve_authconfig(self._api._auth_configs, registry)
            except docker.errors.DockerException as error:
                # The SDK gives up even where the image is public.
                found, warning = (
                    None,
                    f"{_helper_in(str(error))}: {registry} is asked without a login",
                )
            self._found[registry] = found or {}
            return self._found[registry], warning


def _helper_in(text: str) -> str:
    helper = re.search(r"docker-credential-[A-Za-z0-9._-]+", text)
    missing = "not installed" in text
    return f"{helper[0] if helper else 'the credential helper'} {'is not installed' if missing else 'failed'}"


def _connection_error(error: Exception, address: str) -> RocmrunError:
    text = str(error)
    if "PermissionError" in text or "Permission denied" in text:
        return EngineDenied(
            f"this user may not open the engine's socket ({address})",
            hint="run as a user of the docker group (which is as powerful as root), or with sudo",
        )
    return EngineUnreachable(
        f"no container engine answers at {address}",
        hint="start it (sudo systemctl start docker), or point DOCKER_HOST at one",
    )


@contextlib.contextmanager
def _gone_is_fine() -> Iterator[None]:
    conflict = requests.codes.conflict
    try:
        yield
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as error:
        # 409: "is not running", "removal already in progress"
        if error.status_code != conflict:
            raise


@contextlib.contextmanager
def _translated(what: str, *, container: bool = False, registry: str = "") -> Iterator[None]:
    """Turn what the SDK raises into our errors; *what* completes "cannot …"."""
    try:
        yield
    except docker.errors.APIError as error:
        text = str(error.explanation or error)
        if container:
            raise container_error(what, error.status_code, text) from error
        if registry:
            raise pull_error(registry, text, status=error.status_code) from error
        if isinstance(error, docker.errors.ImageNotFound):
            msg = f"cannot {what}: {text}"
            raise ImageGone(msg) from error
        msg = f"cannot {what}: {text}"
        raise EngineFailed(msg) from error
    except requests.exceptions.Timeout as error:
        msg = f"cannot {what}: the engine did not answer in time"
        raise EngineUnreachable(msg) from error
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        msg = f"cannot {what}: {error}"
        raise EngineUnreachable(msg) from error
