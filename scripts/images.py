"""The images of the demo and of the tests: built once, pushed to the registry on loopback.

What an image was made from is kept in a label of it, so that nothing is built twice, in
whichever checkout. Layers: python, on it demo (torch), on it compiler; on python also hip; tiny stands alone.
"""

import hashlib
import json
import os
import time
from pathlib import Path
from shutil import rmtree
from typing import IO

from scripts import registry, rootfs, torch_wheel
from scripts.commands import SetupError, find, output, run, say

COMPILER_DOCKERFILE = Path(__file__).with_name("compiler.Dockerfile")
PROBE_DOCKERFILE = Path(__file__).parent.parent / "Dockerfile.probe"
NAMESPACE = f"{registry.ADDRESS}/rocmrun"
PYTHON = f"{NAMESPACE}/python:1"
DEMO = f"{NAMESPACE}/demo:1"
TINY = f"{NAMESPACE}/tiny:1"
COMPILER = f"{NAMESPACE}/compiler:1"
HIP = f"{NAMESPACE}/hip:1"
BASE_OF = {DEMO: PYTHON, COMPILER: DEMO, HIP: PYTHON}
FOR_DEMO = (DEMO,)
FOR_TESTS = (PYTHON, DEMO, TINY, COMPILER, HIP)

# Not io.rocmrun.*: containers inherit the labels of their image, and those mark rocmrun's own.
RECIPE_LABEL = "rocmrun-setup.recipe"
# Where nobody is root and no mmdebstrap is installed.
PULLED_BASE = "docker.io/library/python:3.12-slim-bookworm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
ASK_PYTHON = """
import json, site, sys
print(json.dumps({"version": "%d.%d" % sys.version_info[:2], "site": site.getsitepackages()[0]}))
"""
# Shows that torch works in the image, and leaves the modules compiled: on a read-only root Python can
# never keep what it compiles, and each `import torch` would take twice as long. These three bring in
# what the demo and the tests of torchrun and torch.compile use.
IMPORT_TORCH = "import torch, torch.distributed.run, torch._inductor.compile_fx"


def ensure(references: tuple[str, ...], *, build: Path, log: Path) -> None:
    """Leave with *references* in the engine and in the registry, built where they are missing.

    Raises:
        SetupError: an image cannot be built or pushed.
    """
    for reference in references:
        _make(reference, build=build, log=log)
    for reference in references:
        _push(reference, log=log)


def missing(references: tuple[str, ...]) -> bool:
    """Tell whether any of *references* must be built."""
    return any(made_from(reference) != recipe_of(reference) for reference in references)


def recipe_of(reference: str) -> str:
    """Return a short hash of everything that goes into an image."""
    python = (rootfs.suite(), *rootfs.PACKAGES)
    demo = (*python, torch_wheel.TORCH, IMPORT_TORCH)
    inputs = {
        PYTHON: python,
        DEMO: demo,
        TINY: ("busybox-static",),
        COMPILER: (*demo, COMPILER_DOCKERFILE.read_text(encoding="utf-8")),
        HIP: (*python, PROBE_DOCKERFILE.read_text(encoding="utf-8")),
    }
    return hashlib.sha256("\n".join(inputs[reference]).encode()).hexdigest()[:12]


def made_from(reference: str) -> str | None:
    """Return the recipe that the engine's image was made from, None if there is no image."""
    try:
        (image,) = json.loads(output(["docker", "image", "inspect", reference]))
    except SetupError:
        return None
    labels: dict[str, str] = image["Config"]["Labels"] or {}
    return labels.get(RECIPE_LABEL)


def _make(reference: str, *, build: Path, log: Path) -> None:
    recipe = recipe_of(reference)
    if made_from(reference) == recipe:
        return
    if reference in BASE_OF:
        _make(BASE_OF[reference], build=build, log=log)
    makers = {
        PYTHON: _make_python,
        DEMO: _make_demo,
        TINY: _make_tiny,
        COMPILER: _make_compiler,
        HIP: _make_hip,
    }
    started = time.monotonic()
    folder = build / "images" / reference.rpartition("/")[2].replace(":", "-")
    makers[reference](folder, [f"LABEL {RECIPE_LABEL}={recipe}"], log)
    say(f"image: {reference} built in {time.monotonic() - started:.0f} s")


