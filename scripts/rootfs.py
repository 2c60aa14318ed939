"""File systems for images where no base can be pulled: Debian by debootstrap, and a bare busybox."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import IO

from scripts.commands import find, output, run

DEFAULT_SUITE = "bookworm"
# What torch and the probe need, and Debian's own ROCm tools.
PACKAGES = ("python3", "libstdc++6", "libgomp1", "rocminfo", "rocm-smi")
# Nothing in a container reads these, and the devices are the engine's to make.
LEFT_OUT = (
    "./dev/*",
    "./var/cache/apt/*",
    "./var/lib/apt/lists/*",
    "./var/log/*.log",
    "./usr/share/doc/*",
)


def suite(os_release: dict[str, str] | None = None) -> str:
    """Return the Debian suite to install: the host's own if it is Debian."""
    facts = platform.freedesktop_os_release() if os_release is None else os_release
    if facts.get("ID") == "debian" and facts.get("VERSION_CODENAME"):
        return facts["VERSION_CODENAME"]
    return DEFAULT_SUITE


def mirror(release: str) -> str | None:
    """Return the mirror that the host's apt uses for *release*; debootstrap has a default of its own."""
    if find("apt-get") is None:
        return None
    fields = "$(REPO_URI) $(CODENAME) $(COMPONENT)"
    targets = output(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"])
    return mirror_in(targets, release)


def mirror_in(targets: str, release: str) -> str | None:
    """Return the first `URI release main` of *targets* that debootstrap can read from."""
    for line in targets.splitlines():
        uri, *rest = line.split()
        if rest == [release, "main"] and uri.startswith(("http://", "https://", "file:/")):
            return uri
    return None


@contextmanager
def debian(folder: Path, *, log: Path) -> Iterator[IO[bytes]]:
    """Yield a tar stream of a small Debian with python3, made as root or in a user namespace.

    Raises:
        SetupError: neither debootstrap (root) nor mmdebstrap (others) can be used, or it fails.
    """
    release = suite()
    source = mirror(release)
    packages = f"--include={','.join(PACKAGES)}"
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tar = folder / "rootfs.tar"
    if os.geteuid() == 0:
        tree = folder / "rootfs"
        argv = ["debootstrap", "--variant=minbase", packages, release, str(tree)]
        run([*argv, *([source] if source else [])], log=log)
        skip = [f"--exclude={pattern}" for pattern in LEFT_OUT]
        run(["tar", "--create", "--file", str(tar), "--directory", str(tree), *skip, "."], log=log)
        rmtree(tree)
    else:
        argv = ["mmdebstrap", "--mode=unshare", "--variant=minbase", packages, release, str(tar)]
        run([*argv, *([source] if source else [])], log=log)
    try:
        with tar.open("rb") as stream:
            yield stream
    finally:
        rmtree(folder)


@contextmanager
def busybox(folder: Path, *, log: Path) -> Iterator[IO[bytes]]:
    """Yield a tar stream with Debian's static busybox and its applets: a shell, no Python.

    The package is unpacked, never installed: it would replace the host's own busybox.
    """
    rmtree(folder, ignore_errors=True)
    root = folder / "rootfs"
    root.mkdir(parents=True)
    run(["apt-get", "download", "busybox-static"], log=log, cwd=folder)
    (package,) = folder.glob("busybox-static_*.deb")
    run(["dpkg-deb", "--extract", str(package), str(root)], log=log)
    for applet in output([str(root / "bin/busybox"), "--list"]).splitlines():
        link = root / "bin" / applet
        if not link.exists():
            link.symlink_to("busybox")
    tar = folder / "rootfs.tar"
    run(["tar", "--create", "--file", str(tar), "--directory", str(root), "./bin"], log=log)
    try:
        with tar.open("rb") as stream:
            yield stream
    finally:
        rmtree(folder)
