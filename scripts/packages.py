"""Install Debian packages for programs that are missing, as root; else name the command for root."""

import os
from collections.abc import Mapping
from pathlib import Path

from scripts.commands import SetupError, find, output, run, say

# docker.io holds the client too on Debian 12 and Ubuntu; from Debian 13 on it is docker-cli.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "docker": ("docker.io", "docker-cli"),
    "dockerd": ("docker.io",),
    "cgroupfs-mount": ("cgroupfs-mount",),
    "docker-registry": ("docker-registry",),
    "debootstrap": ("debootstrap",),
    "podman": ("podman",),
    "crun": ("crun",),
    "catatonit": ("catatonit",),
}


def require(*programs: str, log: Path) -> None:
    """Install what is missing of *programs*.

    Raises:
        SetupError: there is no root or no apt to install them with, or apt fails.
    """
    missing = [program for program in programs if find(program) is None]
    if not missing:
        return
    apt = find("apt-get")
    if apt is None:
        msg = f"not installed: {', '.join(missing)}, and there is no apt-get to install them with"
        raise SetupError(msg)
    wanted = list(dict.fromkeys(package for name in missing for package in PACKAGES[name]))
    if os.geteuid() != 0:
        msg = f"not installed: {', '.join(missing)}"
        raise SetupError(msg, hint=f"sudo apt-get install {' '.join(wanted)}")
    say(f"apt-get install {' '.join(wanted)}")
    _install(apt, wanted, log=log)
    still = [program for program in missing if find(program) is None]
    if still:
        msg = f"apt-get installed {' '.join(wanted)}, but {', '.join(still)} is not on PATH"
        raise SetupError(msg)


def _install(apt: str, wanted: list[str], *, log: Path) -> None:
    """Install those of *wanted* that the distribution has, with fresh lists if the old ones fail."""
    env = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"}
    install = [apt, "install", "-y", "--no-install-recommends"]
    try:
        run([*install, *_known(wanted)], log=log, env=env)
    except SetupError:
        run([apt, "update"], log=log, env=env)
        run([*install, *_known(wanted)], log=log, env=env)


def _known(wanted: list[str]) -> list[str]:
    known = []
    for package in wanted:
        try:
            output(["apt-cache", "show", package])
        except SetupError:
            continue
        known.append(package)
    if not known:
        msg = f"apt knows none of: {', '.join(wanted)}"
        raise SetupError(msg)
    return known
