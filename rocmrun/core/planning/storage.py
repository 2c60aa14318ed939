"""Mounts, tmpfs and the cache directory of a plan."""

import hashlib
import posixpath
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from rocmrun.core import baseline
from rocmrun.core.host import Gpu
from rocmrun.core.plan import PlannedMount, PlannedTmpfs
from rocmrun.core.planning.draft import Draft
from rocmrun.core.planning.podman import PODMAN_TMPFS, podman_tmpfs
from rocmrun.core.profile.model import Mount
from rocmrun.core.text import human_size, short_digest
from rocmrun.core.toml import key_path
from rocmrun.errors import MountSourceInvalid, UsageError


def plan_mounts(draft: Draft) -> tuple[PlannedMount, ...]:
    """Return the profile's own mounts, granting each.

    Raises:
        MountSourceInvalid: with every source that is missing or of the wrong kind.
    """
    profile = draft.request.profile
    problems = [problem for mount in profile.mounts if (problem := _source_problem(draft, mount))]
    if problems:
        raise MountSourceInvalid(
            "a mount's source cannot be used"
            if len(problems) == 1
            else f"{len(problems)} mount sources cannot be used",
            details=tuple(problems),
            hint="a bind mount's source must exist: rocmrun never makes one",
        )
    if draft.request.engine is None and any(mount.type == "volume" for mount in profile.mounts):
        draft.note(
            "volumes were not looked at: only an engine can tell whether one is a directory of the host"
        )
    _note_labels(draft)
    mounts = []
    for index, mount in enumerate(profile.mounts):
        mounts.append(
            PlannedMount(
                target=mount.target,
                source=_source(draft, mount),
                kind=mount.type,
                read_only=mount.mode == "ro",
                selinux=mount.selinux,
            )
        )
        draft.grant(
            f"mount:{mount.target}:{mount.mode}",
            f"volume {mount.source}" if mount.type == "volume" else f"bind of {mount.source}",
            draft.request.asked_by(f"mounts[{index}]"),
        )
    return tuple(sorted(mounts))


def _note_labels(draft: Draft) -> None:
    """Say which binds SELinux may refuse: owner and mode do not count there, and labels are not read."""
    request = draft.request
    labels = request.engine is not None and "selinux" in request.engine.security_modules
    if request.host.selinux != "enforcing" or not labels:
        return
    bare = [m.target for m in request.profile.mounts if m.type == "bind" and m.selinux == "none"]
    if bare:
        draft.note(
            f'SELinux may refuse {", ".join(bare)}, whatever owner and mode allow: selinux = "shared" under [[mounts]] relabels the source'
        )


def _source(draft: Draft, mount: Mount) -> str:
    """Return what the engine is told: after symlinks, so that a link that is changed later changes nothing."""
    if mount.type == "volume":
        return mount.source
    facts = draft.request.paths.get(mount.source)
    return (facts.real_path if facts else None) or mount.source.rstrip("/") or "/"


def _source_problem(draft: Draft, mount: Mount) -> str | None:
    if mount.type == "volume":
        return None
    facts = draft.request.paths.get(mount.source)
    if facts is None:
        return None
    if facts.kind == "missing":
        return f"{mount.source} → {mount.target}: does not exist"
    if facts.kind == "loop":
        return f"{mount.source} → {mount.target}: is a loop of symbolic links"
    if facts.kind == "denied":
        return f"{mount.source} → {mount.target}: a directory on the way may not be entered by this user"
    if facts.kind != "directory" and mount.source.endswith("/"):
        return f"{mount.source} → {mount.target}: is a {facts.kind}, not a directory"
    return None


def plan_cache(draft: Draft, gpus: tuple[Gpu, ...], uid: int) -> PlannedMount | None:
    """Return the persistent cache at HOME; None when the profile keeps nothing, or brings its own HOME."""
    request = draft.request
    own = {
        mount.target for mount in request.profile.mounts
    } | request.profile.container.tmpfs.keys()
    if request.profile.cache.mode == "tmpfs" or baseline.HOME in own:
        return None
    targets = sorted({gpu.gfx or "unknown" for gpu in gpus}) or [request.profile.accelerator]
    digest = short_digest(request.image.digest or request.image.image_id or "unlocked")
    source = (
        PurePosixPath(request.caller.cache_root)
        / cache_name(request.name, request.profile_path)
        / digest
        / "+".join(targets)
        / str(uid)
    )
    draft.grant(
        f"mount:{baseline.HOME}:rw",
        f"compiled kernels survive a restart; private to this profile, digest, architecture and user ({source})",
        request.asked_by("cache.mode") if "cache.mode" in request.provenance else "baseline",
    )
    return PlannedMount(target=baseline.HOME, source=str(source), read_only=False, cache=True)


