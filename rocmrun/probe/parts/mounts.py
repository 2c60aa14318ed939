"""The mounts of this container, compared with the planned ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed

MOUNT_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))
# What engines mount in every container: the init process, name resolution, Podman's own files.
ENGINE_MOUNTS = (
    "/",
    "/proc",
    "/sys",
    "/dev",
    "/dev/pts",
    "/dev/mqueue",
    "/dev/shm",
    "/dev/console",
    "/dev/init",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/random",
    "/dev/urandom",
    "/etc/resolv.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/sbin/docker-init",
    "/usr/sbin/docker-init",
    "/run/podman-init",
    "/run/.containerenv",
    "/run/secrets",
)
PODMANS_MARKS = {"/run/podman-init", "/run/.containerenv"}
# Podman's copies, with a line for the user where the image has none.
PODMANS_MOUNTS = ("/etc/passwd", "/etc/group")


class MountPoint:
    """One line of /proc/self/mountinfo."""

    def __init__(self, line: str) -> None:
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        self.root, self.target = unescaped(fields[3]), unescaped(fields[4])
        self.options = fields[5].split(",")
        self.kind = kinds[0]

    @property
    def read_only(self) -> bool:
        """Whether the mount itself refuses to be written; its file system may still be writable."""
        return "ro" in self.options

    def is_below(self, folder: str) -> bool:
        """Whether this is mounted at *folder* or under it."""
        return self.target == folder or self.target.startswith(folder.rstrip("/") + "/")


def unescaped(text: str) -> str:
    """Return a path as it is: the kernel writes blanks and line ends in octal."""
    for code, character in MOUNT_ESCAPES:
        text = text.replace(code, character)
    return text


def mount_points(text: str | None = None) -> list[MountPoint]:
    """Return every mount here; what is mounted over another comes later, and counts."""
    if text is None:
        text = Path("/proc/self/mountinfo").read_text(errors="replace")
    found: dict[str, MountPoint] = {}
    for line in text.splitlines():
        mount = MountPoint(line)
        found[mount.target] = mount
    return list(found.values())


def check_mounts(check: Check, expect: dict[str, Any]) -> None:
    """Compare what is mounted with the plan: one mount too many is an ungranted right."""
    mounts = mount_points()
    own = [mount for mount in mounts if not is_engine_mount(mount)]
    check.evidence["mounts"] = {
        mount.target: ",".join([mount.kind, *mount.options]) for mount in own
    }
    granted = expect.get("granted")
    if granted is not None:
        judge_mounts(check, mounts, granted)


def is_engine_mount(mount: MountPoint) -> bool:
    """Whether every container has such a mount; what lies under /proc and /sys has checks of its own."""
    return mount.target in ENGINE_MOUNTS or mount.is_below("/proc") or mount.is_below("/sys")


def judge_mounts(check: Check, mounts: list[MountPoint], granted: dict[str, Any]) -> None:
    """Fail for what is missing, writable against the plan or not in it; a read-only stranger degrades."""
    here = {mount.target: mount for mount in mounts}
    podmans = PODMANS_MOUNTS if PODMANS_MARKS & here.keys() else ()
    binds, tmpfs = granted.get("mounts") or {}, granted.get("tmpfs") or {}
    wrong = [f"{target} is not mounted" for target in (*binds, *tmpfs) if target not in here]
    wrong += [
        f"{target} is writable, not read-only as planned"
        for target, mode in binds.items()
        if mode == "ro" and target in here and not here[target].read_only
    ]
    for target, mode in tmpfs.items():
        wanted = {"nosuid", "nodev"} | ({"noexec"} if mode == "noexec" else set())
        if target in here and (missing := wanted - set(here[target].options)):
            wrong.append(f"{target} is mounted without {', '.join(sorted(missing))}")
    strange = []
    for mount in mounts:
        if mount.target in binds or mount.target in tmpfs or mount.target in granted["devices"]:
            continue
        above = [target for target in binds if mount.is_below(target)]
        if above and binds[above[0]] == "ro" and not mount.read_only:
            strange.append(f"{mount.target} is writable under {above[0]}, which is read-only")
        elif not above and not is_engine_mount(mount) and mount.target not in podmans:
            text = f"{mount.target} ({mount.kind}) is mounted, which the plan does not have"
            (strange if mount.read_only else wrong).append(text)
    if wrong:
        raise CheckFailed("; ".join(wrong))
    if strange:
        check.degrade("; ".join(strange))
