"""What cannot hold at once in one profile, though each key alone is right. Policy is the planner's, not decided here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import PurePosixPath

from rocmrun.core import baseline
from rocmrun.core.profile.checks import check_mistakes
from rocmrun.core.profile.model import Profile
from rocmrun.core.toml import key_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Keys that do not go together.

    Attributes:
        keys: The key paths that contradict each other; the first is where people should look.
        text: What is wrong and what would be right.
    """

    keys: tuple[str, ...]
    text: str


def contradictions(profile: Profile) -> tuple[Contradiction, ...]:
    """Return all contradictions of *profile*."""
    checks = (_shared_memory, _network, _same_port, _nested_targets, _group_paths, _environment,
              _gpu_selection, _same_grant, _same_secret, _fetch_target, _volume_names, _signer, _own_checks, _hip_runtime, _models_in_memory, _health)  # fmt: skip
    return tuple(found for check in checks for found in check(profile))


def _grant_key(profile: Profile, grant: str) -> str | None:
    for index, privilege in enumerate(profile.privileges):
        if privilege.grant == grant:
            return f"privileges[{index}].grant"
    return None


def _shared_memory(profile: Profile) -> Iterator[Contradiction]:
    host = _grant_key(profile, "ipc:host")
    if host and profile.container.shm_size is not None:
        yield Contradiction(
            keys=("container.shm_size", host),
            text="has no effect with ipc:host, which brings the host's /dev/shm; keep one of the two",
        )
    shareable = _grant_key(profile, "ipc:shareable")
    if host and shareable:
        yield Contradiction(
            keys=(shareable, host), text="ipc:shareable and ipc:host exclude each other"
        )


def _network(profile: Profile) -> Iterator[Contradiction]:
    network = profile.container.network
    if profile.container.ports and network != "bridge":
        yield Contradiction(
            keys=("container.ports", "container.network"),
            text=f'ports need container.network = "bridge"; with "{network}" nothing is published (for one launch: --network bridge)',
        )
    if network == "host" and not _grant_key(profile, "network:host"):
        yield Contradiction(
            keys=("container.network", "privileges"),
            text='"host" needs an entry in [[privileges]] with grant = "network:host" and a reason',
        )


def _same_port(profile: Profile) -> Iterator[Contradiction]:
    for (first, one), (second, other) in combinations(enumerate(profile.container.ports), 2):
        taken = (one.address, one.host_port, one.protocol)
        if taken == (other.address, other.host_port, other.protocol):
            yield Contradiction(
                keys=(f"container.ports[{second}]", f"container.ports[{first}]"),
                text=f'publishes the same host port as "{one}"',
            )


def _nested_targets(profile: Profile) -> Iterator[Contradiction]:
    """Find targets that are equal or below one another: the order of mounting would decide what is seen."""
    targets = [
        (f"mounts[{index}].target", PurePosixPath(mount.target))
        for index, mount in enumerate(profile.mounts)
    ]
    targets += [
        (key_path(("container", "tmpfs", path)), PurePosixPath(path))
        for path in profile.container.tmpfs
    ]
    targets += [
        (f"secrets[{index}].name", PurePosixPath(secret.path))
        for index, secret in enumerate(profile.secrets)
    ]
    for (one_key, one), (other_key, other) in combinations(targets, 2):
        if one == other:
            yield Contradiction(
                keys=(other_key, one_key), text=f'"{other}" is already the target of {one_key}'
            )
        elif one.is_relative_to(other) or other.is_relative_to(one):
            (below_key, below), (above_key, above) = sorted(
                ((one_key, one), (other_key, other)), key=lambda item: -len(item[1].parts)
            )
            yield Contradiction(
                keys=(below_key, above_key),
                text=f'"{below}" lies under "{above}", the target of {above_key}; mount it elsewhere',
            )


def _group_paths(profile: Profile) -> Iterator[Contradiction]:
    targets = {mount.target for mount in profile.mounts}
    for index, group in enumerate(profile.container.groups):
        path = group.removeprefix("path:")
        if group != path and path not in targets:
            yield Contradiction(
                keys=(f"container.groups[{index}]", "mounts"),
                text=f'no mount has the target "{path}", so it has no source whose group could be taken',
            )


def _environment(profile: Profile) -> Iterator[Contradiction]:
    for index, name in enumerate(profile.container.env_from):
        if name in profile.container.env:
            yield Contradiction(
                keys=(f"container.env_from[{index}]", key_path(("container", "env", name))),
                text=f"{name} is set in container.env too; keep one of the two",
            )


def _gpu_selection(profile: Profile) -> Iterator[Contradiction]:
    selectors = profile.gpus.select
    if not selectors:
        yield Contradiction(keys=("gpus.select",), text='is empty; write ["none"] to pass no GPU')
    for word in ("all", "none"):
        if word in selectors and len(selectors) > 1:
            yield Contradiction(keys=("gpus.select",), text=f'"{word}" stands alone or not at all')


