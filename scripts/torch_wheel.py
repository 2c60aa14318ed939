"""Fetch torch for an image's own Python with pip from outside, and prefer a build for the CPU."""

import json
import os
import platform
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any
from urllib.parse import unquote, urlsplit

from scripts.commands import SetupError, run, say

TORCH = "2.13.0"
# Where pip's own configuration leads to a CUDA build, the same version for the CPU is here:
# https://pytorch.org/get-started/locally/ (Linux, Pip, CPU).
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
ALLOW_CUDA = "ROCMRUN_DEMO_ALLOW_CUDA"
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One file that pip would fetch."""

    name: str
    version: str
    url: str


def install(site: Path, *, python: str, log: Path) -> None:
    """Put torch and numpy (without which torch warns) for *python*, as "3.11", into *site*.

    Raises:
        SetupError: pip finds no build, or only a CUDA build and nobody allowed that.
    """
    pip = [*_pip(python), "--target", str(site)]
    allow_cuda = os.environ.get(ALLOW_CUDA) == "1"
    run([*pip, "--no-compile", *wanted(pip, log=log, allow_cuda=allow_cuda)], log=log)
    rmtree(site / "torch/test", ignore_errors=True)  # PyTorch's own test programs, 80 MB


def wanted(pip: Sequence[str], *, log: Path, allow_cuda: bool) -> list[str]:
    """Return what to ask *pip* for, so that it brings a build for the CPU.

    Raises:
        SetupError: pip finds no build, or only a CUDA build that is not allowed.
    """
    plain = [f"torch=={TORCH}", "numpy"]
    found = _ask(pip, plain, log=log)
    if not is_cuda(found):
        _tell(found)
        return plain
    say(f"torch: {plain[0]} is a CUDA build here ({_size(found)}); asking for a CPU build")
    cpu = ["--extra-index-url", CPU_INDEX, f"torch=={TORCH}+cpu", "numpy"]
    try:
        _tell(_ask(pip, cpu, log=log))
    except SetupError as error:
        if not allow_cuda:
            msg = f"pip finds only a CUDA build of torch {TORCH} ({_size(found)})\n{error}"
            raise SetupError(
                msg, hint=f"{ALLOW_CUDA}=1 make demo  # takes the CUDA build"
            ) from error
        _tell(found)
        return plain
    return cpu


def is_cuda(downloads: Sequence[Download]) -> bool:
    """Tell whether these are torch's build for NVIDIA, which brings several GB of libraries."""
    return any(
        item.name.startswith("nvidia-") or (item.name == "torch" and "+cu" in item.version)
        for item in downloads
    )


def downloads_in(report: dict[str, Any]) -> tuple[Download, ...]:
    """Return what pip's installation report (pypa's format, version 1) says that it would fetch."""
    return tuple(
        Download(
            name=item["metadata"]["name"].lower().replace("_", "-"),
            version=item["metadata"]["version"],
            url=item["download_info"]["url"],
        )
        for item in report["install"]
    )


def _ask(pip: Sequence[str], what: Sequence[str], *, log: Path) -> tuple[Download, ...]:
    report = log.with_name("pip-report.json")
    run([*pip, "--dry-run", "--report", str(report), *what], log=log)
    return downloads_in(json.loads(report.read_text(encoding="utf-8")))


def _pip(python: str) -> list[str]:
    """Return a pip that installs wheels for another Python than the one it runs in."""
    tag = python.replace(".", "")
    machine = platform.machine()
    platforms = [
        f"manylinux_2_28_{machine}",
        f"manylinux_2_17_{machine}",
        f"manylinux2014_{machine}",
    ]
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    words += ["--python-version", python, "--implementation", "cp", "--abi", f"cp{tag}"]
    return words + [word for name in platforms for word in ("--platform", name)]


def _tell(downloads: Sequence[Download]) -> None:
    torch = next(item for item in downloads if item.name == "torch")
    others = len(downloads) - 1
    say(f"torch: {torch.version} and {others} packages that it needs, {_size(downloads)}")


def _size(downloads: Sequence[Download]) -> str:
    sizes = [_bytes(item.url) for item in downloads]
    total = sum(size for size in sizes if size is not None) / MIB
    unknown = sizes.count(None)
    return f"{total:.0f} MiB" + (f" and {unknown} of unknown size" if unknown else "")


def _bytes(url: str) -> int | None:
    """Return the size of a file behind a URL; not knowing it is no reason to fail."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            return Path(unquote(parts.path)).stat().st_size
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=5) as response:
            return int(response.headers["Content-Length"])
    except (OSError, TypeError, ValueError):
        return None
