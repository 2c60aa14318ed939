"""Bring a published `docker run` line onto the baseline: what the job needs is kept, the rest is named with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rocmrun.core.docker_run.gpus import select_of
from rocmrun.core.docker_run.mounts import MountTables, mounts_of
from rocmrun.core.docker_run.notes import LeftOutOption, RunNotes
from rocmrun.core.docker_run.parser import DockerRun
from rocmrun.core.docker_run.settings import RunSettings
from rocmrun.core.docker_run.shell_words import expressions, plain
from rocmrun.core.reference import parse_reference
from rocmrun.core.secret_names import names_secret, without_secrets
from rocmrun.errors import ReferenceInvalid

_SHELLS = frozenset({"bash", "sh", "zsh"})


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
    settings = RunSettings(notes=notes)
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
