"""The environment of a container: what libraries need to find writable places, one name and the right GPUs."""

from fnmatch import fnmatchcase

from rocmrun.core import baseline
from rocmrun.core.host import Gpu
from rocmrun.core.identity import ENTER, Identity
from rocmrun.core.image_report import environment_lints, target_lints
from rocmrun.core.plan import PlannedDevice
from rocmrun.core.planning.draft import Draft

ROOT_HOME = "/root"


def plan_environment(
    draft: Draft,
    gpus: tuple[Gpu, ...],
    devices: tuple[PlannedDevice, ...],
    who: Identity,
    network: str,
) -> tuple[tuple[str, str], ...]:
    """Return NAME, value pairs, sorted: the baseline's, then the image's corrections, then the profile's own."""
    values = {
        "HOME": baseline.HOME,
        "USER": baseline.USER_NAME,
        "LOGNAME": baseline.USER_NAME,
        "TMPDIR": baseline.TMP,
        **{name: f"{baseline.HOME}/{path}" for name, path in baseline.CACHE_VARIABLES.items()},
    }
    if network == "none":
        values |= baseline.OFFLINE_VARIABLES
    if not any(fnmatchcase(device.path, "/dev/infiniband/uverbs*") for device in devices):
        values["NCCL_IB_DISABLE"] = "1"
    values |= _visible_devices(draft, gpus, devices)
    values |= _search_path(draft, who)
    values |= draft.request.profile.container.env
    return tuple(sorted(values.items()))


def note_image(
    draft: Draft, gpus: tuple[Gpu, ...], environment: tuple[tuple[str, str], ...]
) -> None:
    """Say what the image bakes in that changes what these GPUs do, and whether it was built for them."""
    facts = draft.request.image_facts
    baked = facts.environment if facts and draft.request.profile.accelerator == "rocm" else {}
    for lint in environment_lints(baked, dict(environment)):
        draft.note(lint)
    for lint in target_lints(draft.request.claims, gpus):
        draft.note(lint)


def _visible_devices(
    draft: Draft, gpus: tuple[Gpu, ...], devices: tuple[PlannedDevice, ...]
) -> dict[str, str]:
    """Override what the image bakes: a variable cannot be unset from outside, and empty hides every GPU."""
    facts = draft.request.image_facts
    if facts is None:
        return {}
    nvidia = sum(1 for device in devices if fnmatchcase(device.path, "/dev/nvidia[0-9]*"))
    count = len(gpus) or nvidia
    indices = ",".join(str(index) for index in range(count)) or baseline.NO_DEVICES
    found = {name: indices for name in baseline.INDEX_VARIABLES if name in facts.environment}
    found |= {
        name: word for name, word in baseline.RUNTIME_VARIABLES.items() if name in facts.environment
    }
    for name, value in sorted(found.items()):
        baked = facts.environment[name]
        if baked != value:
            draft.note(
                f'the image bakes {name}="{baked}": set to "{value}", the devices that are passed'
            )
    return found


def _search_path(draft: Draft, who: Identity) -> dict[str, str]:
    """Drop entries of the image's PATH that the user cannot enter: a program found there could not be run."""
    facts = draft.request.image_facts
    path = facts.environment.get("PATH") if facts else None
    if not path:
        return {}
    entries = path.split(":")
    kept = [entry for entry in entries if _may_enter(draft, entry, who)]
    if kept == entries:
        return {}
    dropped = ", ".join(entry for entry in entries if entry not in kept)
    draft.note(f"dropped from the image's PATH, which uid {who.uid} cannot enter: {dropped}")
    return {"PATH": ":".join(kept)}


def _may_enter(draft: Draft, entry: str, who: Identity) -> bool:
    """Whether each directory on the way lets *who* through; where nobody looked, root's home alone is closed."""
    way = draft.request.search_path.get(entry)
    if way is None:
        # It is 0700 in every base image.
        return who.uid == 0 or (entry != ROOT_HOME and not entry.startswith(f"{ROOT_HOME}/"))
    return all(who.may(ENTER, part.mode, part.uid, part.gid) for part in way)
