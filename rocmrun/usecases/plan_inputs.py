"""Files of this machine that a plan is made from, as far as a profile names them: paths, seccomp profiles, CDI, devices."""

from collections.abc import Mapping
from pathlib import Path

from rocmrun.core.cdi import CdiDevice, parse_cdi
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.grants import ParsedGrant, parse_grant
from rocmrun.core.host import HostFacts
from rocmrun.core.path_facts import PathFacts, VolumeFacts
from rocmrun.core.planning.checks import LONGEST_FILE_BYTES
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.profile.parse import Mistake, invalid
from rocmrun.core.seccomp import compact_seccomp
from rocmrun.errors import ProfileInvalid
from rocmrun.system.cdi import read_cdi_files
from rocmrun.system.files import read_text
from rocmrun.system.sysfs import read_host, read_path
from rocmrun.usecases.engine_protocol import Engine


def host_for(loaded: LoadedProfile, root: Path, *, debug: bool) -> HostFacts:
    """Read the host below *root*, with the device nodes that the profile names."""
    globs = [device.path for device in loaded.profile.devices]
    globs += [g.value for g in _grants(loaded, debug=debug) if g.kind == "device"]
    return read_host(root, device_globs=globs)


def volumes_of(loaded: LoadedProfile, engine: Engine | None) -> Mapping[str, VolumeFacts]:
    """Ask the engine for every volume of the profile that it has already."""
    names = {mount.source for mount in loaded.profile.mounts if mount.type == "volume"}
    found = (engine.volume(name) for name in sorted(names)) if engine else ()
    return {volume.name: volume for volume in found if volume}


def paths_of(
    loaded: LoadedProfile, volumes: Mapping[str, VolumeFacts] | None = None
) -> Mapping[str, PathFacts]:
    """Read every source of a bind mount, by the names that the profile, a plan and *volumes* have for it."""
    sources = {mount.source for mount in loaded.profile.mounts if mount.type == "bind"}
    # A slash at the end says in a profile that a directory is meant; a plan's mounts have none.
    names = sources | {source.rstrip("/") or "/" for source in sources}
    names |= {source for volume in (volumes or {}).values() if (source := volume.bind_source)}
    found = {name: read_path(name) for name in sorted(names)}
    # A plan has them after symlinks; of several names for one place the one to object to counts.
    real = sorted(found.values(), key=lambda facts: (bool(facts.through), facts.path))
    return found | {facts.real_path: facts for facts in real if facts.real_path}


def cdi_devices(
    loaded: LoadedProfile, root: Path, engine: EngineFacts | None
) -> tuple[CdiDevice, ...]:
    """Read the CDI devices below *root*, where the profile injects by them."""
    if loaded.profile.gpus.inject != "cdi":
        return ()
    files = read_cdi_files(root, engine.cdi_spec_dirs if engine else ())
    return tuple(device for path, text in files for device in parse_cdi(text, path))


def seccomp_files(loaded: LoadedProfile, *, debug: bool) -> Mapping[str, str]:
    """Read every seccomp profile that a grant names, as compact JSON."""
    grants = _grants(loaded, debug=debug)
    names = {grant.value for grant in grants if grant.is_seccomp_file}
    return {name: _seccomp_text(name) for name in sorted(names)}


def check_files(loaded: LoadedProfile) -> Mapping[str, str]:
    """Read every Python file that a check of the profile's own names.

    Raises:
        ProfileInvalid: with every one that is missing, too large or no text.
    """
    texts: dict[str, str] = {}
    mistakes = []
    for index, check in enumerate(loaded.profile.probe.checks):
        if not check.file:
            continue
        try:
            texts[check.file] = _check_text(check.file)
        except ProfileInvalid as error:
            mistakes.append(Mistake(key=f"probe.checks[{index}].file", text=error.message))
    if mistakes:
        raise invalid(tuple(mistakes), name=loaded.name, file_of=loaded.source)
    return texts


def _check_text(name: str) -> str:
    text = read_text(Path(name), ProfileInvalid)
    if text is None:
        msg = f"{name} does not exist"
        raise ProfileInvalid(msg)
    if len(text.encode()) > LONGEST_FILE_BYTES:
        msg = f"{name} is larger than {LONGEST_FILE_BYTES >> 20} MiB"
        raise ProfileInvalid(msg)
    if not text.strip():
        msg = f"{name} is empty"
        raise ProfileInvalid(msg)
    return text


def _grants(loaded: LoadedProfile, *, debug: bool) -> list[ParsedGrant]:
    """Return what the profile asks for; [debug] only where it applies."""
    profile = loaded.profile
    more = profile.debug.privileges if debug else ()
    return [*(entry.parsed for entry in profile.privileges), *map(parse_grant, more)]


def _seccomp_text(name: str) -> str:
    text = read_text(Path(name), ProfileInvalid)
    if text is None:
        msg = f"seccomp profile {name} does not exist"
        raise ProfileInvalid(msg)
    try:
        return compact_seccomp(text)
    except ValueError as error:
        msg = f"seccomp profile {name} {error}"
        raise ProfileInvalid(msg) from error
