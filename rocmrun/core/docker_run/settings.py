"""What single options of a published `docker run` line ask for, as keys of a profile."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rocmrun.core.docker_run.gpus import VISIBLE, indices, is_gpu
from rocmrun.core.docker_run.notes import RunNotes
from rocmrun.core.docker_run.options import RunOption
from rocmrun.core.docker_run.reasons import NOTHING_LOST, reason_for
from rocmrun.core.docker_run.shell_words import CLOSE, OPEN, plain
from rocmrun.core.secret_names import names_secret, without_secrets

_CALLER = re.compile(r"\$(UID|\{UID\}|\(id -u\))(:\$(GID|\{GID\}|\(id -g\)))?")
_ROOT = frozenset({"root", "0", "0:0", "root:root"})
_EVERY = frozenset({"all", "none", "void", ""})
_SHORTEST_WITH_ADDRESS = 3
# Read together with others, not one by one.
_TOGETHER = frozenset({"gpus", "mount", "network", "tmpfs", "volume"})


@dataclass(slots=True, kw_only=True)
class RunSettings:
    """Takes option by option, and gathers the values of a profile.

    Attributes:
        notes: Told of what is left out, or said in another form.
        image, container, env, env_from: Tables and lists of the profile.
        visible: GPUs that *_VISIBLE_DEVICES name.
    """

    notes: RunNotes
    image: dict[str, str] = field(default_factory=dict)
    container: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    env_from: list[str] = field(default_factory=list)
    visible: tuple[int, ...] = ()

    def take(self, option: RunOption) -> None:
        """Take one option; those that are read together with others are left to whoever reads them."""
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

    handlers: ClassVar[Mapping[str, Callable[["RunSettings", RunOption], None]]] = {
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


def _is_secret(name: str, value: str) -> bool:
    return names_secret(name) or without_secrets(value) != value
