"""The images of the demo and of the tests: built once, pushed to the registry on loopback.

What an image was made from is kept in a label of it, so that nothing is built twice, in
whichever checkout. Layers: python, on it demo (torch), on it compiler; tiny stands alone.
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

SCRIPTS = Path(__file__).parent
NAMESPACE = f"{registry.ADDRESS}/rocmrun"
PYTHON = f"{NAMESPACE}/python:1"
DEMO = f"{NAMESPACE}/demo:1"
TINY = f"{NAMESPACE}/tiny:1"
COMPILER = f"{NAMESPACE}/compiler:1"
FOR_DEMO = (PYTHON, DEMO)
FOR_TESTS = (PYTHON, DEMO, TINY, COMPILER)

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


def ensure(references: tuple[str, ...], *, build: Path, log: Path) -> None:
    """Leave with *references* in the engine and in the registry, built where they are missing.

    Raises:
        SetupError: an image cannot be built or pushed.
    """
    makers = {PYTHON: _make_python, DEMO: _make_demo, TINY: _make_tiny, COMPILER: _make_compiler}
    for reference in references:
        recipe = recipe_of(reference)
        if made_from(reference) != recipe:
            started = time.monotonic()
            folder = build / "images" / reference.rpartition("/")[2].replace(":", "-")
            makers[reference](recipe, folder, log)
            say(f"image: {reference} built in {time.monotonic() - started:.0f} s")
        _push(reference, log=log)


def missing(references: tuple[str, ...]) -> bool:
    """Tell whether any of *references* must be built."""
    return any(made_from(reference) != recipe_of(reference) for reference in references)


def recipe_of(reference: str) -> str:
    """Return a short hash of everything that goes into an image."""
    python = (rootfs.suite(), *rootfs.PACKAGES)
    demo = (*python, torch_wheel.TORCH, _text("demo.Dockerfile"))
    inputs = {
        PYTHON: python,
        DEMO: demo,
        TINY: ("busybox-static",),
        COMPILER: (*demo, _text("compiler.Dockerfile")),
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


def _make_python(recipe: str, folder: Path, log: Path) -> None:
    if os.geteuid() == 0 or find("mmdebstrap") is not None:
        say(f"image: {PYTHON}: installing Debian {rootfs.suite()} (a minute)")
        with rootfs.debian(folder, log=log) as tar:
            _import(tar, PYTHON, recipe=recipe, command='["python3"]', log=log)
        return
    say(f"image: {PYTHON}: neither root nor mmdebstrap, so {PULLED_BASE} is pulled")
    try:
        _build("../Dockerfile.probe", PYTHON, recipe=recipe, log=log, args={"BASE": PULLED_BASE})
    except SetupError as error:
        msg = f"no base for the demo image: {error}"
        raise SetupError(
            msg, hint="sudo make demo  # or: sudo apt-get install mmdebstrap"
        ) from error


def _make_demo(recipe: str, folder: Path, log: Path) -> None:
    asked = output(["docker", "run", "--rm", "--network=none", PYTHON, "python3", "-c", ASK_PYTHON])
    python = json.loads(asked)
    rmtree(folder, ignore_errors=True)
    torch_wheel.install(folder / "site", python=python["version"], log=log)
    args = {"BASE": PYTHON, "SITE_PACKAGES": python["site"]}
    _build(
        "demo.Dockerfile", DEMO, recipe=recipe, log=log, args=args, context=folder, network="none"
    )
    rmtree(folder)


def _make_compiler(recipe: str, _folder: Path, log: Path) -> None:
    _build("compiler.Dockerfile", COMPILER, recipe=recipe, log=log, args={"BASE": DEMO})


def _make_tiny(recipe: str, folder: Path, log: Path) -> None:
    with rootfs.busybox(folder, log=log) as tar:
        _import(tar, TINY, recipe=recipe, command='["sh"]', log=log)


def _import(tar: IO[bytes], reference: str, *, recipe: str, command: str, log: Path) -> None:
    changes = (f"ENV PATH={PATH}", f"CMD {command}", f"LABEL {RECIPE_LABEL}={recipe}")
    words = [word for change in changes for word in ("--change", change)]
    run(["docker", "import", *words, "-", reference], log=log, stdin=tar)


def _build(
    dockerfile: str,
    reference: str,
    *,
    recipe: str,
    args: dict[str, str],
    log: Path,
    context: Path | None = None,
    network: str = "host",  # the engine's default bridge may be absent, or lead nowhere
) -> None:
    """Build with whichever builder the client has; without a context nothing is sent but the file."""
    words = ["docker", "build", "--force-rm", "--network", network, "--tag", reference]
    words += ["--label", f"{RECIPE_LABEL}={recipe}"]
    build_args = [f"{name}={value}" for name, value in args.items()]
    build_args += [name for name in PROXIES if name in os.environ]
    words += [word for arg in build_args for word in ("--build-arg", arg)]
    path = SCRIPTS / dockerfile
    if context is not None:
        run([*words, "--file", str(path), str(context)], log=log)
        return
    with path.open("rb") as stdin:
        run([*words, "-"], log=log, stdin=stdin)


def _push(reference: str, *, log: Path) -> None:
    repository, _, tag = reference.removeprefix(f"{registry.ADDRESS}/").rpartition(":")
    have = registry.digest(repository, tag)
    (image,) = json.loads(output(["docker", "image", "inspect", reference]))
    ours = {name.partition("@")[2] for name in image["RepoDigests"]}
    if have in ours:
        say(f"image: {reference} is in the registry")
        return
    run(["docker", "push", "--quiet", reference], log=log)
    say(f"image: {reference} pushed")


def _text(dockerfile: str) -> str:
    return (SCRIPTS / dockerfile).read_text(encoding="utf-8")
