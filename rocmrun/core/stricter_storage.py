"""What "stricter" means for device nodes, mounts and file systems in memory."""

from typing import Any

from rocmrun.core.verdict import Verdict, normal


def compare_devices(asked: Any, got: Any) -> Verdict:
    """Fewer nodes and fewer permissions are stricter."""
    wanted, present = _device_rights(asked), _device_rights(got)
    if wanted == present:
        return "equal"
    fewer = all(key in wanted and rights <= wanted[key] for key, rights in present.items())
    return "stricter" if fewer else "weaker"


def _device_rights(devices: Any) -> dict[tuple[str, str], frozenset[str]]:
    return {
        (device["PathOnHost"], device["PathInContainer"]): frozenset(device["CgroupPermissions"])
        for device in devices or ()
    }


def compare_mounts(asked: Any, got: Any) -> Verdict:
    """The same mounts; read-only in place of writable is stricter."""
    wanted = {mount["Target"]: normal(mount) for mount in asked or ()}
    present = {mount["Target"]: normal(mount) for mount in got or ()}
    if wanted == present:
        return "equal"
    if wanted.keys() != present.keys():
        return "weaker"
    stricter = all(
        {**wanted[target], "ReadOnly": True} == {**present[target], "ReadOnly": True}
        and (present[target].get("ReadOnly") or not wanted[target].get("ReadOnly"))
        for target in wanted
    )
    return "stricter" if stricter else "weaker"


def compare_tmpfs(asked: Any, got: Any) -> Verdict:
    """The same mounts with the same options; noexec in place of exec and a smaller size are stricter."""
    wanted = {target: _mount_options(text) for target, text in (asked or {}).items()}
    present = {target: _mount_options(text) for target, text in (got or {}).items()}
    if wanted == present:
        return "equal"
    if wanted.keys() != present.keys():
        return "weaker"
    verdicts = [_tmpfs_options(wanted[target], present[target]) for target in wanted]
    return "weaker" if "weaker" in verdicts else "stricter"


def _mount_options(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (option.partition("=") for option in text.split(","))}


def _tmpfs_options(asked: dict[str, str], got: dict[str, str]) -> Verdict:
    wanted, present = dict(asked), dict(got)
    sizes = wanted.pop("size", ""), present.pop("size", "")
    if sizes[0] != sizes[1] and not all(size.isdigit() for size in sizes):
        return "weaker"
    if sizes[0] != sizes[1] and int(sizes[1]) > int(sizes[0]):
        return "weaker"
    if "noexec" in present:
        wanted.pop("exec", None)
        wanted["noexec"] = ""
    return "stricter" if wanted == present else "weaker"
