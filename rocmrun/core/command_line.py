"""What docker-like options change in a profile, as the tables that `profile.loaded.override` takes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rocmrun.core.profile.paths import absolute_path
from rocmrun.core.secret_names import names_secret
from rocmrun.errors import UsageError

_VOLUME_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MODES = {"ro", "rw", "z", "Z"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of `launch`, `plan` and `probe`, spelled as docker spells them; empty ones change nothing."""

    env: Sequence[str] = ()
    volumes: Sequence[str] = ()
    ports: Sequence[str] = ()
    network: str | None = None
    entrypoint: str | None = None
    shm_size: str | None = None
    memory: str | None = None
    command: Sequence[str] = ()


def replacing(options: Options) -> dict[str, Any]:
    """Return the tables whose keys the options replace."""
    container: dict[str, Any] = {}
    for key in ("network", "shm_size", "memory"):
        value = getattr(options, key)
        if value is not None:
            container[key] = value
    if options.entrypoint is not None:
        container["entrypoint"] = [options.entrypoint] if options.entrypoint else []
    environment = dict(_assignment(text) for text in options.env if "=" in text)
    if environment:
        container["env"] = environment
    return {"container": container} if container else {}


def adding(options: Options, *, directory: str, home: str | None) -> dict[str, Any]:
    """Return the lists that the options extend; relative sources of -v start at *directory*, "~" is *home*."""
    tables: dict[str, Any] = {}
    names = [text for text in options.env if "=" not in text]
    container: dict[str, Any] = {}
    if names:
        container["env_from"] = names
    if options.ports:
        container["ports"] = list(options.ports)
    if container:
        tables["container"] = container
    if options.volumes:
        tables["mounts"] = [parse_volume(text, directory, home) for text in options.volumes]
    return tables


def _assignment(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if value and names_secret(name):
        msg = f"-e {name}=… puts a secret on the command line, where every user of this host can read it"
        raise UsageError(msg, hint=f"export {name}=…, and write -e {name} without a value")
    if not name:
        msg = f'-e "{text}": no variable name before "="'
        raise UsageError(msg, hint="write -e NAME=VALUE, or -e NAME to take the caller's value")
    return name, value


def parse_volume(text: str, directory: str, home: str | None) -> dict[str, Any]:
    """Return the mount that `-v SOURCE:TARGET[:ro|rw[,z|Z]]` means; as in docker, rw is the default.

    Raises:
        UsageError: it has another form.
    """
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    words = set(mode.split(",")) if mode else set()
    if not source or not target.startswith("/") or not words <= _MODES or words >= {"ro", "rw"}:
        msg = f'-v "{text}" is not SOURCE:TARGET[:ro|rw[,z|Z]] with an absolute target'
        raise UsageError(msg, hint="for example -v /srv/models:/models:ro")
    mount: dict[str, Any] = {"target": target, "mode": "ro" if "ro" in words else "rw"}
    if "z" in words or "Z" in words:
        mount["selinux"] = "shared" if "z" in words else "private"
    if "/" not in source and source not in {".", "..", "~"}:
        if not _VOLUME_NAME.fullmatch(source):
            msg = f'-v "{text}": "{source}" is neither a path nor a volume name'
            raise UsageError(msg)
        return {"type": "volume", "source": source, **mount}
    try:
        path = absolute_path(source, directory=directory, home=home)
    except ValueError as error:
        msg = f'-v "{text}": {error}'
        raise UsageError(msg) from error
    return {"type": "bind", "source": path, **mount}
