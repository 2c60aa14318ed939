"""The engine itself: how it is found, and what it says of itself."""

import os
from collections.abc import Mapping
from typing import Any

import docker
import docker.errors
import requests.exceptions
from docker.utils import kwargs_from_env

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.path_facts import VolumeFacts
from rocmrun.errors import (
    EngineDenied,
    EngineUnreachable,
    EngineUnsuitable,
    Interrupted,
    RocmrunError,
)
from rocmrun.system.engine.calls import CALL_TIMEOUT_SECONDS, translated
from rocmrun.system.engine.containers import EngineContainers
from rocmrun.system.engine.files import EngineFiles
from rocmrun.system.engine.images import EngineImages
from rocmrun.system.engine.logins import Logins
from rocmrun.system.engine.podman import PodmanDialect

MINIMUM_API = (1, 41)


def engine_address(environment: Mapping[str, str] = os.environ) -> str:
    """Return where the engine is looked for, without a password."""
    address = environment.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    scheme, mark, rest = address.partition("://")
    login, at, host = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}{mark}{user}:***{at}{host}" if colon and at else address


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


class _Client(docker.APIClient):
    """The SDK's client; it asks for the version to know what to speak, and Podman needs a second to answer."""

    _answer: dict[str, Any] | None = None

    def version(self, api_version: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  # the SDK's
        """Return what /version says; asked once."""
        if self._answer is None:
            self._answer = super().version(api_version)
        return self._answer


class DockerEngine(EngineImages, EngineFiles, EngineContainers):
    """A Docker-compatible engine that answers."""

    def __init__(self, api: Any) -> None:
        # The SDK is only partly typed; this module gives its answers types.
        self._api = api
        self._facts: EngineFacts | None = None
        self._logins = Logins(api)
        self._podman = PodmanDialect(api)

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
            api: Any = _Client(version="auto", timeout=CALL_TIMEOUT_SECONDS, **kwargs_from_env())
        except docker.errors.DockerException as error:
            # The SDK takes whatever happens while it asks for the version for the engine's fault, Ctrl-C too.
            if isinstance(error.__cause__, Interrupted):
                raise error.__cause__ from None
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
        with translated("ask the engine about itself"):
            version, info = self._api.version(), self._api.info()
        components = [
            (part.get("Name", ""), part.get("Version", ""))
            for part in version.get("Components") or ()
        ]
        kind = "podman" if any("Podman" in name for name, _ in components) else "docker"
        return EngineFacts(
            kind=kind,
            version=version.get("Version", ""),
            api_version=version.get("ApiVersion", ""),
            address=engine_address(),
            # Podman makes up another one for each answer.
            identity=None if kind == "podman" else info.get("ID") or None,
            components=tuple(sorted(f"{name} {number}" for name, number in components)),
            kernel=info.get("KernelVersion"),
            operating_system=info.get("OperatingSystem"),
            architecture=info.get("Architecture"),
            security_options=_security_options(info),
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

    def mounts_in_use(self) -> dict[str, str]:
        """Return host path → name of a container that has it mounted and runs, or is about to."""
        with translated("list containers"):
            listed = self._api.containers(all=True)
        return {
            mount["Source"]: (body.get("Names") or [body["Id"][:12]])[0].lstrip("/")
            for body in listed
            if body.get("State") not in {"exited", "dead"}
            for mount in body.get("Mounts") or ()
            if mount.get("Source")
        }

    def volume(self, name: str) -> VolumeFacts | None:
        """Return who provides a volume, and from what; None when there is none yet."""
        with translated(f"inspect volume {name}"):
            try:
                body = self._api.inspect_volume(name)
            except docker.errors.NotFound:
                return None
        return VolumeFacts(
            name=body.get("Name", name),
            driver=body.get("Driver") or "",
            options=dict(body.get("Options") or {}),
        )

    def close(self) -> None:
        """Drop the connections."""
        self._api.close()


def _security_options(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Podman 4 says in a field of its own that it is rootless."""
    options = tuple(info.get("SecurityOptions") or ())
    told = any(option.startswith("name=rootless") for option in options)
    return (*options, "name=rootless") if info.get("Rootless") and not told else options
