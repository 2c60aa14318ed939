"""cosign, for the tests that sign and verify images: the one on PATH, or Debian's, unpacked below build/.

Debian 12 has no package of it. Later releases have, and its program needs nothing but the C library,
so that it runs here too: it is taken out of the package and not installed.
"""

import os
from pathlib import Path

from scripts import rootfs
from scripts.commands import SetupError, find, run, say

SUITE = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def path(build: Path) -> Path | None:
    """Return the cosign to use, None when there is none."""
    own, installed = build / "cosign" / "usr" / "bin" / "cosign", find("cosign")
    if installed is not None:
        return Path(installed)
    return own if os.access(own, os.X_OK) else None


def ensure(*, build: Path, log: Path) -> None:
    """Leave with a cosign, or say why there is none: the tests that need it then say so too."""
    if path(build) is not None:
        return
    apt, dpkg = find("apt-get"), find("dpkg-deb")
    if apt is None or dpkg is None:
        say("cosign: not installed, and there is no apt-get to fetch it with")
        return
    try:
        # A mirror of Debian holds its later releases too.
        mirror = rootfs.mirror(rootfs.suite())
        if mirror is None:
            say("cosign: not installed, and this machine's apt names no mirror to fetch it from")
            return
        say(f"cosign: fetched from Debian {SUITE}")
        _fetch(build / "cosign", apt, dpkg, mirror=mirror, log=log)
    except SetupError as error:
        say(f"cosign: {error}")


def _fetch(folder: Path, apt: str, dpkg: str, *, mirror: str, log: Path) -> None:
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    source = f"deb [signed-by={KEYRING}] {mirror} {SUITE} main\n"
    (folder / "sources.list").write_text(source, encoding="utf-8")
    # Lists of its own: what this machine installs from stays as it is.
    own = [
        "-oDir::Etc::sourceparts=-",
        f"-oDir::Etc::sourcelist={folder / 'sources.list'}",
        f"-oDir::State::lists={folder / 'lists'}",
        f"-oDir::Cache={folder / 'cache'}",
        "-oAPT::Sandbox::User=root",
    ]
    run([apt, *own, "update"], log=log)
    run([apt, *own, "download", "cosign"], log=log, cwd=folder)
    for package in folder.glob("cosign_*.deb"):
        run([dpkg, "-x", str(package), str(folder)], log=log)
        package.unlink()
