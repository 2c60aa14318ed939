"""Bring a published `docker run` line onto the baseline: what the job needs is kept, the rest is named with its reason."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rocmrun.core.docker_run.gpus import VISIBLE, indices, is_gpu, select_of
from rocmrun.core.docker_run.mounts import MountTables, mounts_of
from rocmrun.core.docker_run.notes import LeftOutOption, RunNotes
from rocmrun.core.docker_run.options import RunOption
from rocmrun.core.docker_run.parser import DockerRun
from rocmrun.core.docker_run.reasons import NOTHING_LOST, reason_for
from rocmrun.core.docker_run.shell_words import CLOSE, OPEN, expressions, plain
from rocmrun.core.reference import parse_reference
from rocmrun.core.secret_names import names_secret, without_secrets
from rocmrun.errors import ReferenceInvalid

_CALLER = re.compile(r"\$(UID|\{UID\}|\(id -u\))(:\$(GID|\{GID\}|\(id -g\)))?")
_ROOT = frozenset({"root", "0", "0:0", "root:root"})
_EVERY = frozenset({"all", "none", "void", ""})
_SHELLS = frozenset({"bash", "sh", "zsh"})
_SHORTEST_WITH_ADDRESS = 3
# Read together with others, not one by one.
_TOGETHER = frozenset({"gpus", "mount", "network", "tmpfs", "volume"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """A profile made from a line.

    Attributes:
        data: The profile's plain values.
        left_out: What the profile does not have.
        changed: What it has in another form, in sentences.
    """

    data: Mapping[str, Any]
    left_out: tuple[LeftOutOption, ...]
    changed: tuple[str, ...]


def profile_from_run(run: DockerRun, *, directory: str) -> ImportedRun:
    """Return the profile for *run*; relative sources of mounts start at *directory*."""
    notes = RunNotes(changed=[f"read with care: {repair}" for repair in run.repairs])
    for expansion in run.expansions:
        notes.leave(
            expansion, "stands for options that nobody knows here: the profile may lack some"
        )
    image = _image(run, notes)
    settings = _Settings(notes=notes)
    for option in run.options:
        settings.take(option)
    if run.has("interactive") and run.has("tty") and _is_shell(run.command):
        notes.change(
            "-it is said at the launch: rocmrun launch -it; without it a shell ends at once"
        )
    tables = MountTables(notes=notes, directory=directory)
    tables.take(mounts_of(run))
    select = select_of(run, settings.visible)
    network = _network(run, notes, published="ports" in settings.container)
    container = {
        **settings.container,
        **({"network": "bridge"} if network else {}),
        **({"command": _command(run, notes)} if run.command else {}),
        "tmpfs": tables.tmpfs,
        "env_from": settings.env_from,
        "env": {**settings.env, **tables.env},
    }
    data: dict[str, Any] = {
        "extends": "base",
        "accelerator": "cpu" if select == ["none"] else "",
        "parameters": notes.parameters,
        "image": {**image, **settings.image},
        "gpus": {"select": select},
        "container": {key: value for key, value in container.items() if value not in ({}, [], "")},
        "mounts": tables.mounts,
    }
    if settings.container.get("entrypoint") == []:
        data["container"]["entrypoint"] = []
    return ImportedRun(
        data={key: value for key, value in data.items() if value},
        left_out=tuple(dict.fromkeys(notes.left_out)),
        changed=tuple(dict.fromkeys(notes.changed)),
    )


def _is_shell(command: tuple[str, ...]) -> bool:
    """Whether nothing but a shell may be meant: images start one where no command is given, or a server."""
    return not command or (len(command) == 1 and command[0].rpartition("/")[2] in _SHELLS)


def _image(run: DockerRun, notes: RunNotes) -> dict[str, str]:
    name = run.image.removeprefix("docker://")
    if expressions(name):
        return {"ref": notes.text(name)}
    try:
        reference = parse_reference(name)
    except ReferenceInvalid:
        notes.parameters["image"] = {"help": f"the image, by tag; the line has {name or 'none'}"}
        notes.change("the line names no image that can be fetched: it is a parameter")
        return {"ref": "${image}"}
    if reference.moving:
        notes.change(
            f"{name} is a tag that moves: `rocmrun lock` pins what it names today; prefer one with a version"
        )
    return {"ref": reference.canonical}


def _command(run: DockerRun, notes: RunNotes) -> list[str]:
    """Return the command without --api-key and its like: what stands there everybody on the host can read."""
    words: list[str] = []
    skipping = False
    for word in run.command:
        name, equals, _ = word.partition("=")
        is_secret = name.startswith("--") and names_secret(name.strip("-").replace("-", "_"))
        if is_secret:
            notes.leave(
                plain(name),
                "a secret in a command, which everybody on the host can read; if the program takes it from a variable: env_from, from a file: [[secrets]]",
            )
        elif not skipping:
            clean = without_secrets(word)
            if clean != word:
                notes.change(
                    f"the command has a secret, which is not written: {plain(clean)}; everybody on the host could read it"
                )
            words.append(notes.text(clean))
        skipping = is_secret and not equals
    return words


def _network(run: DockerRun, notes: RunNotes, *, published: bool) -> bool:
    """Return whether the container has the engine's bridge."""
    asked = plain(run.last("network") or "")
    if asked == "host":
        notes.leave(
            "--network host",
            "every port and service of the host; this is a bridge: publish under ports what the job listens on",
        )
        return True
    if asked not in {"", "bridge", "default", "none"}:
        notes.leave(
            f"--network {asked}",
            "there is no key for a network of your own; this is the engine's bridge",
        )
        return True
    if not asked and not published:
        notes.leave(
            "docker's bridge network",
            'nothing is published, so the container has no network; if it fetches things: network = "bridge"',
        )
    return published or asked in {"bridge", "default"}


