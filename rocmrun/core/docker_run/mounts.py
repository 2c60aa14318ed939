"""The mounts of a published `docker run` line: -v, --mount and --tmpfs taken apart, and which are never taken over."""

import csv
import posixpath
import re
from dataclasses import dataclass, field
from typing import Any

from rocmrun.core import baseline
from rocmrun.core.docker_run.notes import RunNotes
from rocmrun.core.docker_run.parser import DockerRun
from rocmrun.core.docker_run.shell_words import CLOSE, OPEN, pieces, plain
from rocmrun.core.host_paths import is_sensitive, socket_reached

_HOME = re.compile(r"~|\$HOME|\$\{HOME\}|/home(/[^/]+)?|/root")
_KEYS = (".ssh", ".gnupg", ".aws", ".kube", ".docker", ".netrc")
_HOME_VARIABLE = re.compile(r"\$HOME|\$\{HOME\}")
_HUB = "/.cache/huggingface"
_LABELS = {"z": "shared", "Z": "private"}
GPU_PATHS = frozenset({"/dev/kfd", "/dev/dri"})
DEFAULT_TMPFS = "1GiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMount:
    """A mount as the line has it; texts hold marked expressions.

    Attributes:
        kind: "bind", "volume", "tmpfs"; a source that is a variable counts as a bind.
        source: "" for a tmpfs.
        words: Its options: "ro", "z", "size=…".
    """

    kind: str
    source: str
    target: str
    words: tuple[str, ...] = ()

    @property
    def read_only(self) -> bool:
        """Whether it is asked to be."""
        return bool({"ro", "readonly", "readonly=true", "readonly=1"} & set(self.words))

    @property
    def size(self) -> str:
        """The size of a tmpfs."""
        sizes = [word.partition("=")[2] for word in self.words if "size=" in word]
        return sizes[-1] if sizes else DEFAULT_TMPFS

    @property
    def written(self) -> str:
        """SOURCE:TARGET as people write it."""
        return plain(f"{self.source}:{self.target}" if self.source else self.target)


def mounts_of(run: DockerRun) -> tuple[RunMount, ...]:
    """Return every mount, in the order of the line."""
    found = []
    for option in run.options:
        if option.name == "volume":
            found.append(_volume(option.value))
        elif option.name == "mount":
            found.append(_mount(option.value))
        elif option.name == "tmpfs":
            target, _, words = option.value.partition(":")
            found.append(
                RunMount(kind="tmpfs", source="", target=target, words=tuple(words.split(",")))
            )
    return tuple(found)


def why_not_mounted(mount: RunMount) -> str | None:
    """Return why a mount is never taken over; None where it may be."""
    source = plain(mount.source).rstrip("/") or "/"
    if mount.kind != "bind":
        return None
    if source == "/":
        return "is the whole host"
    if reached := socket_reached(source):
        return f"reaches {reached}, which is root on this host"
    if any(part in _KEYS for part in source.split("/")):
        return "holds keys and logins"
    if _HOME.fullmatch(source):
        return "is a whole home, with keys and logins in it; mount the one directory that the job needs"
    if source.startswith("/") and is_sensitive(source):
        return "shows the host's own devices, settings or programs"
    return None


def _volume(text: str) -> RunMount:
    # A colon inside an expression separates nothing.
    parts = re.split(rf":(?![^{OPEN}]*{CLOSE})", text)
    if len(parts) == 1:
        return RunMount(kind="volume", source="", target=parts[0])
    words = tuple(parts[2].split(",")) if len(parts) > 2 else ()  # noqa: PLR2004  # source, target, mode
    return RunMount(
        kind=_kind(parts[0]), source=parts[0], target=parts[1].rstrip("/") or "/", words=words
    )


def _kind(source: str) -> str:
    return "bind" if source.startswith(("/", ".", "~", OPEN)) or "/" in source else "volume"