def cache_name(name: str, path: str) -> str:
    """Return the directory of a profile's caches: two projects may each have a profile of that name."""
    plain = name.replace("/", "_")
    return f"{plain}-{hashlib.sha256(path.encode()).hexdigest()[:8]}" if path else plain


class _Wanted(NamedTuple):
    tmpfs: PlannedTmpfs
    reason: str
    asked_by: str = "baseline"


def plan_tmpfs(
    draft: Draft, mounts: tuple[PlannedMount, ...], memory_bytes: int | None
) -> tuple[PlannedTmpfs, ...]:
    """Return every tmpfs: /tmp, HOME without a cache, the profile's own, and one over each VOLUME of the image."""
    taken = {mount.target for mount in mounts}
    found = {wanted.tmpfs.target: wanted for wanted in _baseline_tmpfs(taken, memory_bytes)}
    for wanted in _own_tmpfs(draft):
        known = found.get(wanted.tmpfs.target)
        found[wanted.tmpfs.target] = wanted if known is None else _resized(known, wanted)
    for wanted in _volume_tmpfs(draft, taken | found.keys()):
        found[wanted.tmpfs.target] = wanted
    for target in podman_tmpfs(draft) - taken - found.keys():
        found[target] = _Wanted(
            PlannedTmpfs(target=target, size_bytes=PODMAN_TMPFS),
            "Podman mounts one here in every container with a read-only root; so it has a bound, and nothing runs from it",
            "engine",
        )
    for wanted in found.values():
        kind = "tmpfs-exec" if wanted.tmpfs.executable else "tmpfs"
        draft.grant(
            f"{kind}:{wanted.tmpfs.target}",
            f"{wanted.reason}, {human_size(wanted.tmpfs.size_bytes)}",
            wanted.asked_by,
        )
    return tuple(sorted(wanted.tmpfs for wanted in found.values()))


def _baseline_tmpfs(taken: set[str], memory_bytes: int | None) -> Iterator[_Wanted]:
    size = baseline.tmp_size(memory_bytes)
    if baseline.TMP not in taken:
        yield _Wanted(
            PlannedTmpfs(target=baseline.TMP, size_bytes=size, executable=True),
            "temporary files and compiled extensions (exec: libraries are loaded from here)",
        )
    if baseline.HOME not in taken:
        yield _Wanted(
            baseline.home_in_memory(memory_bytes),
            "HOME and caches in memory (exec: compiled kernels are loaded from here)",
        )


def _own_tmpfs(draft: Draft) -> Iterator[_Wanted]:
    request = draft.request
    executables = {asked.parsed.value: asked for asked in draft.asked("tmpfs-exec")}
    sizes = request.profile.container.tmpfs
    if unknown := sorted(executables.keys() - sizes.keys()):
        msg = f"tmpfs-exec names {', '.join(unknown)}, which is not under [container] tmpfs"
        raise UsageError(msg)
    for target, size in sorted(sizes.items()):
        asked = executables.get(target)
        yield _Wanted(
            PlannedTmpfs(target=target, size_bytes=size.bytes, executable=asked is not None),
            asked.reason if asked else "scratch space",
            asked.asked_by if asked else request.asked_by(key_path(("container", "tmpfs", target))),
        )


def _resized(known: _Wanted, own: _Wanted) -> _Wanted:
    """The profile may give /tmp and HOME another size; they stay what the baseline makes of them."""
    tmpfs = replace(known.tmpfs, size_bytes=own.tmpfs.size_bytes)
    return _Wanted(tmpfs, known.reason, own.asked_by)


def _volume_tmpfs(draft: Draft, taken: set[str]) -> Iterator[_Wanted]:
    """Put a tmpfs over each VOLUME: it would be an anonymous, writable, executable volume on disk."""
    facts = draft.request.image_facts
    # The engine cleans the paths that an image declares.
    volumes = {posixpath.normpath(volume) for volume in facts.volumes} if facts else set()
    for volume in sorted(volumes - taken):
        draft.note(
            f"the image declares {volume} as a VOLUME: it is empty here; mount something at {volume} to keep data"
        )
        yield _Wanted(
            PlannedTmpfs(target=volume, size_bytes=baseline.VOLUME_TMPFS),
            "covers the image's VOLUME, which would be a writable volume on disk",
        )
