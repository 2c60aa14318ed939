"""Compare what the engine recorded with what was sent: equal, or stricter, or refused.

The daemon may have defaults of its own, an SDK may drop a field, a plugin may add one. Fields that
`rocmrun.core.stricter` has no word for must come back as they were sent, and fields that were not
sent must come back empty: an engine that records a right we do not know is refused, not trusted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rocmrun.core.stricter import NEUTRAL, verdict
from rocmrun.core.verdict import Verdict

SHOWN_CHARACTERS = 120
PRIVATE_PROPAGATION = frozenset({"", "private", "rprivate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field that came back otherwise than it was sent."""

    field: str
    sent: Any
    recorded: Any
    verdict: Verdict = "weaker"

    def __str__(self) -> str:
        """Name the field, what was asked for and what the engine recorded; of two lists only what differs."""
        if isinstance(self.sent, list) and isinstance(self.recorded, list):
            added = [item for item in self.recorded if item not in self.sent]
            left_out = [item for item in self.sent if item not in self.recorded]
            parts = [
                (f"engine added {_shown(added)}", added),
                (f"left out {_shown(left_out)}", left_out),
            ]
            if words := ", ".join(text for text, items in parts if items):
                return f"{self.field}: {words}"
        return (
            f"{self.field}: asked for {_shown(self.sent)}, engine recorded {_shown(self.recorded)}"
        )


def differences(request: Mapping[str, Any], inspected: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return every difference between a create *request* and an inspected container, sorted by field.

    Args:
        request: The body that was sent (Config fields with HostConfig inside).
        inspected: GET /containers/{id}/json, before start.
    """
    found = [
        *_host_config_differences(request["HostConfig"], inspected.get("HostConfig") or {}),
        *_config_differences(request, inspected.get("Config") or {}),
        *_image_differences(request["Image"], inspected.get("Image") or ""),
        *_mount_differences(request["HostConfig"], inspected.get("Mounts") or []),
    ]
    return tuple(sorted(found, key=lambda difference: difference.field))


def weaker(request: Mapping[str, Any], inspected: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the differences that make the container weaker than asked for."""
    return tuple(found for found in differences(request, inspected) if found.verdict == "weaker")


def _host_config_differences(
    sent: Mapping[str, Any], recorded: Mapping[str, Any]
) -> Iterator[Difference]:
    for field in sorted({*sent, *recorded} - NEUTRAL):
        asked, got = sent.get(field), recorded.get(field)
        found = verdict(field, asked, got)
        if found != "equal":
            yield Difference(field=f"HostConfig.{field}", sent=asked, recorded=got, verdict=found)


def _config_differences(
    request: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[Difference]:
    """Compare the fields of Config that decide what runs; the image's environment and labels are merged in."""
    if request["User"] != config.get("User"):
        yield Difference(field="Config.User", sent=request["User"], recorded=config.get("User"))
    changed = sorted(_entries(request["Env"]) - _entries(config.get("Env")))
    if changed:
        # Names only: a value may be a secret.
        names = [name for name, _ in changed]
        yield Difference(field="Config.Env", sent=names, recorded="other values")
    labels = config.get("Labels") or {}
    missing = sorted(key for key, value in request["Labels"].items() if labels.get(key) != value)
    if missing:
        yield Difference(field="Config.Labels", sent=missing, recorded="other values")
    yield from _health_differences(
        request.get("Healthcheck") or {}, config.get("Healthcheck") or {}
    )
    for field in ("Cmd", "Entrypoint"):
        asked, got = request.get(field), config.get(field)
        if field in request and _words(asked) != _words(got):
            yield Difference(field=f"Config.{field}", sent=asked, recorded=got)


def _health_differences(
    sent: Mapping[str, Any], recorded: Mapping[str, Any]
) -> Iterator[Difference]:
    """Find a command that the engine would run inside otherwise than asked; numbers of 0 are its defaults."""
    none = sent.get("Test") == ["NONE"]
    for field, asked in sent.items():
        got = recorded.get(field)
        if asked and got != asked and not (none and not got):
            yield Difference(field=f"Config.Healthcheck.{field}", sent=asked, recorded=got)


def _entries(environment: Sequence[str] | None) -> set[tuple[str, str]]:
    """Return (name, value) pairs; of two values of one name the last is what a process sees."""
    return set(dict(entry.partition("=")[::2] for entry in environment or ()).items())


def _words(value: Any) -> Sequence[str] | None:
    """An entrypoint reset as [""] comes back as null."""
    return None if value in (None, [], [""]) else list(value)


def _image_differences(sent: str, recorded: str) -> Iterator[Difference]:
    """An image asked for by id is that one; a name is the engine's to resolve."""
    if sent.startswith("sha256:") and sent != f"sha256:{recorded.removeprefix('sha256:')}":
        yield Difference(field="Image", sent=sent, recorded=recorded)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    kind: str
    source: str | None
    read_only: bool


def _asked_mounts(host_config: Mapping[str, Any]) -> dict[str, _Asked]:
    found = {
        mount["Target"]: _Asked(
            kind=mount["Type"], source=mount["Source"], read_only=bool(mount["ReadOnly"])
        )
        for mount in host_config.get("Mounts") or ()
    }
    for bind in host_config.get("Binds") or ():
        source, target, mode = bind.split(":")
        found[target] = _Asked(kind="bind", source=source, read_only="ro" in mode.split(","))
    for target in host_config.get("Tmpfs") or ():
        found[target] = _Asked(kind="tmpfs", source=None, read_only=False)
    return found


def _mount_differences(
    host_config: Mapping[str, Any], mounts: Sequence[Mapping[str, Any]]
) -> Iterator[Difference]:
    """Find mounts that nobody asked for, or not so: an image VOLUME on disk, a plugin's bind, a swapped source."""
    asked = _asked_mounts(host_config)
    for mount in mounts:
        target = mount.get("Destination", "")
        wanted = asked.get(target)
        if wanted is None or not _as_asked(wanted, mount):
            yield Difference(
                field=f"Mounts[{target}]",
                sent=wanted
                and f"{wanted.kind} {wanted.source} {'ro' if wanted.read_only else 'rw'}",
                recorded=f"{mount.get('Type')} {mount.get('Name') or mount.get('Source')} "
                f"{'rw' if mount.get('RW') else 'ro'} {mount.get('Propagation', '')}".rstrip(),
            )


def _as_asked(wanted: _Asked, mount: Mapping[str, Any]) -> bool:
    source = mount.get("Name") if wanted.kind == "volume" else mount.get("Source")
    return (
        mount.get("Type") == wanted.kind
        and (wanted.kind == "tmpfs" or source == wanted.source)
        and not (wanted.read_only and mount.get("RW"))
        and mount.get("Propagation", "") in PRIVATE_PROPAGATION
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