def _mount(text: str) -> RunMount:
    try:
        (words,) = csv.reader([text])
    except csv.Error:
        # Docker would refuse it; what it meant shows better without its quotes.
        words = text.replace('"', "").split(",")
    values = {name.strip(): value for name, _, value in (word.partition("=") for word in words)}
    source = values.get("source") or values.get("src") or ""
    target = values.get("target") or values.get("dst") or values.get("destination") or ""
    return RunMount(
        kind=values.get("type", "volume"),
        source=source,
        target=target.rstrip("/") or "/",
        words=tuple(words),
    )


@dataclass(slots=True, kw_only=True)
class MountTables:
    """The mounts of a profile as they are made from a line.

    Attributes:
        directory: Where relative sources start.
        env: Variables that tell programs where a mount has moved to.
    """

    notes: RunNotes
    directory: str
    mounts: list[dict[str, Any]] = field(default_factory=list)
    tmpfs: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)

    def take(self, mounts: tuple[RunMount, ...]) -> None:
        """Take over what may be, and say what is left out."""
        for mount in mounts:
            if mount.kind != "bind" or plain(mount.source).rstrip("/") not in GPU_PATHS:
                self._take(mount)
        self._drop_nested()

    def _take(self, mount: RunMount) -> None:
        if why := why_not_mounted(mount):
            self.notes.leave(f"-v {mount.written}", why)
        elif mount.kind == "tmpfs":
            self.tmpfs[self.notes.text(mount.target)] = self.notes.text(mount.size)
        elif not mount.source:
            self.notes.leave(
                f"-v {mount.written}",
                "a nameless volume goes with the container; name it, or write a tmpfs",
            )
        else:
            entry = {"type": "volume"} if mount.kind == "volume" else {}
            entry |= {"source": self._source(mount), "target": self._target(mount)}
            entry |= {} if mount.read_only else {"mode": "rw"}
            if mount.kind == "volume" and not mount.read_only:
                self.notes.change(
                    f"volume {plain(mount.source)} is mostly root's, and a launch refuses one that its user cannot write; "
                    "a directory of yours works: its path as source, without type"
                )
            label = next((_LABELS[word] for word in mount.words if word in _LABELS), None)
            self.mounts.append(entry | ({"selinux": label} if label else {}))

    def _source(self, mount: RunMount) -> str:
        if mount.kind == "volume":
            return self.notes.text(mount.source)
        (first, is_expression), *_ = pieces(mount.source)
        if is_expression and _HOME_VARIABLE.fullmatch(first):
            return "~" + self.notes.text(mount.source.removeprefix(f"{OPEN}{first}{CLOSE}"))
        if is_expression or first.startswith(("/", "~")):
            return self.notes.text(mount.source)
        return self.notes.text(posixpath.normpath(posixpath.join(self.directory, mount.source)))

    def _target(self, mount: RunMount) -> str:
        """Return where it is mounted: below /root nobody but root gets, so such a target moves."""
        target = self.notes.text(mount.target)
        if target == "/root":
            moved = baseline.HOME
        elif target.startswith("/root/") and _HUB in target:
            moved = "/huggingface" + target.partition(_HUB)[2]
            self.env["HF_HOME"] = "/huggingface"
        elif target.startswith("/root/"):
            below = target.removeprefix("/root/")
            # One level below HOME is where programs look; deeper, the directories on the way would be root's.
            deep = "/" in below
            moved = f"/mnt/{below.rpartition('/')[2]}" if deep else f"{baseline.HOME}/{below}"
        else:
            return target
        self.notes.change(
            f"{plain(mount.target)} became {moved}: only root may enter /root; tell the program if it looks elsewhere"
        )
        return moved

    def _drop_nested(self) -> None:
        """Leave out mounts below another: the order of mounting would decide what is seen."""
        targets = [*(mount["target"] for mount in self.mounts), *self.tmpfs]
        kept: list[dict[str, Any]] = []
        for mount in self.mounts:
            target = mount["target"]
            taken = [other["target"] for other in kept] + list(self.tmpfs)
            above = next((top for top in targets if target.startswith(f"{top}/")), None)
            if above or target in taken:
                self.notes.leave(
                    f"-v {mount['source']}:{target}",
                    f"its target is inside {above or target}, another mount: put it there on the host, or elsewhere inside",
                )
            else:
                kept.append(mount)
        self.mounts = kept