def _same_secret(profile: Profile) -> Iterator[Contradiction]:
    yield from _repeated("secrets[{}].name", (secret.name for secret in profile.secrets))


def _fetch_target(profile: Profile) -> Iterator[Contradiction]:
    target = profile.fetch.target
    mounts = [PurePosixPath(mount.target) for mount in profile.mounts]
    if target and not any(PurePosixPath(target).is_relative_to(mount) for mount in mounts):
        yield Contradiction(
            keys=("fetch.target", "mounts"),
            text=f'"{target}" is no mount\'s target nor below one: what is downloaded there would be gone',
        )


def _same_grant(profile: Profile) -> Iterator[Contradiction]:
    lists = {
        "privileges[{}].grant": (privilege.grant for privilege in profile.privileges),
        "debug.privileges[{}]": profile.debug.privileges,
    }
    for key, grants in lists.items():
        yield from _repeated(key, grants)


def _repeated(key: str, grants: Iterable[str]) -> Iterator[Contradiction]:
    seen: dict[str, str] = {}
    for index, grant in enumerate(grants):
        here = key.format(index)
        if grant in seen:
            yield Contradiction(keys=(here, seen[grant]), text=f'"{grant}" is asked for twice')
        seen.setdefault(grant, here)


def _volume_names(profile: Profile) -> Iterator[Contradiction]:
    for index, mount in enumerate(profile.mounts):
        if mount.type == "volume" and "/" in mount.source:
            yield Contradiction(
                keys=(f"mounts[{index}].source", f"mounts[{index}].type"),
                text=f'"{mount.source}" is a path, and a volume has a name; write type = "bind"',
            )


def _signer(profile: Profile) -> Iterator[Contradiction]:
    verify = profile.image.verify
    if verify is None:
        return
    if not verify.key and not (verify.identity and verify.issuer):
        yield Contradiction(
            keys=("image.verify",),
            text="says whose signature: a key, or an identity and its issuer",
        )
    if verify.key:
        for name in ("identity", "issuer"):
            if getattr(verify, name):
                yield Contradiction(
                    keys=(f"image.verify.{name}", "image.verify.key"),
                    text="does not go with a key; keep one of the two",
                )
    elif not verify.transparency_log:
        yield Contradiction(
            keys=("image.verify.transparency_log",),
            text="an identity's certificate holds for minutes, and only the log says when it signed; "
            "false goes with a key",
        )


def _own_checks(profile: Profile) -> Iterator[Contradiction]:
    for place, text in check_mistakes(profile.probe.checks):
        yield Contradiction(keys=(key_path(place),), text=text)


def _hip_runtime(profile: Profile) -> Iterator[Contradiction]:
    if profile.probe.runtime == "hip" and profile.accelerator != "rocm":
        yield Contradiction(
            keys=("probe.runtime", "accelerator"),
            text=f'"hip" proves AMD GPUs, and accelerator is "{profile.accelerator}"; leave "torch"',
        )
    if profile.probe.runtime == "hip" and profile.probe.operators:
        yield Contradiction(
            keys=("probe.operators", "probe.runtime"),
            text='operators are tried beside torch; with runtime "hip" none is',
        )


def _models_in_memory(profile: Profile) -> Iterator[Contradiction]:
    """Find profiles that would download models into memory, again at each start."""
    container = profile.container
    offline = container.env.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
    if container.network == "none" or offline or "HF_HOME" in container.env_from:
        return
    home = f"{baseline.HOME}/{baseline.CACHE_VARIABLES['HF_HOME']}"
    place = PurePosixPath(container.env.get("HF_HOME", home))
    in_memory = [*container.tmpfs, baseline.TMP]
    key = "container.tmpfs"
    if profile.cache.mode == "tmpfs":
        in_memory.append(baseline.HOME)
        key = "cache.mode"
    targets = [(path, False) for path in in_memory]
    targets += [(mount.target, True) for mount in profile.mounts]
    above = [(len(path), kept) for path, kept in targets if place.is_relative_to(path)]
    if above and not max(above)[1]:
        yield Contradiction(
            keys=(key, "container.network"),
            text=f"models that are downloaded would be kept in memory (HF_HOME is {place}): set HF_HOME "
            'in container.env to a mount, or HF_HUB_OFFLINE = "1"',
        )


def _health(profile: Profile) -> Iterator[Contradiction]:
    health = profile.container.health
    if health is None:
        return
    if health.command and health.image:
        yield Contradiction(
            keys=("container.health.image", "container.health.command"),
            text="the image's HEALTHCHECK and a command exclude each other; keep one of the two",
        )
    elif not health.command and not health.image:
        yield Contradiction(
            keys=("container.health",), text="says what to run: a command, or image = true"
        )