def _make_python(folder: Path, labels: list[str], log: Path) -> None:
    if os.geteuid() == 0 or find("mmdebstrap") is not None:
        say(f"image: {PYTHON}: installing Debian {rootfs.suite()} (a minute)")
        with rootfs.debian(folder, log=log) as tar:
            _import(tar, PYTHON, [f"ENV PATH={PATH}", 'CMD ["python3"]', *labels], log=log)
        return
    say(f"image: {PYTHON}: neither root nor mmdebstrap, so {PULLED_BASE} is pulled")
    try:
        _build(PROBE_DOCKERFILE, PYTHON, labels, base=PULLED_BASE, log=log)
    except SetupError as error:
        msg = f"no base for the demo image: {error}"
        hint = "sudo make demo  # or: sudo apt-get install mmdebstrap"
        raise SetupError(msg, hint=hint) from error


def _make_demo(folder: Path, labels: list[str], log: Path) -> None:
    """Copy torch into a container of the base, import it there, and commit that."""
    asked = output(["docker", "run", "--rm", "--network=none", PYTHON, "python3", "-c", ASK_PYTHON])
    python = json.loads(asked)
    rmtree(folder, ignore_errors=True)
    torch_wheel.install(folder / "site", python=python["version"], log=log)
    container = output(
        ["docker", "create", "--network=none", PYTHON, "python3", "-c", IMPORT_TORCH]
    )
    try:
        run(["docker", "cp", f"{folder}/site/.", f"{container}:{python['site']}"], log=log)
        run(["docker", "start", "--attach", container], log=log)
        changes = _changes(['CMD ["python3"]', *labels])
        run(["docker", "commit", *changes, container, DEMO], log=log)
    finally:
        run(["docker", "rm", "--force", container], log=log)
        rmtree(folder)


def _make_compiler(_folder: Path, labels: list[str], log: Path) -> None:
    _build(COMPILER_DOCKERFILE, COMPILER, labels, base=DEMO, log=log)


def _make_hip(_folder: Path, labels: list[str], log: Path) -> None:
    """Add the distribution's HIP as `[probe] image` would have it."""
    _build(PROBE_DOCKERFILE, HIP, labels, base=PYTHON, arguments=("HIP=yes",), log=log)


def _make_tiny(folder: Path, labels: list[str], log: Path) -> None:
    with rootfs.busybox(folder, log=log) as tar:
        _import(tar, TINY, [f"ENV PATH={PATH}", 'CMD ["sh"]', *labels], log=log)


def _import(tar: IO[bytes], reference: str, changes: list[str], *, log: Path) -> None:
    run(["docker", "import", *_changes(changes), "-", reference], log=log, stdin=tar)


def _changes(instructions: list[str]) -> list[str]:
    return [word for instruction in instructions for word in ("--change", instruction)]


def _build(
    dockerfile: Path,
    reference: str,
    labels: list[str],
    *,
    base: str,
    arguments: tuple[str, ...] = (),
    log: Path,
) -> None:
    """Build with whichever builder the client has; nothing but the file is sent to it."""
    # The host's network: the engine's default bridge may be absent, or lead nowhere.
    words = ["docker", "build", "--force-rm", "--network=host", "--tag", reference]
    words += [f"--label={label.removeprefix('LABEL ')}" for label in labels]
    words += [f"--build-arg={argument}" for argument in (f"BASE={base}", *arguments)]
    words += [f"--build-arg={name}" for name in PROXIES if name in os.environ]
    with dockerfile.open("rb") as stdin:
        run([*words, "-"], log=log, stdin=stdin)


def _push(reference: str, *, log: Path) -> None:
    (image,) = json.loads(output(["docker", "image", "inspect", reference]))
    ours = {name.partition("@")[2] for name in image["RepoDigests"]}
    if registry.digest(reference) in ours:
        say(f"image: {reference} is in the registry")
        return
    run(["docker", "push", "--quiet", reference], log=log)
    say(f"image: {reference} pushed")