def _is_secret(name: str, value: str) -> bool:
    return names_secret(name) or without_secrets(value) != value


@dataclass(slots=True, kw_only=True)
class _Settings:
    """What single options ask for."""

    notes: RunNotes
    image: dict[str, str] = field(default_factory=dict)
    container: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    env_from: list[str] = field(default_factory=list)
    visible: tuple[int, ...] = ()

    def take(self, option: RunOption) -> None:
        handler = self.handlers.get(option.name)
        if handler is not None:
            handler(self, option)
        elif option.name not in NOTHING_LOST | _TOGETHER:
            self._leave(option)

    def _leave(self, option: RunOption) -> None:
        self.notes.leave(option.written, reason_for(option))

    def _device(self, option: RunOption) -> None:
        if not is_gpu(option.value):
            self._leave(option)

    def _environment(self, option: RunOption) -> None:
        name, equals, value = option.value.partition("=")
        name = plain(name).strip()
        same = value in {f"{OPEN}${name}{CLOSE}", f"{OPEN}${{{name}}}{CLOSE}"}
        if name in VISIBLE:
            self._visible(name, plain(value))
        elif not equals or same or (value and _is_secret(name, value)):
            self.env.pop(name, None)
            self.env_from += [] if name in self.env_from else [name]
            if equals and not same:
                self.notes.change(
                    f"{name} is a secret: its value is not written, it is taken from your environment"
                )
        elif name == "HSA_OVERRIDE_GFX_VERSION" and not value:
            self.notes.leave(option.written, "empty, it would still be an override")
        else:
            self.env[name] = self.notes.text(value)

    def _visible(self, name: str, value: str) -> None:
        """Selection takes the place of these variables: what is not passed cannot be opened at all."""
        found = indices(value)
        if found:
            self.visible = found
            self.notes.change(
                f"{name}={value} became [gpus] select: the others are not passed at all"
            )
        elif value not in _EVERY:
            self.notes.leave(
                f"-e {name}={value}", "it only hides devices; [gpus] select passes no others"
            )

    def _publish(self, option: RunOption) -> None:
        text, slash, protocol = self.notes.text(option.value).partition("/")
        parts = re.split(r":(?![^\[]*\])(?![^{]*\})", text)
        if any("-" in part for part in parts[-2:]):
            self.notes.leave(
                option.written, "a range; write each port under ports, with an address"
            )
            return
        address = parts[0] if len(parts) >= _SHORTEST_WITH_ADDRESS else ""
        inside = parts[-1]
        outside = (parts[-2] if len(parts) > 1 else "") or inside
        suffix = f"{slash}{protocol}" if protocol == "udp" else ""
        port = f"{address or '127.0.0.1'}:{outside}:{inside}{suffix}"
        ports = self.container.setdefault("ports", [])
        ports += [] if port in ports else [port]
        if not address:
            self.notes.change(
                f"-p {plain(option.value)} became {port}: docker's form is open to the whole network"
            )

    def _user(self, option: RunOption) -> None:
        user = plain(option.value)
        numbers = re.fullmatch(r"(\d+)(?::(\d+))?", user)
        if _CALLER.fullmatch(user):
            self.notes.change(f"--user {user} is the default: the caller")
        elif user in _ROOT:
            self.notes.leave(
                option.written, "root inside needs a reason; the container runs as the caller"
            )
        elif numbers:
            self.container["user"] = f"{numbers[1]}:{numbers[2] or numbers[1]}"
        else:
            self.notes.leave(
                option.written, 'names are looked up in the image; write numbers, or user = "image"'
            )

    def _memory(self, option: RunOption) -> None:
        if plain(option.value).strip("bB") != "0":
            self.container["memory"] = self.notes.text(option.value)

    def _pids(self, option: RunOption) -> None:
        value = plain(option.value)
        if value.isdigit() and value != "0":
            self.container["pids"] = int(value)
        else:
            self.notes.leave(option.written, "without a limit a fork bomb takes the host")

    def _number(self, option: RunOption) -> None:
        value = plain(option.value)
        key = option.name.replace("-", "_")
        number = re.fullmatch(r"\d+(\.\d+)?", value)
        if number is None:
            self.container[key] = self.notes.text(option.value)
        else:
            self.container[key] = float(value) if key == "cpus" else int(float(value))

    def _shm(self, option: RunOption) -> None:
        self.container["shm_size"] = self.notes.text(option.value)

    def _workdir(self, option: RunOption) -> None:
        workdir = self.notes.text(option.value)
        if workdir == "/root" or workdir.startswith("/root/"):
            self.notes.leave(option.written, "only root may enter /root")
        elif workdir.rstrip("/"):
            self.container["workdir"] = workdir

    def _entrypoint(self, option: RunOption) -> None:
        self.container["entrypoint"] = [self.notes.text(option.value)] if option.value else []

    def _restart(self, option: RunOption) -> None:
        value = plain(option.value)
        if re.fullmatch(r"on-failure:[1-9]\d*", value):
            self.container["restart"] = value
        elif value != "no":
            self._leave(option)

    def _ipc(self, option: RunOption) -> None:
        if plain(option.value) != "private":
            self._leave(option)

    def _platform(self, option: RunOption) -> None:
        self.image["platform"] = self.notes.text(option.value)

    def _security(self, option: RunOption) -> None:
        if not plain(option.value).startswith("no-new-privileges"):
            self._leave(option)

    handlers: ClassVar[Mapping[str, Callable[["_Settings", RunOption], None]]] = {
        "cpus": _number,
        "device": _device,
        "entrypoint": _entrypoint,
        "env": _environment,
        "ipc": _ipc,
        "memory": _memory,
        "pids-limit": _pids,
        "platform": _platform,
        "publish": _publish,
        "restart": _restart,
        "security-opt": _security,
        "shm-size": _shm,
        "stop-timeout": _number,
        "user": _user,
        "workdir": _workdir,
    }
