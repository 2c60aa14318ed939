"""Mounts, tmpfs and the cache directory of a plan."""

from pathlib import PurePosixPath

from rocmrun.core import baseline
from rocmrun.core.draft import Draft
from rocmrun.core.host import Gpu
from rocmrun.core.plan import PlannedMount, PlannedTmpfs
from rocmrun.core.profile import Mount
from rocmrun.core.text import human_size, short_digest
from rocmrun.errors import MountSourceInvalid, UsageError

PRIVATE = 0o700


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
    mounts = []
    for index, mount in enumerate(profile.mounts):
        mounts.append(
            PlannedMount(
                target=mount.target,
                source=mount.source,
                kind=mount.type,
                read_only=mount.mode == "ro",
                selinux=mount.selinux,
            )
        )
        draft.grant(
            f"mount:{mount.target}:{mount.mode}",
            f"{mount.type} of {mount.source}",
            draft.request.asked_by(f"mounts[{index}]"),
        )
    return tuple(sorted(mounts))


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
    """Return the persistent cache at HOME; None when the profile keeps nothing."""
    request = draft.request
    if request.profile.cache.mode == "tmpfs":
        return None
    targets = sorted({gpu.gfx or "unknown" for gpu in gpus}) or [request.profile.accelerator]
    digest = short_digest(request.image.digest or request.image.image_id or "unlocked")
    source = (
        PurePosixPath(request.caller.cache_root)
        / request.name.replace("/", "_")
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


def plan_tmpfs(
    draft: Draft, mounts: tuple[PlannedMount, ...], memory_bytes: int | None
) -> tuple[PlannedTmpfs, ...]:
    """Return every tmpfs: /tmp, HOME without a cache, the profile's own, and one over each VOLUME of the image."""
    request = draft.request
    taken = {mount.target for mount in mounts}
    found: dict[str, PlannedTmpfs] = {}

    def add(
        target: str,
        size: int,
        reason: str,
        *,
        executable: bool = False,
        mode: int = 0o1777,
        asked_by: str = "baseline",
    ) -> None:
        kind = "tmpfs-exec" if executable else "tmpfs"
        draft.grant(f"{kind}:{target}", f"{reason}, {human_size(size)}", asked_by)
        found[target] = PlannedTmpfs(
            target=target, size_bytes=size, executable=executable, mode=mode
        )

    executables = {asked.parsed.value: asked for asked in draft.asked("tmpfs-exec")}
    tmp = baseline.tmp_size(memory_bytes)
    if baseline.TMP not in taken:
        add(
            baseline.TMP,
            tmp,
            "temporary files and compiled extensions (exec: libraries are loaded from here)",
            executable=True,
        )
    if baseline.HOME not in taken:
        add(
            baseline.HOME,
            tmp,
            "HOME and caches in memory (exec: compiled kernels are loaded from here)",
            executable=True,
            mode=PRIVATE,
        )
    for target, size in sorted(request.profile.container.tmpfs.items()):
        asked = executables.pop(target, None)
        add(target, size.bytes, asked.reason if asked else "scratch space", executable=asked is not None,
            asked_by=request.asked_by("container.tmpfs"))  # fmt: skip
    if executables:
        names = ", ".join(sorted(executables))
        msg = f"tmpfs-exec names {names}, which is not under [container] tmpfs"
        raise UsageError(msg)
    _cover_volumes(draft, taken, found)
    return tuple(sorted(found.values()))


def _cover_volumes(draft: Draft, taken: set[str], found: dict[str, PlannedTmpfs]) -> None:
    """Put a tmpfs over each VOLUME: it would be an anonymous, writable, executable volume on disk."""
    facts = draft.request.image_facts
    for volume in facts.volumes if facts else ():
        if volume in taken or volume in found:
            continue
        size = baseline.VOLUME_TMPFS
        draft.grant(
            f"tmpfs:{volume}",
            f"covers the image's VOLUME, which would be a writable volume on disk, {human_size(size)}",
        )
        draft.note(
            f"the image declares {volume} as a VOLUME: it is empty here; mount something at {volume} to keep data"
        )
        found[volume] = PlannedTmpfs(target=volume, size_bytes=size)
